"""The style of curves, whatever draws them: the same name has the same colour and symbol in every panel."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from discreet.report.curves import Curve, Limit, Mark, Panel, Picture, Point
from discreet.report.plotly_figures import COLOURS

QUIET = "#7d8790"  # colour of limits and marks: contrast of at least 3:1 on white and on near-black
MAX_ALL_MARKERS = 30  # a curve of up to this many points has a marker at each
SOME_MARKERS = 12  # markers of a longer curve whose colour is used twice
SAME_PLACE = 0.005  # relative difference below which two values are drawn in the same place


class Style(NamedTuple):
    """How the curves of one name look.

    Attributes:
        colour: The colour, as a hexadecimal number.
        symbol: The number of the marker, from 0 to 4: plotly and matplotlib have different names for them.
        is_repeated: Whether another curve has this colour, so that markers must distinguish them.
    """

    colour: str
    symbol: int
    is_repeated: bool


def curve_styles(picture: Picture) -> Mapping[str, Style]:
    """Return the style of each name, in order of appearance; the sixth has the first colour and another symbol."""
    names = list(dict.fromkeys(curve.name for panel in picture.panels for curve in panel.curves))
    return {
        name: Style(COLOURS[index % 5], (index + index // 5) % 5, is_repeated=index >= 5)
        for index, name in enumerate(names)
    }


def y_values(curve: Curve, panel: Panel) -> list[float | None]:
    """Return the values of a curve, with None where one can't be drawn: not finite, or without a logarithm."""
    return [point.y if is_drawable(point, panel) else None for point in curve.points]


def marker_count(curve: Curve, panel: Panel, style: Style) -> int:
    """Return about how many points have a marker: all of a short curve, or of one with a point between two gaps."""
    is_drawn = [False, *(y is not None for y in y_values(curve, panel)), False]
    has_lone_point = any(
        here and not (before or after)
        for before, here, after in zip(is_drawn, is_drawn[1:], is_drawn[2:], strict=False)
    )
    if len(curve.points) <= MAX_ALL_MARKERS or has_lone_point:
        return len(curve.points)
    return SOME_MARKERS if style.is_repeated else 0


def is_covered(curve: Curve, panel: Panel) -> bool:
    """Return whether a later curve is drawn on top of all of it, so that it must be wide to be seen."""
    values = visible_points(curve, panel)
    following = panel.curves[panel.curves.index(curve) + 1 :]
    later = (visible_points(other, panel) for other in following if other.name != curve.name)
    return bool(values) and any(
        all(x in other and math.isclose(other[x], y, rel_tol=SAME_PLACE) for x, y in values.items()) for other in later
    )


def visible_limits(panel: Panel) -> list[Limit]:
    """Return the limits that can be drawn on the panel."""
    return [limit for limit in panel.limits if is_drawable(Point(limit.x, 1.0), panel)]


def visible_marks(panel: Panel) -> list[Mark]:
    """Return the marks that can be drawn on the panel."""
    return [mark for mark in panel.marks if is_drawable(mark.point, panel)]


def visible_points(curve: Curve, panel: Panel) -> dict[float, float]:
    """Return the points of a curve that can be drawn, as y by x."""
    pairs = zip(curve.points, y_values(curve, panel), strict=True)
    return {point.x: y for point, y in pairs if y is not None}


def is_drawable(point: Point, panel: Panel) -> bool:
    """Return whether a point can be drawn on the panel: finite, and positive on a logarithmic axis."""
    if not (math.isfinite(point.x) and math.isfinite(point.y)):
        return False
    return (point.x > 0 or not panel.log_x) and (point.y > 0 or not panel.log_y)
