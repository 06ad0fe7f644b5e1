"""A chart as part of a page: a caption, the drawing, and a folded table with its numbers."""

import math
from collections.abc import Mapping

from discreet.extras import is_installed
from discreet.report import theme
from discreet.report.curves import Panel, Point, thin_out
from discreet.report.inline_svg import render_svg
from discreet.report.markup import Html, details, table, tag

ROWS = 40  # the most rows of a table of numbers
NO_DRAWING = "Not drawn, because matplotlib is not installed: pip install 'discreet[report]'."


def render_chart(
    panel: Panel,
    key: str,
    *,
    styles: Mapping[str, theme.Style] | None = None,
    source: str = "",
    note: str = "",
) -> Html:
    """Return a panel as a figure of a page that needs no scripts.

    Args:
        panel: The chart.
        key: A word that no other chart of the page has.
        styles: The styles of curves that several charts share; by default those of this panel alone.
        source: Where all numbers are, for a table that shows only some of them.
        note: A sentence to read with the chart.
    """
    title = tag("figcaption", panel.title, tag("small", panel.y_label) if panel.y_label else None)
    numbers = numbers_table(panel, source)
    limits = "; ".join(f"{limit.name} at {panel.format_x(limit.x)}" for limit in panel.limits)
    sentences = [f"Dotted: {limits}."] * bool(limits) + [note] * bool(note)
    below = tag("p", " ".join(sentences), class_="note") if sentences else None
    if not is_installed("matplotlib"):
        return tag("figure", title, tag("p", NO_DRAWING, class_="note"), numbers, below, id=key)
    drawing = render_svg(panel, key, describe(panel), styles or theme.curve_styles(panel))
    return tag("figure", title, tag("div", drawing, class_="chart"), below, details("Numbers", numbers), id=key)


def describe(panel: Panel) -> str:
    """Describe a panel in words: where each curve starts and ends, its range, the levels, marks and limits."""
    kind = "Dot chart" if panel.as_rows else "Line chart"
    parts = [_describe_curve(name, points, panel) for name, points in _merge_curves(panel).items()]
    parts += [f"{level.name} is {panel.format_y(level.y)}" for level in panel.levels]
    parts += [f"{mark.name} at {panel.format_x(mark.point.x)}: {panel.format_y(mark.point.y)}" for mark in panel.marks]
    parts += [f"{limit.name} at {panel.format_x(limit.x)}" for limit in panel.limits]
    return f"{kind} of {panel.y_label or panel.title} by {panel.x_label}. {'; '.join(parts)}."


def numbers_table(panel: Panel, source: str = "") -> Html:
    """Return the numbers of a panel as a table of at most `ROWS` rows, including the first and the last."""
    columns = {name: {point.x: point.y for point in points} for name, points in _merge_curves(panel).items()}
    for band in panel.bands:
        columns |= {f"{band.name}, {edge}": dict(line) for edge, line in (("from", band.low), ("to", band.high))}
    errors = {
        (curve.name, point.x): error
        for curve in panel.curves
        for point, error in zip(curve.points, curve.errors, strict=False)
    }

    def write(name: str, x: float) -> str:
        if math.isnan(columns[name].get(x, math.nan)):
            return "–"
        error = errors.get((name, x))
        return panel.format_y(columns[name][x]) + (f" ± {panel.format_y(error)}" if error else "")

    xs = sorted({x for values in columns.values() for x in values})
    shown = thin_out(xs, ROWS)
    caption = panel.title if not panel.y_label or panel.y_label in panel.title else f"{panel.title}: {panel.y_label}"
    if len(shown) < len(xs):
        caption += f" ({len(shown)} of {len(xs):,} rows{f'; all are in {source}' if source else ''})"
    rows = ([panel.format_x(x), *(write(name, x) for name in columns)] for x in shown)
    return table(caption, [panel.x_label, *columns], rows, class_="numbers")


def _merge_curves(panel: Panel) -> dict[str, list[Point]]:
    """Return the points of all curves of each name, sorted by x; a gap in one may be a value of another."""
    merged: dict[str, dict[float, float]] = {curve.name: {} for curve in panel.curves}
    for curve in panel.curves:
        values = merged[curve.name]
        values |= {point.x: point.y for point in curve.points if point.x not in values or not math.isnan(point.y)}
    return {name: [Point(x, values[x]) for x in sorted(values)] for name, values in merged.items()}


def _describe_curve(name: str, points: list[Point], panel: Panel) -> str:
    if not points:
        return f"{name}: no values"
    values = [f"{panel.format_y(point.y)} at {panel.format_x(point.x)}" for point in points]
    if panel.x_names or len(points) == 1:
        return f"{name}: {', '.join(values)}"
    finite = [point.y for point in points if math.isfinite(point.y)]
    between = f", between {panel.format_y(min(finite))} and {panel.format_y(max(finite))}" if len(finite) > 2 else ""
    return f"{name}: from {values[0]} to {values[-1]}{between}"
