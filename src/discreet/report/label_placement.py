"""Where to write the name of a mark or a limit: where it covers least of the curves, and inside the panel."""

import math
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from statistics import median
from typing import Literal, NamedTuple, TypeAlias

from discreet.report.curves import Mark, Panel, Point
from discreet.report.theme import is_drawable, visible_points

Side: TypeAlias = Literal["left", "center", "right"]

LINE, DISTANCE = 0.11, 0.015  # height and distance of a name; the panel is 1
OVERHANG = 0.05  # how far a name may extend beyond the last value
SAMPLES = 12  # steps from one point of a curve to the next
MARKER_WEIGHT = 4  # a point counts as much as this many samples: a marker is larger than its line
LIMIT_WIDTH = 0.05  # width of a name that is written along a limit


class LabelPlace(NamedTuple):
    """Where the name of a mark is written.

    Attributes:
        below: Whether it is below the mark, and not above.
        side: The side of the name at which the mark is.
    """

    below: bool
    side: Side


def place_label(mark: Mark, panel: Panel, letter: float) -> LabelPlace:
    """Find the place where the name of a mark covers least; among equals, below a mark that is low.

    Args:
        mark: The mark.
        panel: Its panel.
        letter: The width of a letter, as a share of the panel's width.
    """
    frame = _UnitFrame(panel)
    samples, prefers_below = list(_sample_curves(frame, panel)), is_low(mark, panel)
    point, width = frame.to_unit(mark.point), letter * len(mark.name)

    def cost(place: LabelPlace) -> tuple[float, int]:
        left = point.x - {"left": 0.0, "center": width / 2, "right": width}[place.side]
        bottom = point.y - DISTANCE - LINE if place.below else point.y + DISTANCE
        covered = sum(left <= x <= left + width and bottom <= y <= bottom + LINE for x, y in samples)
        outside = max(0.0, -OVERHANG - left, left + width - 1 - OVERHANG)
        return covered + 1000 * outside, places.index(place)

    sides: tuple[Side, ...] = ("center", "left", "right")
    places = [LabelPlace(below, side) for below, side in product((prefers_below, not prefers_below), sides)]
    return min(places, key=cost)


def is_low(mark: Mark, panel: Panel) -> bool:
    """Return whether a mark is below the median of all values, so that there is room below it."""
    values = [y for curve in panel.curves for y in visible_points(curve, panel).values()]
    return bool(values) and mark.point.y < median(values)


def hangs_from_top(x: float, panel: Panel) -> bool:
    """Return whether the name of a limit starts at the top: if there is more room above the curves than below."""
    frame = _UnitFrame(panel)
    limit = frame.to_unit(Point(x, frame.low.y)).x
    near = [sample.y for sample in _sample_curves(frame, panel) if abs(sample.x - limit) <= LIMIT_WIDTH]
    return not near or 1 - max(near) >= min(near)


def is_near_right_edge(x: float, panel: Panel) -> bool:
    """Return whether x is so far to the right that a name fits only on its left."""
    frame = _UnitFrame(panel)
    return frame.to_unit(Point(x, frame.low.y)).x > 1 - LIMIT_WIDTH


class _UnitFrame:
    """Scales the values of a panel to 0 to 1 on both axes, as they are drawn."""

    def __init__(self, panel: Panel) -> None:
        self.scales: tuple[Callable[[float], float], ...] = (
            math.log if panel.log_x else float,
            math.log if panel.log_y else float,
        )
        points = [Point(x, y) for curve in panel.curves for x, y in visible_points(curve, panel).items()]
        points += [mark.point for mark in panel.marks if is_drawable(mark.point, panel)]
        xs = [point.x for point in points] + [
            limit.x for limit in panel.limits if is_drawable(Point(limit.x, 1.0), panel)
        ]
        ys = [point.y for point in points]
        self.low = Point(min(xs, default=1.0), min(ys, default=1.0))
        self.high = Point(max(xs, default=1.0), max(ys, default=1.0))

    def to_unit(self, point: Point) -> Point:
        """Scale a point of the panel."""
        return Point(*(self._fraction(*axis) for axis in zip(point, self.low, self.high, self.scales, strict=True)))

    @staticmethod
    def _fraction(value: float, low: float, high: float, scale: Callable[[float], float]) -> float:
        span = scale(high) - scale(low)
        return (scale(value) - scale(low)) / span if span else 0.5


def _sample_curves(frame: _UnitFrame, panel: Panel) -> Iterator[Point]:
    """Yield scaled points along every curve, so close that no name fits between two."""
    for curve in panel.curves:
        points = [frame.to_unit(Point(x, y)) for x, y in visible_points(curve, panel).items()]
        yield from points * MARKER_WEIGHT
        for start, end in pairwise(points):
            for step in range(1, SAMPLES):
                share = step / SAMPLES
                yield Point(start.x + share * (end.x - start.x), start.y + share * (end.y - start.y))
