"""A picture for paper, drawn by matplotlib: as PNG or SVG, the same bytes from the same numbers."""

import io
import math
from collections.abc import Mapping
from textwrap import wrap
from typing import Any, Literal

from discreet.report.curves import Panel, Picture
from discreet.report.label_placement import from_top, on_the_right, stand
from discreet.report.theme import QUIET, Look, covered, heights, limits, looks, marks, symbols

MARKERS = ("o", "s", "D", "^", "X")
PANEL = (4.8, 3.5)  # inches
NOTE, ENTRY = 0.15, 0.2  # a line of a note, a row of the legend
DOTS = 150  # an inch, in a PNG


def plate(picture: Picture, form: Literal["png", "svg"]) -> bytes:
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

    across = _across(len(picture.panels))
    down = math.ceil(len(picture.panels) / across)
    width = max(across * PANEL[0], 6.4)
    said = [line for note in picture.notes for line in wrap(note, int(width * 15))]
    look = looks(picture)
    columns = max(1, int(width / (0.7 + 0.085 * max((len(name) for name in look), default=0))))
    rows = math.ceil(len(look) / columns)
    body, foot = down * PANEL[1] + 0.4 + ENTRY * rows, NOTE * len(said) + 0.1
    made = Figure(figsize=(width, body + foot), layout="constrained")
    parts: Any = made.subfigures(2, 1, height_ratios=[body, foot])
    top, bottom = parts
    top.suptitle(_text(picture.title), fontsize=12)
    axes = top.subplots(down, across, squeeze=False).ravel()
    for panel, axis in zip(picture.panels, axes, strict=False):
        _draw(panel, axis, look)
    for axis in axes[len(picture.panels) :]:
        axis.set_visible(False)
    drawn = [zip(*axis.get_legend_handles_labels(), strict=True) for axis in axes]
    handles = {label: handle for each in drawn[::-1] for handle, label in each}  # as in the first panel that has it
    if handles:
        names = [_text(name) for name in look]
        top.legend(
            [handles[name] for name in names],
            names,
            loc="outside lower center",
            ncols=columns,
            fontsize=8,
            frameon=False,
        )
    bottom.text(0.5, 0.95, "\n".join(map(_text, said)), ha="center", va="top", fontsize=8, color="#444")
    return made


def _across(panels: int) -> int:
    return {1: 1, 2: 2, 4: 2}.get(panels, 3)


def _draw(panel: Panel, axis: Any, look: Mapping[str, Look]) -> None:
    axis.set_title(_text(panel.title), fontsize=10)
    axis.set_xlabel(_text(panel.across), fontsize=9)
    axis.set_ylabel(_text(panel.up), fontsize=9)
    axis.tick_params(which="both", labelsize=8)
    axis.grid(alpha=0.3)
    axis.set_xscale("log" if panel.log_x else "linear")
    axis.set_yscale("log" if panel.log_y else "linear")
    axis.margins(y=0.15 if panel.marks else 0.05)
    if panel.whole_x:
        axis.xaxis.get_major_locator().set_params(integer=True)
    for curve in panel.curves:
        seen, wide = look[curve.name], covered(curve, panel)
        shown = symbols(curve, panel, seen)
        axis.plot(
            [point.x for point in curve.points],
            [math.nan if y is None else y for y in heights(curve, panel)],
            label=_text(curve.name),
            color=seen.colour,
            linewidth=4 if wide else 1.6,
            linestyle="--" if curve.dashed else "-",
            marker=MARKERS[seen.symbol] if shown else None,
            markevery=max(1, len(curve.points) // max(1, shown)),
            markersize=6 if wide else 4,
        )
    for limit in limits(panel):
        axis.axvline(limit.x, color=QUIET, linewidth=1, linestyle=":")
        _beside(axis, limit.name, limit.x, right=on_the_right(limit.x, panel), top=from_top(limit.x, panel))
    for mark in marks(panel):
        axis.plot(*mark.at, marker="*", markersize=11, color="black", markeredgecolor="white", zorder=5)
        under, side = stand(mark, panel)
        shift = {"left": -4, "right": 4}.get(side, 0)  # from the star's middle to its outer edge
        offset = {"xytext": (shift, -7 if under else 7), "va": "top" if under else "bottom", "ha": side}
        axis.annotate(_text(mark.name), mark.at, fontsize=8, textcoords="offset points", **offset, bbox=_HALO, zorder=6)


def _beside(axis: Any, name: str, x: float, *, right: bool, top: bool) -> None:
    """A limit's name along its line, at that end of it, on the side where there is room."""
    offset = {"xytext": (-3 if right else 3, -4 if top else 4), "textcoords": "offset points"}
    turned = {"rotation": 90, "ha": "right" if right else "left", "va": "top" if top else "bottom"}
    place = {"xy": (x, 1 if top else 0), "xycoords": axis.get_xaxis_transform(), "annotation_clip": True}
    axis.annotate(_text(name), **place, **offset, **turned, fontsize=7, color="#555", bbox=_HALO)


def _text(said: str) -> str:
    """As it is: a dollar sign would start mathematics."""
    return said.replace("$", r"\$")


_HALO = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
