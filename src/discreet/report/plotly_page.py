"""A picture for a browser: one page that loads nothing, by day and by night, with its numbers and in words."""

import math
from collections.abc import Mapping
from html import escape
from typing import Any

from discreet.report.curves import Panel, Picture, Point
from discreet.report.label_placement import from_top, on_the_right, stand
from discreet.report.markup import Html, folded, join, table, tag
from discreet.report.plotly_figures import ROWS, Chart, layout, plain, shown, thinned
from discreet.report.run_page import framed
from discreet.report.theme import QUIET, Look, covered, heights, limits, looks, marks, symbols

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
    """The panel as a plotly Figure; a click on a name in the legend hides its curve, dashed parts and all."""
    import plotly.graph_objects as go

    made = go.Figure(layout=_layout(panel))
    named = {curve.name: curve for curve in panel.curves}  # the last of a name stands for all of them
    for curve in panel.curves:
        seen, wide = look[curve.name], covered(curve, panel)
        some = symbols(curve, panel, seen)
        made.add_scatter(
            x=[point.x if math.isfinite(point.x) else None for point in curve.points],
            y=heights(curve, panel),
            name=escape(curve.name),
            legendgroup=escape(curve.name),
            showlegend=named[curve.name] is curve,
            mode="lines+markers" if some else "lines",
            line={"color": seen.colour, "width": 6 if wide else 2, "dash": "dash" if curve.dashed else "solid"},
            marker={"size": 12 if wide else 6, "symbol": SYMBOLS[seen.symbol], "maxdisplayed": some},
            hovertemplate="%{y:.4~g}",
        )
    for mark in marks(panel):
        under, side = stand(mark, panel)
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
    for limit in limits(panel):
        _limit(made, limit.name, limit.x, panel)
    return made


def description(panel: Panel) -> str:
    """The panel in words: where each curve starts and ends, what is marked, and where a bound stops to hold."""
    told = [_told(name, points) for name, points in _merged(panel).items()]
    told += [f"{mark.name} at {plain(mark.at.x)}: {plain(mark.at.y)}" for mark in panel.marks]
    told += [f"{limit.name} at {plain(limit.x)}" for limit in panel.limits]
    return f"Line chart of {panel.up} by {panel.across}. {'; '.join(told)}."


def numbers(panel: Panel) -> Html:
    """What is drawn, as a folded table: at most so many rows, evenly chosen, always with the first and the last."""
    merged = _merged(panel)
    values = [dict(points) for points in merged.values()]
    places = sorted({point.x for curve in panel.curves for point in curve.points if math.isfinite(point.x)})
    listed = thinned(places, ROWS)
    rows = ([plain(x), *(plain(each[x]) if x in each else "–" for each in values)] for x in listed)
    made = table(f"{panel.title}: {panel.up}", [panel.across, *merged], rows, class_="numbers")
    note = f"{len(listed)} of {len(places):,} places." if len(listed) < len(places) else None
    return folded("The numbers", made, tag("p", note, class_="note") if note else None)


def _merged(panel: Panel) -> dict[str, list[Point]]:
    """The values of each name, of all its curves, by where they lie; gaps are left out."""
    found: dict[str, dict[float, float]] = {curve.name: {} for curve in panel.curves}
    for curve in panel.curves:
        found[curve.name] |= {point.x: point.y for point in curve.points if not math.isnan(point.y)}
    return {name: [Point(x, values[x]) for x in sorted(values)] for name, values in found.items()}


def _told(name: str, points: list[Point]) -> str:
    if not points:
        return f"{name}: no values"
    first, last = (f"{plain(point.y)} at {plain(point.x)}" for point in (points[0], points[-1]))
    return f"{name}: {first}" if len(points) == 1 else f"{name}: from {first} to {last}"


def _limit(made: Any, name: str, x: float, panel: Panel) -> None:
    """A line through the whole height, its name along it; plotly wants its place on a log axis as an exponent."""
    top = from_top(x, panel)
    made.add_shape(type="line", xref="x", yref="paper", x0=x, x1=x, y0=0, y1=1, line=_LIMIT)
    made.add_annotation(
        xref="x",
        yref="paper",
        x=math.log10(x) if panel.log_x else x,
        y=1 if top else 0,
        text=escape(name),
        textangle=-90,
        showarrow=False,
        xanchor="right" if on_the_right(x, panel) else "left",
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
