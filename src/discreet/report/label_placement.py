"""Where the name of a mark or a limit stands: where it covers the least of the curves, and stays on the panel."""

import math
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from statistics import median
from typing import Literal, NamedTuple, TypeAlias

from discreet.report.curves import Mark, Panel, Point
from discreet.report.theme import is_drawable, visible_points

Side: TypeAlias = Literal["left", "center", "right"]

LETTER, LINE, AWAY = 0.017, 0.11, 0.015  # of what a panel's values span: a name's letter, its line, and its distance
BEYOND = 0.05  # so far names may stand beyond the last value
BETWEEN = 12  # places that are looked at between two points
SYMBOL = 4  # so many of those a point itself counts for: a symbol is larger than its line
NEAR = 0.05  # of the width: what a name along a limit takes


class LabelPlace(NamedTuple):
    """Below or above its mark, which stands at that side of the name."""

    below: bool
    side: Side


def place_label(mark: Mark, panel: Panel) -> LabelPlace:
    """Where a mark's name covers the least; of those that are alike, below a least value, whose curve is above it."""
    frame = _UnitFrame(panel)
    places, first = list(_sample_curves(frame, panel)), is_low(mark, panel)
    at, long = frame.at(mark.at), LETTER * len(mark.name)

    def covered(to: LabelPlace) -> tuple[float, int]:
        left = at.x - {"left": 0.0, "center": long / 2, "right": long}[to.side]
        bottom = at.y - AWAY - LINE if to.below else at.y + AWAY
        inside = sum(left <= x <= left + long and bottom <= y <= bottom + LINE for x, y in places)
        out = max(0.0, -BEYOND - left, left + long - 1 - BEYOND)
        return inside + 1000 * out, order.index(to)

    sides: tuple[Side, ...] = ("center", "left", "right")
    order = [LabelPlace(under, side) for under, side in product((first, not first), sides)]
    return min(order, key=covered)


def is_low(mark: Mark, panel: Panel) -> bool:
    """Whether a mark is low among all values, so that there is room below it."""
    values = [y for curve in panel.curves for y in visible_points(curve, panel).values()]
    return bool(values) and mark.at.y < median(values)


def hangs_from_top(x: float, panel: Panel) -> bool:
    """Whether a limit's name along its line hangs from the top: where more is free above the curves than below."""
    frame = _UnitFrame(panel)
    at = frame.at(Point(x, frame.low.y)).x
    near = [y for place, y in _sample_curves(frame, panel) if abs(place - at) <= NEAR]
    return not near or 1 - max(near) >= min(near)


def is_near_right_edge(x: float, panel: Panel) -> bool:
    """Whether a place lies so far right that a name has room on its left alone."""
    frame = _UnitFrame(panel)
    return frame.at(Point(x, frame.low.y)).x > 1 - NEAR


class _UnitFrame:
    """A panel's values from 0 to 1, both ways, as they are drawn."""

    def __init__(self, panel: Panel) -> None:
        self.scales: tuple[Callable[[float], float], ...] = (
            math.log if panel.log_x else float,
            math.log if panel.log_y else float,
        )
        there = [Point(x, y) for curve in panel.curves for x, y in visible_points(curve, panel).items()]
        there += [mark.at for mark in panel.marks if is_drawable(mark.at, panel)]
        xs = [point.x for point in there] + [
            limit.x for limit in panel.limits if is_drawable(Point(limit.x, 1.0), panel)
        ]
        ys = [point.y for point in there]
        self.low = Point(min(xs, default=1.0), min(ys, default=1.0))
        self.high = Point(max(xs, default=1.0), max(ys, default=1.0))

    def at(self, point: Point) -> Point:
        return Point(*(self._share(*each) for each in zip(point, self.low, self.high, self.scales, strict=True)))

    @staticmethod
    def _share(value: float, low: float, high: float, scale: Callable[[float], float]) -> float:
        span = scale(high) - scale(low)
        return (scale(value) - scale(low)) / span if span else 0.5


def _sample_curves(frame: _UnitFrame, panel: Panel) -> Iterator[Point]:
    """Places along every curve, close enough that no name slips between two."""
    for curve in panel.curves:
        points = [frame.at(Point(x, y)) for x, y in visible_points(curve, panel).items()]
        yield from points * SYMBOL
        for one, other in pairwise(points):
            for step in range(1, BETWEEN):
                share = step / BETWEEN
                yield Point(one.x + share * (other.x - one.x), one.y + share * (other.y - one.y))
