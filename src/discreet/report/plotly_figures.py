"""Line charts for a page, drawn by plotly: each with a caption, a description in words and a table of its numbers."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias, TypeVar

from discreet.report.markup import Html, details, join, table, tag
from discreet.report.number_format import format_number, format_percent

COLOURS = ("#2f7dc0", "#c8642b", "#3d8f5f", "#8a63b8", "#a8843a")  # contrast of 3:1 on white and on near-black
POINTS = 2000  # the most points of a line: a screen is not wider
ROWS = 40  # the most rows of a table of numbers

Number = TypeVar("Number", int, float)
NumberColumn: TypeAlias = tuple[str, Mapping[Any, float], Callable[[float], str]]


class Line(NamedTuple):
    """One series by round. A round without a value is skipped; a value that is not finite is a gap."""

    name: str
    values: Mapping[int, float]


class Band(NamedTuple):
    """The area between two series."""

    name: str
    low: Mapping[int, float]
    high: Mapping[int, float]


class Level(NamedTuple):
    """A value to compare with, drawn as a horizontal line."""

    name: str
    value: float


@dataclass(frozen=True)
class Chart:
    """One chart.

    Attributes:
        key: Its id on the page.
        caption: Its caption.
        lines: The series.
        bands: Areas behind the lines, the widest first: where they overlap, they are darker.
        level: A value to compare with.
        percent: Whether values are shown in percent.
        from_zero: Whether the y-axis starts at zero.
    """

    key: str
    caption: str
    lines: tuple[Line, ...]
    bands: tuple[Band, ...] = ()
    level: Level | None = None
    percent: bool = False
    from_zero: bool = False

    def format_value(self, value: float) -> str:
        """Write a value of this chart."""
        return format_percent(value) if self.percent else format_number(value)

    def description(self) -> str:
        """Describe the chart in words: the first, last, smallest and largest value of each line."""
        lines = "; ".join(_describe_line(line, self) for line in self.lines)
        level = f"; {self.level.name} is {self.format_value(self.level.value)}" if self.level else ""
        return f"Line chart by round. {lines}{level}."


def render_chart(chart: Chart) -> Html:
    """Return the chart as a figure of the page, which `script` draws."""
    return render_figure(chart.key, chart.caption, chart.description(), figure(chart), _gap_note(chart))


def render_figure(
    key: str, caption: str, description: str, drawing: Any, note: Html | None = None, *, tall: bool = False
) -> Html:
    """Return a plotly figure for the page, with its caption and its description for screen readers."""
    place = tag("div", id=key, class_="chart tall" if tall else "chart", role="img", aria_label=description)
    data = tag("script", Html(drawing.to_json().replace("<", "\\u003c")), type="application/json", data_chart=key)
    return tag("figure", tag("figcaption", caption), place, data, note)


def numbers_table(title: str, *charts: Chart) -> Html:
    """Return the numbers of charts as a folded table."""
    columns = [(name, values, chart.format_value) for chart in charts for name, values in _series_columns(chart)]
    return fold_numbers(title, "round", "rounds", columns)


def fold_numbers(title: str, heading: str, unit: str, columns: Sequence[NumberColumn]) -> Html:
    """Return columns of numbers as a folded table of at most `ROWS` rows, including the first and the last.

    Args:
        title: The caption of the table.
        heading: What the first column shows: the x of each row.
        unit: What the rows are, in the plural.
        columns: Name, values by x, and how to write a value.
    """
    xs = sorted({x for _, values, _ in columns for x in values})
    shown = thin_out(xs, ROWS)
    rows = (
        [format_number(x), *(write(values[x]) if x in values else "–" for _, values, write in columns)] for x in shown
    )
    note = f"{len(shown)} of {len(xs):,} {unit}." if len(shown) < len(xs) else None
    content = table(title, [heading, *(name for name, _, _ in columns)], rows, class_="numbers")
    return details("The numbers", content, tag("p", note, class_="note") if note else None)


def _series_columns(chart: Chart) -> Iterator[tuple[str, Mapping[int, float]]]:
    yield from ((line.name, line.values) for line in chart.lines)
    for band in chart.bands:
        yield from ((f"{band.name}, {edge}", values) for edge, values in (("from", band.low), ("to", band.high)))


def script() -> Html:
    """Return plotly itself and the script that draws the charts, for the end of the page."""
    from plotly.offline import get_plotlyjs

    return join(
        [
            tag("script", Html(get_plotlyjs())),
            tag("script", Html(files("discreet.report").joinpath("page_charts.js").read_text(encoding="utf-8"))),
        ]
    )


def figure(chart: Chart) -> Any:
    """Return the chart as a plotly figure."""
    import plotly.graph_objects as go

    has_legend = len(chart.lines) > 1 or chart.level is not None or bool(chart.bands)
    style = layout(percent=chart.percent, from_zero=chart.from_zero)
    drawing = go.Figure(layout=style | {"showlegend": has_legend})
    for band in chart.bands:
        _add_band(drawing, band)
    all_rounds = sorted({number for line in chart.lines for number in line.values})
    for index, line in enumerate(chart.lines):
        colour = COLOURS[(index + 1 if index else 0) % len(COLOURS)]  # the second colour is that of the level
        rounds = thin_out(sorted(line.values), POINTS)
        mode = "lines+markers" if len(rounds) <= 30 else "lines"
        drawing.add_scatter(
            x=rounds,
            y=[y if math.isfinite(y := line.values[number]) else None for number in rounds],
            name=escape(line.name),
            mode=mode,
            line={"color": colour, "width": 2},
            marker={"size": 5},
            hovertemplate=f"%{{y:{_format(chart)}}}",
        )
    if chart.level and all_rounds and math.isfinite(chart.level.value):
        first, last = all_rounds[0], all_rounds[-1]
        span = [first, last] if last > first else [first - 0.5, first + 0.5]
        drawing.add_scatter(
            x=span,
            y=[chart.level.value] * 2,
            name=escape(chart.level.name),
            mode="lines",
            line={"color": COLOURS[1], "width": 1.5, "dash": "dash"},
            hovertemplate=f"%{{y:{_format(chart)}}}",
        )
    return drawing


def thin_out(numbers: list[Number], most: int) -> list[Number]:
    """Choose at most `most` of the numbers, evenly, including the first and the last."""
    if len(numbers) <= most:
        return numbers
    step = (len(numbers) - 1) / (most - 1)
    return [numbers[round(index * step)] for index in range(most)]


def _add_band(drawing: Any, band: Band) -> None:
    rounds = thin_out(sorted(number for number in band.low if number in band.high), POINTS)
    rounds = [number for number in rounds if math.isfinite(band.low[number]) and math.isfinite(band.high[number])]
    for name, values, fill in (("low", band.low, None), (band.name, band.high, "tonexty")):
        drawing.add_scatter(
            x=rounds,
            y=[values[number] for number in rounds],
            name=escape(name),
            mode="lines",
            line={"width": 0},
            fill=fill,
            fillcolor="rgba(47,125,192,0.22)",
            showlegend=fill is not None,
            hoverinfo="skip",
        )


def layout(x_label: str = "round", *, percent: bool = False, from_zero: bool = False) -> dict[str, Any]:
    """Return the layout of a chart without a legend.

    The style of the page sets the colours of text and grid, light or dark.

    Args:
        x_label: The label of the x-axis.
        percent: Whether values are shown in percent.
        from_zero: Whether the y-axis starts at zero.
    """
    fixed: dict[str, Any] = {"fixedrange": True, "zeroline": False, "automargin": True}  # touch scrolls the page
    return {
        "height": 250,
        "margin": {"l": 8, "r": 12, "t": 8, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13},
        "showlegend": False,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "itemclick": False},
        "hovermode": "x unified",
        "hoverlabel": {"bgcolor": "#1d252c", "bordercolor": "#1d252c", "font": {"color": "#fff"}},
        "xaxis": {
            **fixed,
            "title": {"text": x_label, "font": {"size": 13}, "standoff": 6},
            "showgrid": False,
            "nticks": 8,
            "tickformat": ",d",
        },
        "yaxis": {
            **fixed,
            "tickformat": ".3~%" if percent else "",
            "rangemode": "tozero" if from_zero else "normal",
            "nticks": 6,
        },
    }


def _format(chart: Chart) -> str:
    return ".1%" if chart.percent else ".4~g"


def _describe_line(line: Line, chart: Chart) -> str:
    if not line.values:
        return f"{line.name}: no values"
    rounds = sorted(line.values)
    write = chart.format_value
    first, last = (f"{write(line.values[number])} in round {number:,}" for number in (rounds[0], rounds[-1]))
    finite = [value for value in line.values.values() if math.isfinite(value)]
    between = f", between {write(min(finite))} and {write(max(finite))}" if len(finite) > 2 else ""
    return f"{line.name}: {first}" if len(rounds) == 1 else f"{line.name}: from {first} to {last}{between}"


def _gap_note(chart: Chart) -> Html | None:
    """Say which values are not finite: the gap in a line is easily overlooked."""
    gaps = {line.name: [number for number, y in line.values.items() if not math.isfinite(y)] for line in chart.lines}
    parts = [f"{name} in {len(gap):,} rounds, first in round {min(gap):,}" for name, gap in gaps.items() if gap]
    return tag("p", f"Not a finite number: {'; '.join(parts)}.", class_="note") if parts else None
