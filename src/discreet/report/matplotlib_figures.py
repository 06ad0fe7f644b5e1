"""Pictures as files, PNG or SVG, drawn by matplotlib; the same numbers give the same bytes."""

import io
import math
from textwrap import wrap
from typing import Any, Literal

from discreet.report import theme
from discreet.report.curves import Picture
from discreet.report.panel_drawing import Scale, default_style, draw_panel, escape_math

PANEL = (4.8, 3.5)  # width and height of a panel, in inches
DOT_ROW = 0.42  # height of a row of a panel of dots, in inches
NOTE, ENTRY = 0.15, 0.2  # height of a line of a note and of a row of the legend, in inches
DPI = 150  # of a PNG
SCALE = Scale(text=8, letter=0.017, x_ticks=7, y_ticks=7, names_limits=True)


def render_image(picture: Picture, form: Literal["png", "svg", "pdf"]) -> bytes:
    """Draw a picture on white, and return the bytes of the file. In a PDF, letters are embedded as letters."""
    file = io.BytesIO()
    undated: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
    with default_style({"svg.hashsalt": "discreet", "pdf.fonttype": 42}):  # the same identifiers each time
        _figure(picture).savefig(file, format=form, dpi=DPI, metadata={"Title": picture.title, **undated})
    return file.getvalue()


def _figure(picture: Picture) -> Any:
    """Draw the title, the panels, one legend for all of them and the notes, each below the other."""
    from matplotlib.figure import Figure

    columns = {1: 1, 2: 2, 4: 2}.get(len(picture.panels), 3)
    rows = math.ceil(len(picture.panels) / columns)
    width = max(columns * PANEL[0], 6.4)
    note_lines = [line for note in picture.notes for line in wrap(note, int(width * 15))]
    styles = theme.curve_styles(*picture.panels)
    legend_columns = max(1, int(width / (0.7 + 0.085 * max((len(name) for name in styles), default=0))))
    legend_rows = math.ceil(len(styles) / legend_columns)
    tallest = max(DOT_ROW * len(panel.x_names) + 0.6 if panel.as_rows else 0.0 for panel in picture.panels)
    body, foot = rows * max(PANEL[1], tallest) + 0.4 + ENTRY * legend_rows, NOTE * len(note_lines) + 0.1
    figure = Figure(figsize=(width, body + foot), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=[body, foot])
    top, bottom = parts
    top.suptitle(escape_math(picture.title), fontsize=12)
    axes = top.subplots(rows, columns, squeeze=False).ravel()
    for panel, axis in zip(picture.panels, axes, strict=False):
        draw_panel(panel, axis, styles, SCALE)
        axis.set_title(escape_math(panel.title), fontsize=10)
        axis.set_xlabel(escape_math(panel.x_label), fontsize=9)
        axis.set_ylabel(escape_math(panel.y_label), fontsize=9)
    for axis in axes[len(picture.panels) :]:
        axis.set_visible(False)
    entries = [zip(*axis.get_legend_handles_labels(), strict=True) for axis in axes]
    handles = {label: handle for panel in entries[::-1] for handle, label in panel}  # of the first panel that has it
    if handles:
        names = [escape_math(name) for name in styles]
        place = {"loc": "outside lower center", "ncols": legend_columns}
        top.legend([handles[name] for name in names], names, **place, fontsize=8, frameon=False)
    bottom.text(0.5, 0.95, "\n".join(map(escape_math, note_lines)), ha="center", va="top", fontsize=8, color=theme.SOFT)
    return figure
