"""Line charts that say what they show, also to those who can't see them: drawn by plotly, loaded from nowhere."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, TypeVar

from discreet.privacy.wording import compact
from discreet.report.markup import Html, details, join, table, tag

COLOURS = ("#2f7dc0", "#c8642b", "#3d8f5f", "#8a63b8", "#a8843a")  # at least 3:1 on white and on near-black
POINTS = 2000  # more than a screen has pixels
ROWS = 40

Place = TypeVar("Place", int, float)


@dataclass(frozen=True)
class Line:
    """One series by round. Where it has no value the line goes on to the next; where it isn't finite it breaks."""

    name: str
    values: Mapping[int, float]


@dataclass(frozen=True)
class Band:
    """What lies between two series."""

    name: str
    low: Mapping[int, float]
    high: Mapping[int, float]


@dataclass(frozen=True)
class Level:
    """A value to compare with, the same in every round."""

    name: str
    value: float


@dataclass(frozen=True)
class Chart:
    """One picture: a caption for everybody, a description for those who don't see it, the numbers for both."""

    key: str  # its id on the page
    caption: str
    lines: tuple[Line, ...]
    bands: tuple[Band, ...] = ()  # the widest first, so that they darken towards the middle
    level: Level | None = None
    percent: bool = False
    from_zero: bool = False
    across: str = "round"

    def said(self, value: float) -> str:
        return format_percent(value) if self.percent else format_number(value)

    def description(self) -> str:
        """The chart in words: where each line starts, ends and lies between."""
        told = "; ".join(_describe_line(line, self) for line in self.lines)
        level = f"; {self.level.name} is {self.said(self.level.value)}" if self.level else ""
        return f"Line chart by {self.across}. {told}{level}."


def format_percent(value: float) -> str:
    return f"{100 * value:.1f}\u202f%" if math.isfinite(value) else format_number(value)


def format_number(value: float) -> str:
    """Four digits, and words for what is no number."""
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else compact(value, 4)


def render_chart(chart: Chart) -> Html:
    """The chart as a figure; it shows once `script` is on the page too."""
    return render_figure(chart.key, chart.caption, chart.description(), figure(chart), _gap_note(chart))


def render_figure(
    key: str, caption: str, description: str, made: Any, note: Html | None = None, *, tall: bool = False
) -> Html:
    """A plotly figure on the page, with its words."""
    place = tag("div", id=key, class_="chart tall" if tall else "chart", role="img", aria_label=description)
    data = tag("script", Html(made.to_json().replace("<", "\\u003c")), type="application/json", data_chart=key)
    return tag("figure", tag("figcaption", caption), place, data, note)


def numbers_table(title: str, *charts: Chart) -> Html:
    """The same numbers as a folded table: at most so many rows, evenly chosen, always with the first and the last."""
    columns = [(name, values, chart) for chart in charts for name, values in _series_columns(chart)]
    rounds = sorted({at for _, values, _ in columns for at in values})
    shown = thin_out(rounds, ROWS)
    rows = (
        [f"{at:,}", *(chart.said(values[at]) if at in values else "–" for _, values, chart in columns)] for at in shown
    )
    across = charts[0].across
    note = f"{len(shown)} of {len(rounds):,} {across}s." if len(shown) < len(rounds) else None
    made = table(title, [across, *(name for name, _, _ in columns)], rows, class_="numbers")
    return details("The numbers", made, tag("p", note, class_="note") if note else None)


def _series_columns(chart: Chart) -> Iterator[tuple[str, Mapping[int, float]]]:
    yield from ((line.name, line.values) for line in chart.lines)
    for band in chart.bands:
        yield from ((f"{band.name}, {edge}", values) for edge, values in (("from", band.low), ("to", band.high)))


def script() -> Html:
    """Plotly itself and what draws the charts with it: once a page, at its end."""
    from plotly.offline import get_plotlyjs

    return join([tag("script", Html(get_plotlyjs())), tag("script", Html(_DRAW))])


def figure(chart: Chart) -> Any:
    """The chart as a plotly Figure."""
    import plotly.graph_objects as go

    made = go.Figure(layout=layout(chart))
    for band in chart.bands:
        _add_band(made, band, chart)
    ends = sorted({at for line in chart.lines for at in line.values})
    for line, colour in zip(chart.lines, _line_colours(len(chart.lines)), strict=True):
        rounds = thin_out(sorted(line.values), POINTS)
        dots = "lines+markers" if len(rounds) <= 30 else "lines"
        made.add_scatter(
            x=rounds,
            y=[_or_gap(line.values[at]) for at in rounds],
            name=escape(line.name),
            mode=dots,
            line={"color": colour, "width": 2},
            marker={"size": 5},
            hovertemplate=f"%{{y:{_format(chart)}}}",
        )
    if chart.level and ends and math.isfinite(chart.level.value):
        span = [ends[0], ends[-1]] if len(ends) > 1 else [ends[0] - 0.5, ends[0] + 0.5]
        made.add_scatter(
            x=span,
            y=[chart.level.value] * 2,
            name=escape(chart.level.name),
            mode="lines",
            line={"color": COLOURS[1], "width": 1.5, "dash": "dash"},
            hovertemplate=f"%{{y:{_format(chart)}}}",
        )
    return made


def thin_out(rounds: list[Place], most: int) -> list[Place]:
    """At most `most` of them, evenly, with both ends."""
    if len(rounds) <= most:
        return rounds
    step = (len(rounds) - 1) / (most - 1)
    return [rounds[round(place * step)] for place in range(most)]


def _add_band(made: Any, band: Band, chart: Chart) -> None:
    rounds = thin_out(sorted(at for at in band.low if at in band.high), POINTS)
    rounds = [at for at in rounds if math.isfinite(band.low[at]) and math.isfinite(band.high[at])]
    for name, values, fill in (("low", band.low, None), (band.name, band.high, "tonexty")):
        made.add_scatter(
            x=rounds,
            y=[values[at] for at in rounds],
            name=escape(name),
            mode="lines",
            line={"width": 0},
            fill=fill,
            fillcolor="rgba(47,125,192,0.22)",
            showlegend=fill is not None,
            hoverinfo="skip",
        )


def layout(chart: Chart) -> dict[str, Any]:
    """No colours of text, grid and ground: the page's style gives them, by day and by night."""
    still: dict[str, Any] = {"fixedrange": True, "zeroline": False, "automargin": True}  # a finger scrolls the page
    return {
        "height": 250,
        "margin": {"l": 8, "r": 12, "t": 8, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13},
        "showlegend": len(chart.lines) > 1 or chart.level is not None or bool(chart.bands),
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "itemclick": False},
        "hovermode": "x unified",
        "hoverlabel": {"bgcolor": "#1d252c", "bordercolor": "#1d252c", "font": {"color": "#fff"}},
        "xaxis": {
            **still,
            "title": {"text": chart.across, "font": {"size": 13}, "standoff": 6},
            "showgrid": False,
            "nticks": 8,
            "tickformat": ",d",
        },
        "yaxis": {
            **still,
            "tickformat": ".3~%" if chart.percent else "",
            "rangemode": "tozero" if chart.from_zero else "normal",
            "nticks": 6,
        },
    }


def _format(chart: Chart) -> str:
    return ".1%" if chart.percent else ".4~g"


def _line_colours(count: int) -> Iterable[str]:
    return (COLOURS[(place if place == 0 else place + 1) % len(COLOURS)] for place in range(count))


def _or_gap(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _describe_line(line: Line, chart: Chart) -> str:
    if not line.values:
        return f"{line.name}: no values"
    rounds = sorted(line.values)
    first, last = (f"{chart.said(line.values[at])} in {chart.across} {at:,}" for at in (rounds[0], rounds[-1]))
    finite = [value for value in line.values.values() if math.isfinite(value)]
    between = f", between {chart.said(min(finite))} and {chart.said(max(finite))}" if len(finite) > 2 else ""
    return f"{line.name}: {first}" if len(rounds) == 1 else f"{line.name}: from {first} to {last}{between}"


def _gap_note(chart: Chart) -> Html | None:
    """Says that a line breaks, and where: a chart alone would hide it."""
    lost = [(line.name, [at for at, y in line.values.items() if not math.isfinite(y)]) for line in chart.lines]
    said = [f"{name} in {len(at):,}, the first of them {min(at):,}" for name, at in lost if at]
    return tag("p", f"Not a finite number, by {chart.across}s: {'; '.join(said)}.", class_="note") if said else None


_DRAW = """
for (const data of document.querySelectorAll("script[data-chart]")) {
  const {data: traces, layout} = JSON.parse(data.textContent);
  Plotly.newPlot(data.dataset.chart, traces, layout, {displayModeBar: false, responsive: true});
}
const charts = () => document.querySelectorAll(".chart");
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details[data-print]:not([open])")];
  opened.forEach((each) => { each.open = true; });
  charts().forEach((each) => Plotly.relayout(each, {width: Math.min(each.clientWidth, 620)}));
});
addEventListener("afterprint", () => {
  opened.forEach((each) => { each.open = false; });
  charts().forEach((each) => Plotly.relayout(each, {width: null, autosize: true}));
});
"""
