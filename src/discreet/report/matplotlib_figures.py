"""A picture for paper, drawn by matplotlib: as PNG or SVG, the same bytes from the same numbers."""

import io
import math
from collections.abc import Mapping
from textwrap import wrap
from typing import Any, Literal

from discreet.report.curves import Panel, Picture
from discreet.report.label_placement import hangs_from_top, is_near_right_edge, place_label
from discreet.report.theme import (
    QUIET,
    Style,
    curve_styles,
    is_covered,
    marker_count,
    visible_limits,
    visible_marks,
    y_values,
)

MARKERS = ("o", "s", "D", "^", "X")
PANEL = (4.8, 3.5)  # inches
NOTE, ENTRY = 0.15, 0.2  # a line of a note, a row of the legend
DOTS = 150  # an inch, in a PNG


def render_image(picture: Picture, form: Literal["png", "svg"]) -> bytes:
    """The picture on white, as the bytes of a file."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    made = _figure(picture)
    (FigureCanvasAgg if form == "png" else FigureCanvasSVG)(made)
    file = io.BytesIO()
    dated: dict[str, Any] = {"Date": None} if form == "svg" else {}
    with matplotlib.rc_context({"svg.hashsalt": "discreet"}):  # the same names within a picture each time
        made.savefig(file, format=form, dpi=DOTS, metadata={"Title": picture.title, **dated})
    return file.getvalue()


def _figure(picture: Picture) -> Any:
    """Title, panels, one legend for all of them, notes: each below the other, so that none hides a curve."""
    from matplotlib.figure import Figure

    across = _column_count(len(picture.panels))
    down = math.ceil(len(picture.panels) / across)
    width = max(across * PANEL[0], 6.4)
    said = [line for note in picture.notes for line in wrap(note, int(width * 15))]
    look = curve_styles(picture)
    columns = max(1, int(width / (0.7 + 0.085 * max((len(name) for name in look), default=0))))
    rows = math.ceil(len(look) / columns)
    body, foot = down * PANEL[1] + 0.4 + ENTRY * rows, NOTE * len(said) + 0.1
    made = Figure(figsize=(width, body + foot), layout="constrained")
    parts: Any = made.subfigures(2, 1, height_ratios=[body, foot])
    top, bottom = parts
    top.suptitle(_escape_math(picture.title), fontsize=12)
    axes = top.subplots(down, across, squeeze=False).ravel()
    for panel, axis in zip(picture.panels, axes, strict=False):
        _draw_panel(panel, axis, look)
    for axis in axes[len(picture.panels) :]:
        axis.set_visible(False)
    drawn = [zip(*axis.get_legend_handles_labels(), strict=True) for axis in axes]
    handles = {label: handle for each in drawn[::-1] for handle, label in each}  # as in the first panel that has it
    if handles:
        names = [_escape_math(name) for name in look]
        top.legend(
            [handles[name] for name in names],
            names,
            loc="outside lower center",
            ncols=columns,
            fontsize=8,
            frameon=False,
        )
    bottom.text(0.5, 0.95, "\n".join(map(_escape_math, said)), ha="center", va="top", fontsize=8, color="#444")
    return made


def _column_count(panels: int) -> int:
    return {1: 1, 2: 2, 4: 2}.get(panels, 3)


def _draw_panel(panel: Panel, axis: Any, look: Mapping[str, Style]) -> None:
    axis.set_title(_escape_math(panel.title), fontsize=10)
    axis.set_xlabel(_escape_math(panel.across), fontsize=9)
    axis.set_ylabel(_escape_math(panel.up), fontsize=9)
    axis.tick_params(which="both", labelsize=8)
    axis.grid(alpha=0.3)
    axis.set_xscale("log" if panel.log_x else "linear")
    axis.set_yscale("log" if panel.log_y else "linear")
    axis.margins(y=0.15 if panel.marks else 0.05)
    if panel.whole_x:
        axis.xaxis.get_major_locator().set_params(integer=True)
    for curve in panel.curves:
        seen, wide = look[curve.name], is_covered(curve, panel)
        shown = marker_count(curve, panel, seen)
        axis.plot(
            [point.x for point in curve.points],
            [math.nan if y is None else y for y in y_values(curve, panel)],
            label=_escape_math(curve.name),
            color=seen.colour,
            linewidth=4 if wide else 1.6,
            linestyle="--" if curve.dashed else "-",
            marker=MARKERS[seen.symbol] if shown else None,
            markevery=max(1, len(curve.points) // max(1, shown)),
            markersize=6 if wide else 4,
        )
    for limit in visible_limits(panel):
        axis.axvline(limit.x, color=QUIET, linewidth=1, linestyle=":")
        _label_limit(
            axis, limit.name, limit.x, right=is_near_right_edge(limit.x, panel), top=hangs_from_top(limit.x, panel)
        )
    for mark in visible_marks(panel):
        axis.plot(*mark.at, marker="*", markersize=11, color="black", markeredgecolor="white", zorder=5)
        under, side = place_label(mark, panel)
        shift = {"left": -4, "right": 4}.get(side, 0)  # from the star's middle to its outer edge
        offset = {"xytext": (shift, -7 if under else 7), "va": "top" if under else "bottom", "ha": side}
        axis.annotate(
            _escape_math(mark.name), mark.at, fontsize=8, textcoords="offset points", **offset, bbox=_HALO, zorder=6
        )


def _label_limit(axis: Any, name: str, x: float, *, right: bool, top: bool) -> None:
    """A limit's name along its line, at that end of it, on the side where there is room."""
    offset = {"xytext": (-3 if right else 3, -4 if top else 4), "textcoords": "offset points"}
    turned = {"rotation": 90, "ha": "right" if right else "left", "va": "top" if top else "bottom"}
    place = {"xy": (x, 1 if top else 0), "xycoords": axis.get_xaxis_transform(), "annotation_clip": True}
    axis.annotate(_escape_math(name), **place, **offset, **turned, fontsize=7, color="#555", bbox=_HALO)


def _escape_math(said: str) -> str:
    """As it is: a dollar sign would start mathematics."""
    return said.replace("$", r"\$")


_HALO = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
