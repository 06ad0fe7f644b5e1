"""The charts of a comparison: a metric by the first swept field, or one dot for each experiment."""

import math
from collections.abc import Mapping, Sequence

from discreet.experiment.metrics import capitalize, is_share
from discreet.report.comparison_columns import short_names
from discreet.report.comparison_promises import DIFFERENT, describe_promises, differ_in_promise
from discreet.report.comparison_rows import Row, notes
from discreet.report.curves import Curve, Panel, Picture, Point


def comparison_picture(rows: Sequence[Row], title: str) -> Picture:
    """Return the charts of all metrics of a comparison, with what a reader must know to compare the rows."""
    metrics = list(dict.fromkeys(row.metric for row in rows if row.metric))
    by_metric = {metric: [row for row in rows if row.metric == metric] for metric in metrics}
    panels = tuple(metric_chart(measured, metric) for metric, measured in by_metric.items())
    remarks = [chart_note(measured) for measured in by_metric.values()]
    return Picture(title, panels, tuple(dict.fromkeys(filter(None, [*remarks, *notes(rows)]))))


def chart_note(rows: Sequence[Row]) -> str:
    """Say which rows are not drawn, and that rows of different promises are on one axis. Empty if neither is so."""
    missing = [_join_fields(row, {path: path for path in row.swept}) for row in rows if row.is_missing]
    sentences = [f"Not drawn, because the runs diverged: {'; '.join(missing)}."] if missing else []
    if differ_in_promise(rows, next(iter(rows[0].swept), "")):
        sentences.append(DIFFERENT)
    return " ".join(sentences)


def metric_chart(rows: Sequence[Row], metric: str) -> Panel:
    """Return the chart of a metric after the last round, with standard errors where there are several seeds.

    Rows that promise different things have different symbols, and the legend says what each promises.
    """
    title, swept = f"{capitalize(metric)} after the last round", list(rows[0].swept)
    errors = ", with standard errors" if any(row.standard_error is not None for row in rows) else ""
    if not swept:
        return _dot_chart(rows, metric, f"{title}{errors}")
    x_field, *others = swept
    is_apart = differ_in_promise(rows, x_field)
    positions = _positions(list(dict.fromkeys(row.swept[x_field] for row in rows)))
    series: dict[str, dict[float, Row]] = {}
    for row in rows:
        series.setdefault(_join_fields(row, short_names(others)), {})[positions[row.swept[x_field]]] = row
    if is_apart:
        series = {
            f"{name}: {describe_promises(list(cells.values()), x_field)}": cells for name, cells in series.items()
        }
    low, high = min(positions.values()), max(positions.values())
    return Panel(
        f"{title} by {x_field}{errors}",
        short_names(swept)[x_field],
        "",
        tuple(_metric_curve(name, cells) for name, cells in series.items()),
        log_x=0 < 5 * low <= high < math.inf,  # numbers that are far apart
        percent=is_share(metric),
        x_names=tuple((x, name) for name, x in positions.items()),
    )


def _dot_chart(rows: Sequence[Row], metric: str, title: str) -> Panel:
    """Return one dot for each row, with a symbol for each promise."""
    by_promise: dict[str, dict[float, Row]] = {}
    for place, row in enumerate(rows):
        name = describe_promises([row]) if differ_in_promise(rows) else metric
        by_promise.setdefault(name, {})[float(place)] = row
    curves = tuple(_metric_curve(name, cells) for name, cells in by_promise.items())
    names = tuple((float(place), row.name) for place, row in enumerate(rows))
    return Panel(title, metric, "", curves, percent=is_share(metric), x_names=names, as_rows=True)


def _metric_curve(name: str, rows: Mapping[float, Row]) -> Curve:
    known = {x: row for x, row in rows.items() if not row.is_missing}
    means = tuple(Point(x, math.nan if row.mean is None else row.mean) for x, row in known.items())
    return Curve(name, means, errors=tuple(row.standard_error or 0.0 for row in known.values()))


def _positions(values: list[str]) -> dict[str, float]:
    """Return where each value is along the x-axis: at its number, or one after another if some are not numbers."""
    try:
        return {value: float(value) for value in values}
    except ValueError:
        return {value: float(place) for place, value in enumerate(values)}


def _join_fields(row: Row, names: Mapping[str, str]) -> str:
    """Name a row by its experiment and its values of some swept fields, given as path and name."""
    return ", ".join([row.name, *(f"{name} {row.swept[path]}" for path, name in names.items())])
