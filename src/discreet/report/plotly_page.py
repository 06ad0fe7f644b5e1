"""Pictures drawn by plotly: one HTML page that loads nothing, with the numbers as tables and in words."""

import math
from collections.abc import Mapping
from html import escape
from typing import Any

from discreet.report import theme
from discreet.report.curves import Limit, Panel, Picture, Point
from discreet.report.label_placement import hangs_from_top, is_near_right_edge, place_label
from discreet.report.markup import Html, join, tag
from discreet.report.number_format import format_number
from discreet.report.plotly_figures import fold_numbers, layout, render_figure
from discreet.report.run_page import html_page

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x")


def render_page(picture: Picture) -> str:
    """Return the whole page as HTML."""
    styles = theme.curve_styles(picture)
    panels = [_render_panel(panel, f"panel-{index}", styles) for index, panel in enumerate(picture.panels)]
    notes = [tag("p", note, class_="note") for note in picture.notes]
    body = join(
        [
            tag("header", tag("p", "Trade-off", class_="eyebrow"), tag("h1", picture.title), *notes),
            tag("main", tag("section", tag("div", *panels, class_="charts"), class_="part")),
            tag("footer", tag("p", "Written by discreet, before any training.")),
        ]
    )
    return html_page(picture.title, body)


def _render_panel(panel: Panel, key: str, styles: Mapping[str, theme.Style]) -> Html:
    chart = render_figure(key, panel.title, description(panel), figure(panel, styles), tall=True)
    return tag("div", chart, numbers_table(panel))


def figure(panel: Panel, styles: Mapping[str, theme.Style]) -> Any:
    """Return the panel as a plotly figure; a click on a name in the legend hides all curves of that name."""
    import plotly.graph_objects as go

    drawing = go.Figure(layout=_layout(panel))
    in_legend = {curve.name: curve for curve in panel.curves}  # the last curve of a name is in the legend for all
    for curve in panel.curves:
        style, is_wide = styles[curve.name], theme.is_covered(curve, panel)
        markers = theme.marker_count(curve, panel, style)
        drawing.add_scatter(
            x=[point.x if math.isfinite(point.x) else None for point in curve.points],
            y=theme.y_values(curve, panel),
            name=escape(curve.name),
            legendgroup=escape(curve.name),
            showlegend=in_legend[curve.name] is curve,
            mode="lines+markers" if markers else "lines",
            line={"color": style.colour, "width": 6 if is_wide else 2, "dash": "dash" if curve.dashed else "solid"},
            marker={"size": 12 if is_wide else 6, "symbol": SYMBOLS[style.symbol], "maxdisplayed": markers},
            hovertemplate="%{y:.4~g}",
        )
    for mark in theme.visible_marks(panel):
        below, side = place_label(mark, panel)
        drawing.add_scatter(
            x=[mark.point.x],
            y=[mark.point.y],
            name=escape(mark.name),
            mode="markers+text",
            text=[escape(mark.name)],
            textposition=f"{'bottom' if below else 'top'} {_OPPOSITE[side]}",
            marker={"size": 12, "symbol": "star", "color": theme.QUIET},
            cliponaxis=False,
            showlegend=False,
            hovertemplate="%{y:.4~g}",
        )
    for limit in theme.visible_limits(panel):
        _add_limit(drawing, limit, panel)
    return drawing


def description(panel: Panel) -> str:
    """Describe the panel in words: where each curve starts and ends, the marks and the limits."""
    parts = [_describe_curve(name, points) for name, points in _merge_curves(panel).items()]
    parts += [f"{mark.name} at {format_number(mark.point.x)}: {format_number(mark.point.y)}" for mark in panel.marks]
    parts += [f"{limit.name} at {format_number(limit.x)}" for limit in panel.limits]
    return f"Line chart of {panel.y_label} by {panel.x_label}. {'; '.join(parts)}."


def numbers_table(panel: Panel) -> Html:
    """Return the numbers of a panel as a folded table."""
    columns = [(name, dict(points), format_number) for name, points in _merge_curves(panel).items()]
    return fold_numbers(f"{panel.title}: {panel.y_label}", panel.x_label, "points", columns)


def _merge_curves(panel: Panel) -> dict[str, list[Point]]:
    """Return the points of all curves of each name, sorted by x, without gaps."""
    merged: dict[str, dict[float, float]] = {curve.name: {} for curve in panel.curves}
    for curve in panel.curves:
        merged[curve.name] |= {point.x: point.y for point in curve.points if not math.isnan(point.y)}
    return {name: [Point(x, values[x]) for x in sorted(values)] for name, values in merged.items()}


def _describe_curve(name: str, points: list[Point]) -> str:
    if not points:
        return f"{name}: no values"
    first, last = (f"{format_number(point.y)} at {format_number(point.x)}" for point in (points[0], points[-1]))
    return f"{name}: {first}" if len(points) == 1 else f"{name}: from {first} to {last}"


def _add_limit(drawing: Any, limit: Limit, panel: Panel) -> None:
    """Draw a vertical line with its name along it."""
    x, top = limit.x, hangs_from_top(limit.x, panel)
    drawing.add_shape(type="line", xref="x", yref="paper", x0=x, x1=x, y0=0, y1=1, line=_LIMIT)
    drawing.add_annotation(
        xref="x",
        yref="paper",
        x=math.log10(x) if panel.log_x else x,  # plotly takes an exponent on a logarithmic axis
        y=1 if top else 0,
        text=escape(limit.name),
        textangle=-90,
        showarrow=False,
        xanchor="right" if is_near_right_edge(x, panel) else "left",
        yanchor="top" if top else "bottom",
        font={"size": 11},
    )


def _layout(panel: Panel) -> dict[str, Any]:
    style = layout(panel.x_label)
    for axis, logarithmic in (("xaxis", panel.log_x), ("yaxis", panel.log_y)):
        style[axis] |= {"tickformat": "", "exponentformat": "power", "hoverformat": ".4~g", "showgrid": True}
        if logarithmic:
            style[axis] |= {"type": "log", "tickfont": {"size": 11}}  # plotly writes powers of ten larger
    style["yaxis"] |= {"title": {"text": escape(panel.y_label), "font": {"size": 13}, "standoff": 6}}
    style["legend"] |= {"itemclick": "toggle", "font": {"size": 12}}
    if panel.whole_x:
        xs = [point.x for curve in panel.curves for point in curve.points]
        span = max(xs, default=0) - min(xs, default=0)
        steps = (digit * 10**power for power in range(16) for digit in (1, 2, 5))
        style["xaxis"] |= {"dtick": next(step for step in steps if span <= 8 * step)}
    return style | {"height": 400, "showlegend": len({curve.name for curve in panel.curves}) > 1}


_OPPOSITE = {"left": "right", "right": "left", "center": "center"}  # plotly names the side of the mark, not of the text
_LIMIT = {"color": theme.QUIET, "width": 1.5, "dash": "dot"}
