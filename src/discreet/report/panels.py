"""A picture for a browser: one page that loads nothing, by day and by night, with its numbers and in words."""

import math
from collections.abc import Mapping
from html import escape
from typing import Any

from discreet.report.curves import Curve, Panel, Picture
from discreet.report.figures import ROWS, Chart, layout, plain, shown, thinned
from discreet.report.looks import QUIET, Look, below, heights, limits, looks, marks, symbols
from discreet.report.markup import Html, folded, join, table, tag
from discreet.report.page import framed

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x")


def document(picture: Picture) -> str:
    """The whole page as text."""
    look = looks(picture)
    drawn = [_drawn(panel, f"panel-{place}", look) for place, panel in enumerate(picture.panels)]
    notes = [tag("p", note, class_="note") for note in picture.notes]
    body = join(
        [
            tag("header", tag("p", "Trade-off", class_="eyebrow"), tag("h1", picture.title), *notes),
            tag("main", tag("section", tag("div", *drawn, class_="charts"), class_="part")),
            tag("footer", tag("p", "Made by discreet, before any training.")),
        ]
    )
    return framed(picture.title, body)


def _drawn(panel: Panel, key: str, look: Mapping[str, Look]) -> Html:
    drawn = shown(key, panel.title, description(panel), figure(panel, look), tall=True)
    return tag("div", drawn, numbers(panel))


def figure(panel: Panel, look: Mapping[str, Look]) -> Any:
    """The panel as a plotly Figure; a click on a name in the legend hides its curve."""
    import plotly.graph_objects as go

    made = go.Figure(layout=_layout(panel))
    for curve in panel.curves:
        seen = look[curve.name]
        some = symbols(curve, panel, seen)
        made.add_scatter(
            x=[point.x if math.isfinite(point.x) else None for point in curve.points],
            y=heights(curve, panel),
            name=escape(curve.name),
            mode="lines+markers" if some else "lines",
            line={"color": seen.colour, "width": 2, "dash": "dash" if curve.dashed else "solid"},
            marker={"size": 6, "symbol": SYMBOLS[seen.symbol], "maxdisplayed": some},
            hovertemplate="%{y:.4~g}",
        )
    for mark in marks(panel):
        made.add_scatter(
            x=[mark.at.x],
            y=[mark.at.y],
            name=escape(mark.name),
            mode="markers+text",
            text=[escape(mark.name)],
            textposition="bottom center" if below(mark, panel) else "top center",
            marker={"size": 12, "symbol": "star", "color": QUIET},
            cliponaxis=False,
            showlegend=False,
            hovertemplate="%{y:.4~g}",
        )
    for limit in limits(panel):
        _limit(made, limit.name, limit.x, logarithmic=panel.log_x)
    return made


def description(panel: Panel) -> str:
    """The panel in words: where each curve starts and ends, what is marked, and where a bound stops to hold."""
    told = [_told(curve) for curve in panel.curves]
    told += [f"{mark.name} at {plain(mark.at.x)}: {plain(mark.at.y)}" for mark in panel.marks]
    told += [f"{limit.name} at {plain(limit.x)}" for limit in panel.limits]
    return f"Line chart of {panel.up} by {panel.across}. {'; '.join(told)}."


def numbers(panel: Panel) -> Html:
    """What is drawn, as a folded table: at most so many rows, evenly chosen, always with the first and the last."""
    values = [{point.x: point.y for point in curve.points} for curve in panel.curves]
    places = sorted({x for each in values for x in each if math.isfinite(x)})
    listed = thinned(places, ROWS)
    rows = ([plain(x), *(plain(each[x]) if x in each else "–" for each in values)] for x in listed)
    made = table(f"{panel.title}: {panel.up}", [panel.across, *(c.name for c in panel.curves)], rows, class_="numbers")
    note = f"{len(listed)} of {len(places):,} places." if len(listed) < len(places) else None
    return folded("The numbers", made, tag("p", note, class_="note") if note else None)


def _told(curve: Curve) -> str:
    if not curve.points:
        return f"{curve.name}: no values"
    first, last = (f"{plain(point.y)} at {plain(point.x)}" for point in (curve.points[0], curve.points[-1]))
    return f"{curve.name}: {first}" if len(curve.points) == 1 else f"{curve.name}: from {first} to {last}"


def _limit(made: Any, name: str, x: float, *, logarithmic: bool) -> None:
    """A line through the whole height, its name along it; plotly wants its place on a log axis as an exponent."""
    made.add_shape(type="line", xref="x", yref="paper", x0=x, x1=x, y0=0, y1=1, line=_LIMIT)
    made.add_annotation(
        xref="x",
        yref="paper",
        x=math.log10(x) if logarithmic else x,
        y=1,
        text=escape(name),
        textangle=-90,
        showarrow=False,
        xanchor="left",
        yanchor="top",
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
    return drawn | {"height": 400, "showlegend": len(panel.curves) > 1}


_LIMIT = {"color": QUIET, "width": 1.5, "dash": "dot"}
