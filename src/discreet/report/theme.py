"""How a curve looks wherever it is drawn: the same name has the same colour and symbol in every panel."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from discreet.report.curves import Curve, Limit, Mark, Panel, Picture, Point
from discreet.report.plotly_figures import COLOURS

QUIET = "#7d8790"  # limits and marks: at least 3:1 on white and on near-black
FEW = 30  # so many points are all shown as points
SOME = 12  # of more than that, so many are where a colour has to be told from itself
ALIKE = 0.005  # two values so close are drawn in one place


class Style(NamedTuple):
    colour: str
    symbol: int  # which of five, by number: each drawer has its own names for them
    again: bool  # the colour was taken already, so that the symbol has to show


def curve_styles(picture: Picture) -> Mapping[str, Style]:
    """By name, in the order in which they first appear; the sixth has the first colour again with another symbol."""
    names = list(dict.fromkeys(curve.name for panel in picture.panels for curve in panel.curves))
    return {
        name: Style(COLOURS[place % 5], (place + place // 5) % 5, again=place >= 5) for place, name in enumerate(names)
    }


def y_values(curve: Curve, panel: Panel) -> list[float | None]:
    """The curve's values with None where there is nothing to draw: no finite number, or no logarithm."""
    return [point.y if is_drawable(point, panel) else None for point in curve.points]


def marker_count(curve: Curve, panel: Panel, look: Style) -> int:
    """About how many of its points are shown: all, where they are few or one stands between two gaps; or none."""
    there = [False, *(y is not None for y in y_values(curve, panel)), False]
    alone = any(
        here and not (before or after) for before, here, after in zip(there, there[1:], there[2:], strict=False)
    )
    if len(curve.points) <= FEW or alone:
        return len(curve.points)
    return SOME if look.again else 0


def is_covered(curve: Curve, panel: Panel) -> bool:
    """Whether one that is drawn later lies all along it, so that it has to be wide to be seen."""
    values = visible_points(curve, panel)
    later = (
        visible_points(each, panel) for each in panel.curves[panel.curves.index(curve) + 1 :] if each.name != curve.name
    )
    return bool(values) and any(
        all(x in each and math.isclose(each[x], y, rel_tol=ALIKE) for x, y in values.items()) for each in later
    )


def visible_limits(panel: Panel) -> list[Limit]:
    """Those that have a place on the panel."""
    return [limit for limit in panel.limits if is_drawable(Point(limit.x, 1.0), panel)]


def visible_marks(panel: Panel) -> list[Mark]:
    return [mark for mark in panel.marks if is_drawable(mark.at, panel)]


def visible_points(curve: Curve, panel: Panel) -> dict[float, float]:
    """What there is to draw of it."""
    there = zip(curve.points, y_values(curve, panel), strict=True)
    return {point.x: y for point, y in there if y is not None}


def is_drawable(point: Point, panel: Panel) -> bool:
    """Whether a point has a place on the panel."""
    if not (math.isfinite(point.x) and math.isfinite(point.y)):
        return False
    return (point.x > 0 or not panel.log_x) and (point.y > 0 or not panel.log_y)
