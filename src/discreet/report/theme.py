"""The style of curves, whatever draws them: the same name has the same colour and symbol in every panel."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from discreet.report.curves import Curve, Limit, Mark, Panel, Point

# Colours of a light page. In a page each becomes the variable of page.css that has another value at night.
COLOURS = ("#0b57b8", "#c87305", "#2a9c78", "#7a1f6a", "#4a3200")  # 3:1 on white; distinct for the colour-blind
INK, SOFT, RULE, SHEET = "#1b2227", "#55616b", "#dde2e6", "#ffffff"
VARIABLES: Mapping[str, str] = {
    **{colour: f"var(--curve-{index})" for index, colour in enumerate(COLOURS)},
    INK: "var(--ink)",
    SOFT: "var(--soft)",
    RULE: "var(--rule)",
    SHEET: "var(--sheet)",
}
MARKERS = ("o", "s", "D", "^", "X")
MAX_ALL_MARKERS = 30  # a curve of up to this many points has a marker at each
SOME_MARKERS = 10  # markers of a longer curve that is not alone
LARGEST = 1e100  # of a value that is drawn: matplotlib computes with products
SAME_PLACE = 0.005  # relative difference below which two values are drawn in the same place


class Style(NamedTuple):
    """How the curves of one name look.

    Attributes:
        colour: The colour, as a hexadecimal number.
        marker: The marker, by matplotlib's name.
        is_alone: Whether the picture has no other name, so that a long curve needs no markers.
    """

    colour: str
    marker: str
    is_alone: bool


def curve_styles(*panels: Panel) -> Mapping[str, Style]:
    """Return the style of each name, in order of appearance; the sixth has the first colour and another symbol."""
    names = list(dict.fromkeys(curve.name for panel in panels for curve in panel.curves))
    return {
        name: Style(COLOURS[index % 5], MARKERS[(index + index // 5) % 5], is_alone=len(names) == 1)
        for index, name in enumerate(names)
    }


def points_with_gaps(curve: Curve, panel: Panel) -> list[Point]:
    """Return the points of a curve, with NaN where one can't be drawn."""
    return [point if is_drawable(point, panel) else Point(point.x, math.nan) for point in curve.points]


def marker_count(curve: Curve, panel: Panel, style: Style) -> int:
    """Return about how many points have a marker: all of a short curve, or of one with a point between two gaps."""
    is_drawn = [False, *(is_drawable(point, panel) for point in curve.points), False]
    has_lone_point = any(
        here and not (before or after)
        for before, here, after in zip(is_drawn, is_drawn[1:], is_drawn[2:], strict=False)
    )
    if len(curve.points) <= MAX_ALL_MARKERS or has_lone_point:
        return len(curve.points)
    return 0 if style.is_alone else SOME_MARKERS


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
    return {point.x: point.y for point in curve.points if is_drawable(point, panel)}


def is_drawable(point: Point, panel: Panel) -> bool:
    """Return whether a point can be drawn on the panel: not beyond all bounds, and positive on a logarithmic axis."""
    return all(
        abs(value) <= LARGEST and (value >= 1 / LARGEST or not is_log)
        for value, is_log in ((point.x, panel.log_x), (point.y, panel.log_y))
    )
