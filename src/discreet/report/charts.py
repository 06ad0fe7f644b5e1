"""The charts of a run's diagnostics: one function for each subject, which yields nothing where there are no numbers."""

import math
from collections.abc import Iterator
from typing import Any

from discreet.experiment.metrics import capitalize, is_share
from discreet.experiment.run_directory.run_data import RunData, Series
from discreet.report.curves import Band, Curve, Level, Panel, Point, points_by_x
from discreet.report.number_format import format_count, format_number, format_percent


def round_chart(title: str, lines: dict[str, Series], **options: Any) -> Panel:
    """Return a chart of series by round; `options` are further fields of the panel."""
    curves = (Curve(name, points_by_x(series)) for name, series in lines.items())
    return Panel(title, "round", "", tuple(curves), whole_x=True, **options)


def quality_charts(run: RunData) -> Iterator[Panel]:
    """Chart every test metric, with those on validation and training data if known, and the gap of the first metric."""
    metrics, training = run.metrics(), run.training_metrics
    others = {"on validation examples": run.validation_metrics, "on training examples": training}
    for name, series in metrics.items():
        lines = {name: series} | {where: numbers[name] for where, numbers in others.items() if name in numbers}
        level = constant_level(run, name)
        yield round_chart(capitalize(name), lines, levels=(level,) if level else (), percent=is_share(name))
    yield from [_gap_chart(name, series, training[name]) for name, series in metrics.items() if name in training][:1]


def constant_level(run: RunData, metric: str) -> Level | None:
    """Return the squared error of a constant prediction: a model above it has learned nothing. None for others."""
    return Level("a constant", run.constant_error) if metric == "mse" and run.constant_error is not None else None


def norm_charts(run: RunData) -> Iterator[Panel]:
    """Chart the norms of the clients' updates before any clip, with percentiles and the clip norm."""
    norms = {name: run.series(f"norms.{name}") for name in ("median", "mean", "max")}
    centre = "median" if norms["median"] else "mean"
    if not norms[centre]:
        return
    lines = {centre: norms[centre]} | ({"largest": norms["max"]} if norms["max"] else {})
    edges = (
        ("5th–95th percentile", run.series("norms.p5"), run.series("norms.p95")),
        ("25th–75th percentile", run.series("norms.p25"), run.series("norms.p75")),
    )
    bands = tuple(_band(name, low, high) for name, low, high in edges if low and high)
    clip = run.value("algorithm", "mechanism", "clip_norm")
    levels = (Level("clip norm", float(clip)),) if isinstance(clip, int | float) else ()
    yield round_chart("Norm of an update", lines, bands=bands, levels=levels, from_zero=True)


def clipping_charts(run: RunData) -> Iterator[Panel]:
    """Chart the fraction of clipped examples or updates, and how much of an update the clip left."""
    examples = run.series("clipped_examples")
    if examples:
        yield round_chart("Fraction of examples clipped", {"clipped": examples}, percent=True, from_zero=True)
    if run.value("algorithm", "mechanism", "kind") == "none":
        return  # nothing is clipped there, and a row of zeros would mislead
    share = run.series("clipped", "clipped_fraction")
    if share:
        yield round_chart("Fraction of updates clipped", {"clipped": share}, percent=True, from_zero=True)
    kept = {name: run.series(f"kept.{name}") for name in ("mean", "deviation")}
    if all(kept.values()):
        yield round_chart("Fraction of an update that the clip left", kept, percent=True, from_zero=True)


def signal_charts(run: RunData) -> Iterator[Panel]:
    """Chart the signal-to-noise ratio of the sum."""
    ratio = run.series("signal_to_noise")
    if ratio:
        level = Level("signal equals noise", 1.0)
        yield round_chart("Signal to noise of the sum", {"signal to noise": ratio}, levels=(level,))


def format_metric(name: str, value: float) -> str:
    """Write the value of a metric, a share in percent."""
    return format_percent(value) if is_share(name) else format_number(value)


def describe_gaps(chart: Panel) -> str:
    """Say which values are not finite: the gap in a line is easily overlooked. Empty if all are."""
    gaps = {curve.name: [point.x for point in curve.points if not math.isfinite(point.y)] for curve in chart.curves}
    parts = [
        f"{name} in {format_count(len(gap), 'rounds')}, first in round {min(gap):,}"
        for name, gap in gaps.items()
        if gap
    ]
    return f"Not a finite number: {'; '.join(parts)}." if parts else ""


def _band(name: str, low: Series, high: Series) -> Band:
    rounds = sorted(low.keys() & high.keys())
    return Band(name, *(tuple(Point(number, edge[number]) for number in rounds) for edge in (low, high)))


def _gap_chart(metric: str, test: Series, training: Series) -> Panel:
    gap = {number: training[number] - value for number, value in test.items() if number in training}
    caption = f"Gap: {metric} on training examples minus {metric} on test examples"
    return round_chart(caption, {"gap": gap}, percent=is_share(metric))
