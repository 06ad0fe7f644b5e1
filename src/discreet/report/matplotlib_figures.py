"""Pictures drawn by matplotlib, as PNG or SVG; the same numbers give the same bytes."""

import io
import math
from collections.abc import Mapping
from textwrap import wrap
from typing import Any, Literal

from discreet.report import theme
from discreet.report.curves import Limit, Panel, Picture
from discreet.report.label_placement import hangs_from_top, is_near_right_edge, place_label

MARKERS = ("o", "s", "D", "^", "X")
PANEL = (4.8, 3.5)  # width and height of a panel, in inches
NOTE, ENTRY = 0.15, 0.2  # height of a line of a note and of a row of the legend, in inches
DPI = 150  # of a PNG


def render_image(picture: Picture, form: Literal["png", "svg"]) -> bytes:
    """Draw a picture on white, and return the bytes of the file."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    figure = _figure(picture)
    (FigureCanvasAgg if form == "png" else FigureCanvasSVG)(figure)
    file = io.BytesIO()
    undated: dict[str, Any] = {"Date": None} if form == "svg" else {}
    with matplotlib.rc_context({"svg.hashsalt": "discreet"}):  # the same identifiers each time
        figure.savefig(file, format=form, dpi=DPI, metadata={"Title": picture.title, **undated})
    return file.getvalue()


def _figure(picture: Picture) -> Any:
    """Draw the title, the panels, one legend for all of them and the notes, each below the other."""
    from matplotlib.figure import Figure

    columns = {1: 1, 2: 2, 4: 2}.get(len(picture.panels), 3)
    rows = math.ceil(len(picture.panels) / columns)
    width = max(columns * PANEL[0], 6.4)
    note_lines = [line for note in picture.notes for line in wrap(note, int(width * 15))]
    styles = theme.curve_styles(picture)
    legend_columns = max(1, int(width / (0.7 + 0.085 * max((len(name) for name in styles), default=0))))
    legend_rows = math.ceil(len(styles) / legend_columns)
    body, foot = rows * PANEL[1] + 0.4 + ENTRY * legend_rows, NOTE * len(note_lines) + 0.1
    figure = Figure(figsize=(width, body + foot), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=[body, foot])
    top, bottom = parts
    top.suptitle(_escape_math(picture.title), fontsize=12)
    axes = top.subplots(rows, columns, squeeze=False).ravel()
    for panel, axis in zip(picture.panels, axes, strict=False):
        _draw_panel(panel, axis, styles)
    for axis in axes[len(picture.panels) :]:
        axis.set_visible(False)
    entries = [zip(*axis.get_legend_handles_labels(), strict=True) for axis in axes]
    handles = {label: handle for panel in entries[::-1] for handle, label in panel}  # of the first panel that has it
    if handles:
        names = [_escape_math(name) for name in styles]
        top.legend(
            [handles[name] for name in names],
            names,
            loc="outside lower center",
            ncols=legend_columns,
            fontsize=8,
            frameon=False,
        )
    bottom.text(0.5, 0.95, "\n".join(map(_escape_math, note_lines)), ha="center", va="top", fontsize=8, color="#444")
    return figure


def _draw_panel(panel: Panel, axis: Any, styles: Mapping[str, theme.Style]) -> None:
    axis.set_title(_escape_math(panel.title), fontsize=10)
    axis.set_xlabel(_escape_math(panel.x_label), fontsize=9)
    axis.set_ylabel(_escape_math(panel.y_label), fontsize=9)
    axis.tick_params(which="both", labelsize=8)
    axis.grid(alpha=0.3)
    axis.set_xscale("log" if panel.log_x else "linear")
    axis.set_yscale("log" if panel.log_y else "linear")
    axis.margins(y=0.15 if panel.marks else 0.05)
    if panel.whole_x:
        axis.xaxis.get_major_locator().set_params(integer=True)
    for curve in panel.curves:
        style, is_wide = styles[curve.name], theme.is_covered(curve, panel)
        markers = theme.marker_count(curve, panel, style)
        axis.plot(
            [point.x for point in curve.points],
            [math.nan if y is None else y for y in theme.y_values(curve, panel)],
            label=_escape_math(curve.name),
            color=style.colour,
            linewidth=4 if is_wide else 1.6,
            linestyle="--" if curve.dashed else "-",
            marker=MARKERS[style.symbol] if markers else None,
            markevery=max(1, len(curve.points) // max(1, markers)),
            markersize=6 if is_wide else 4,
        )
    for limit in theme.visible_limits(panel):
        axis.axvline(limit.x, color=theme.QUIET, linewidth=1, linestyle=":")
        _label_limit(axis, limit, panel)
    for mark in theme.visible_marks(panel):
        axis.plot(*mark.point, marker="*", markersize=11, color="black", markeredgecolor="white", zorder=5)
        below, side = place_label(mark, panel)
        shift = {"left": -4, "right": 4}.get(side, 0)  # from the middle of the star to its edge
        offset = {"xytext": (shift, -7 if below else 7), "va": "top" if below else "bottom", "ha": side}
        name = _escape_math(mark.name)
        axis.annotate(name, mark.point, fontsize=8, textcoords="offset points", **offset, bbox=_HALO, zorder=6)


def _label_limit(axis: Any, limit: Limit, panel: Panel) -> None:
    """Write the name of a limit along its line, at its top or bottom, on the side where there is room."""
    right, top = is_near_right_edge(limit.x, panel), hangs_from_top(limit.x, panel)
    offset = {"xytext": (-3 if right else 3, -4 if top else 4), "textcoords": "offset points"}
    rotated = {"rotation": 90, "ha": "right" if right else "left", "va": "top" if top else "bottom"}
    place = {"xy": (limit.x, 1 if top else 0), "xycoords": axis.get_xaxis_transform(), "annotation_clip": True}
    axis.annotate(_escape_math(limit.name), **place, **offset, **rotated, fontsize=7, color="#555", bbox=_HALO)


def _escape_math(text: str) -> str:
    """Escape dollar signs, which start a formula in matplotlib."""
    return text.replace("$", r"\$")


_HALO = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
