"""Draw one panel on a pair of matplotlib's axes: for a file on white, or for a page."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from discreet.report import theme
from discreet.report.axis_ticks import linear_ticks, logarithmic_ticks, tick_writer
from discreet.report.curves import Band, Curve, Limit, Mark, Panel, Point, thin_out, thin_points
from discreet.report.label_placement import hangs_from_top, is_near_right_edge, place_label

MAX_POINTS = 400  # of a curve: a panel is hardly wider, in pixels
DENSE = 150  # points from which on a line is thin
LEAST_SPAN = 0.01  # of the y-axis, as a share of its largest value


@contextmanager
def default_style(settings: Mapping[Any, Any]) -> Iterator[None]:
    """Draw with matplotlib's own defaults and these settings, whatever a matplotlibrc of the current folder says."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings)
        yield


class Scale(NamedTuple):
    """How large text is on a panel.

    Attributes:
        text: The size of text, in points.
        letter: The width of a letter, as a share of the panel's width.
        x_ticks: The most labels of the x-axis.
        y_ticks: The most labels of the y-axis.
        names_limits: Whether the name of a limit is written along it.
    """

    text: float
    letter: float
    x_ticks: int
    y_ticks: int
    names_limits: bool


def draw_panel(panel: Panel, axis: Any, styles: Mapping[str, theme.Style], scale: Scale) -> None:
    """Draw everything but the title, the labels of the axes and the legend.

    The group of curve number 3 in an SVG has the identifier curve-3.
    """
    axis.tick_params(labelsize=scale.text, length=0, labelcolor=theme.SOFT)
    axis.grid(color=theme.RULE, linewidth=0.8)
    axis.set_axisbelow(True)
    for side, spine in axis.spines.items():
        spine.set(color=theme.SOFT, linewidth=0.8, visible=side == "bottom")
    if panel.as_rows:
        _draw_rows(panel, axis, styles, scale)
        return
    axis.set_xscale("log" if panel.log_x else "linear")
    axis.set_yscale("log" if panel.log_y else "linear")
    axis.margins(x=0.04, y=0.15 if panel.marks else 0.06)
    for index, curve in enumerate(panel.curves):
        _draw_curve(curve, panel, axis, styles[curve.name], f"curve-{index}")
    for index, band in enumerate(panel.bands):
        area = {"color": theme.COLOURS[0], "alpha": 0.15 * (1 + index), "linewidth": 0, "zorder": 1}
        axis.fill_between(*_band_edges(band, panel), **area, label=escape_math(band.name))
    for level in panel.levels:
        if theme.is_drawable(Point(1.0, level.y), panel):
            axis.axhline(level.y, color=theme.SOFT, linewidth=1.2, linestyle="--", label=escape_math(level.name))
    if panel.from_zero:
        axis.set_ylim(bottom=0)
    _widen_y(axis)
    for limit in theme.visible_limits(panel):
        axis.axvline(limit.x, color=theme.SOFT, linewidth=1, linestyle=":")
        if scale.names_limits:
            _label_limit(limit, panel, axis, scale)
    for mark in theme.visible_marks(panel):
        axis.plot(*mark.point, marker="*", markersize=12, color=theme.INK, markeredgecolor=theme.SHEET, zorder=5)
        _label_mark(mark, panel, axis, scale)
    _set_x_ticks(panel, axis, scale)
    _set_y_ticks(panel, axis, scale)


def escape_math(text: str) -> str:
    """Escape dollar signs, which start a formula in matplotlib."""
    return text.replace("$", r"\$")


def _draw_curve(curve: Curve, panel: Panel, axis: Any, style: theme.Style, identifier: str) -> None:
    is_wide, markers = theme.is_covered(curve, panel), theme.marker_count(curve, panel, style)
    points = thin_points(theme.points_with_gaps(curve, panel), MAX_POINTS)
    xs, ys = [point.x for point in points], [point.y for point in points]
    axis.plot(
        xs,
        ys,
        label=escape_math(curve.name),
        color=style.colour,
        linewidth=4 if is_wide else 1 if len(points) > DENSE else 1.6,
        linestyle="--" if curve.dashed else "-",
        marker=style.marker if markers else None,
        markevery=max(1, len(points) // max(1, markers)),
        markersize=7 if is_wide else 5,
        markeredgewidth=0,
        gid=identifier,
    )
    if curve.errors:
        axis.errorbar(xs, ys, yerr=curve.errors, fmt="none", ecolor=style.colour, elinewidth=1.2, capsize=3)


def _band_edges(band: Band, panel: Panel) -> tuple[list[float], list[float], list[float]]:
    """Return x, the lower and the upper y of a band, where both can be drawn."""
    pairs = zip(band.low, band.high, strict=True)
    edges = [pair for pair in pairs if all(theme.is_drawable(point, panel) for point in pair)]
    edges = thin_out(edges, MAX_POINTS)
    return [low.x for low, _ in edges], [low.y for low, _ in edges], [high.y for _, high in edges]


def _widen_y(axis: Any) -> None:
    """Show a curve that is constant but for rounding as constant: the labels of a narrower axis would be the same."""
    low, high = axis.get_ylim()
    least = LEAST_SPAN * max(abs(low), abs(high))
    if high - low < least:
        axis.set_ylim((low + high - least) / 2, (low + high + least) / 2)


def _draw_rows(panel: Panel, axis: Any, styles: Mapping[str, theme.Style], scale: Scale) -> None:
    """Draw each named x as a row, the first at the top: its name above a dot at its value."""
    names = dict(panel.x_names)
    rows = {x: -place for place, x in enumerate(names)}
    for curve in panel.curves:
        if panel.from_zero:
            heights, values = [rows[point.x] for point in curve.points], [point.y for point in curve.points]
            axis.hlines(heights, 0, values, color=styles[curve.name].colour, linewidth=4)
        axis.errorbar(
            [point.y for point in curve.points],
            [rows[point.x] for point in curve.points],
            xerr=curve.errors or None,
            fmt=styles[curve.name].marker,
            color=styles[curve.name].colour,
            markersize=7,
            elinewidth=1.6,
            capsize=4,
            label=escape_math(curve.name) if len(panel.curves) > 1 else None,
        )
    axis.margins(x=0.08)
    if panel.from_zero:
        axis.set_xlim(left=-0.04 * axis.get_xlim()[1])  # room for the first label
    axis.set_ylim(-len(rows) + 0.6, 0.75)
    for x, row in rows.items():
        place = {"xy": (0, row), "xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        axis.annotate(escape_math(names[x]), **place, xytext=(0, 7), fontsize=scale.text, color=theme.INK, va="bottom")
    axis.set_yticks([])
    low, high = axis.get_xlim()
    ticks = linear_ticks(low, high, scale.x_ticks)
    axis.set_xticks(ticks, map(tick_writer(ticks, percent=panel.percent), ticks))


def _set_x_ticks(panel: Panel, axis: Any, scale: Scale) -> None:
    low, high = axis.get_xlim()
    if panel.x_names:
        ticks, names = [x for x, _ in panel.x_names], [escape_math(name) for _, name in panel.x_names]
        is_crowded = scale.letter * sum(len(name) + 1 for name in names) > 1
        turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if is_crowded else {}
    else:
        make_ticks = logarithmic_ticks if panel.log_x else linear_ticks
        ticks = make_ticks(low, high, scale.x_ticks)
        if panel.whole_x:
            ticks = [tick for tick in ticks if float(tick).is_integer()] or [math.ceil(low)]
        names, turned = [*map(tick_writer(ticks), ticks)], {}
    axis.set_xticks(ticks, names, **turned)
    axis.set_xticks([], minor=True)


def _set_y_ticks(panel: Panel, axis: Any, scale: Scale) -> None:
    make_ticks = logarithmic_ticks if panel.log_y else linear_ticks
    low, high = axis.get_ylim()
    ticks = make_ticks(low, high, scale.y_ticks)
    axis.set_yticks(ticks, [*map(tick_writer(ticks, percent=panel.percent), ticks)])
    axis.set_yticks([], minor=True)


def _label_mark(mark: Mark, panel: Panel, axis: Any, scale: Scale) -> None:
    """Write the name of a mark where it covers least."""
    below, side = place_label(mark, panel, scale.letter)
    shift = {"left": -4, "right": 4}.get(side, 0)  # from the middle of the star to its edge
    offset = {"xytext": (shift, -7 if below else 7), "va": "top" if below else "bottom", "ha": side}
    text = {"fontsize": scale.text, "color": theme.INK, "bbox": _HALO, "zorder": 6}
    axis.annotate(escape_math(mark.name), mark.point, textcoords="offset points", **offset, **text)


def _label_limit(limit: Limit, panel: Panel, axis: Any, scale: Scale) -> None:
    """Write the name of a limit along its line, at its top or bottom, on the side where there is room."""
    right, top = is_near_right_edge(limit.x, panel), hangs_from_top(limit.x, panel)
    offset = {"xytext": (-3 if right else 3, -4 if top else 4), "textcoords": "offset points"}
    rotated = {"rotation": 90, "ha": "right" if right else "left", "va": "top" if top else "bottom"}
    place = {"xy": (limit.x, 1 if top else 0), "xycoords": axis.get_xaxis_transform(), "annotation_clip": True}
    text = {"fontsize": scale.text, "color": theme.SOFT, "bbox": _HALO}
    axis.annotate(escape_math(limit.name), **place, **offset, **rotated, **text)


_HALO = {"boxstyle": "square,pad=0.1", "facecolor": theme.SHEET, "edgecolor": "none", "alpha": 0.85}
