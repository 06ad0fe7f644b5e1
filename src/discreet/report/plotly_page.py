"""A picture for a browser: one page that loads nothing, by day and by night, with its numbers and in words."""

import math
from collections.abc import Mapping
from html import escape
from typing import Any

from discreet.report.curves import Panel, Picture, Point
from discreet.report.label_placement import hangs_from_top, is_near_right_edge, place_label
from discreet.report.markup import Html, details, join, table, tag
from discreet.report.plotly_figures import ROWS, Chart, format_number, layout, render_figure, thin_out
from discreet.report.run_page import html_page
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

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x")


def render_page(picture: Picture) -> str:
    """The whole page as text."""
    look = curve_styles(picture)
    drawn = [_render_panel(panel, f"panel-{place}", look) for place, panel in enumerate(picture.panels)]
    notes = [tag("p", note, class_="note") for note in picture.notes]
    body = join(
        [
            tag("header", tag("p", "Trade-off", class_="eyebrow"), tag("h1", picture.title), *notes),
            tag("main", tag("section", tag("div", *drawn, class_="charts"), class_="part")),
            tag("footer", tag("p", "Made by discreet, before any training.")),
        ]
    )
    return html_page(picture.title, body)


def _render_panel(panel: Panel, key: str, look: Mapping[str, Style]) -> Html:
    drawn = render_figure(key, panel.title, description(panel), figure(panel, look), tall=True)
    return tag("div", drawn, numbers_table(panel))


def figure(panel: Panel, look: Mapping[str, Style]) -> Any:
    """The panel as a plotly Figure; a click on a name in the legend hides its curve, dashed parts and all."""
    import plotly.graph_objects as go

    made = go.Figure(layout=_layout(panel))
    named = {curve.name: curve for curve in panel.curves}  # the last of a name stands for all of them
    for curve in panel.curves:
        seen, wide = look[curve.name], is_covered(curve, panel)
        some = marker_count(curve, panel, seen)
        made.add_scatter(
            x=[point.x if math.isfinite(point.x) else None for point in curve.points],
            y=y_values(curve, panel),
            name=escape(curve.name),
            legendgroup=escape(curve.name),
            showlegend=named[curve.name] is curve,
            mode="lines+markers" if some else "lines",
            line={"color": seen.colour, "width": 6 if wide else 2, "dash": "dash" if curve.dashed else "solid"},
            marker={"size": 12 if wide else 6, "symbol": SYMBOLS[seen.symbol], "maxdisplayed": some},
            hovertemplate="%{y:.4~g}",
        )
    for mark in visible_marks(panel):
        under, side = place_label(mark, panel)
        made.add_scatter(
            x=[mark.at.x],
            y=[mark.at.y],
            name=escape(mark.name),
            mode="markers+text",
            text=[escape(mark.name)],
            textposition=f"{'bottom' if under else 'top'} {_LEANING[side]}",
            marker={"size": 12, "symbol": "star", "color": QUIET},
            cliponaxis=False,
            showlegend=False,
            hovertemplate="%{y:.4~g}",
        )
    for limit in visible_limits(panel):
        _add_limit(made, limit.name, limit.x, panel)
    return made


def description(panel: Panel) -> str:
    """The panel in words: where each curve starts and ends, what is marked, and where a bound stops to hold."""
    told = [_describe_curve(name, points) for name, points in _merge_curves(panel).items()]
    told += [f"{mark.name} at {format_number(mark.at.x)}: {format_number(mark.at.y)}" for mark in panel.marks]
    told += [f"{limit.name} at {format_number(limit.x)}" for limit in panel.limits]
    return f"Line chart of {panel.up} by {panel.across}. {'; '.join(told)}."


def numbers_table(panel: Panel) -> Html:
    """What is drawn, as a folded table: at most so many rows, evenly chosen, always with the first and the last."""
    merged = _merge_curves(panel)
    values = [dict(points) for points in merged.values()]
    places = sorted({point.x for curve in panel.curves for point in curve.points if math.isfinite(point.x)})
    listed = thin_out(places, ROWS)
    rows = ([format_number(x), *(format_number(each[x]) if x in each else "–" for each in values)] for x in listed)
    made = table(f"{panel.title}: {panel.up}", [panel.across, *merged], rows, class_="numbers")
    note = f"{len(listed)} of {len(places):,} places." if len(listed) < len(places) else None
    return details("The numbers", made, tag("p", note, class_="note") if note else None)


def _merge_curves(panel: Panel) -> dict[str, list[Point]]:
    """The values of each name, of all its curves, by where they lie; gaps are left out."""
    found: dict[str, dict[float, float]] = {curve.name: {} for curve in panel.curves}
    for curve in panel.curves:
        found[curve.name] |= {point.x: point.y for point in curve.points if not math.isnan(point.y)}
    return {name: [Point(x, values[x]) for x in sorted(values)] for name, values in found.items()}


def _describe_curve(name: str, points: list[Point]) -> str:
    if not points:
        return f"{name}: no values"
    first, last = (f"{format_number(point.y)} at {format_number(point.x)}" for point in (points[0], points[-1]))
    return f"{name}: {first}" if len(points) == 1 else f"{name}: from {first} to {last}"


def _add_limit(made: Any, name: str, x: float, panel: Panel) -> None:
    """A line through the whole height, its name along it; plotly wants its place on a log axis as an exponent."""
    top = hangs_from_top(x, panel)
    made.add_shape(type="line", xref="x", yref="paper", x0=x, x1=x, y0=0, y1=1, line=_LIMIT)
    made.add_annotation(
        xref="x",
        yref="paper",
        x=math.log10(x) if panel.log_x else x,
        y=1 if top else 0,
        text=escape(name),
        textangle=-90,
        showarrow=False,
        xanchor="right" if is_near_right_edge(x, panel) else "left",
        yanchor="top" if top else "bottom",
        font={"size": 11},
    )


def _layout(panel: Panel) -> dict[str, Any]:
    drawn = layout(Chart("", "", (), across=panel.across))
    for axis, logarithmic in (("xaxis", panel.log_x), ("yaxis", panel.log_y)):
        drawn[axis] |= {"tickformat": "", "exponentformat": "power", "hoverformat": ".4~g", "showgrid": True}
        if logarithmic:
            drawn[axis] |= {"type": "log", "tickfont": {"size": 11}}  # powers of ten are written larger
    drawn["yaxis"] |= {"title": {"text": escape(panel.up), "font": {"size": 13}, "standoff": 6}}
    drawn["legend"] |= {"itemclick": "toggle", "font": {"size": 12}}
    if panel.whole_x:
        places = [point.x for curve in panel.curves for point in curve.points]
        span = max(places, default=0) - min(places, default=0)
        steps = (digit * 10**power for power in range(16) for digit in (1, 2, 5))
        drawn["xaxis"] |= {"dtick": next(step for step in steps if span <= 8 * step)}
    return drawn | {"height": 400, "showlegend": len({curve.name for curve in panel.curves}) > 1}


_LEANING = {"left": "right", "right": "left", "center": "center"}  # plotly says on which side of it the name is
_LIMIT = {"color": QUIET, "width": 1.5, "dash": "dot"}
