"""The charts of a run's diagnostics: one function for each subject, which yields nothing where there are no numbers."""

from collections.abc import Iterator

from discreet.experiment.metrics import capitalize, is_share
from discreet.experiment.run_directory.run_data import RunData, Series
from discreet.report.number_format import format_number, format_percent
from discreet.report.plotly_figures import Band, Chart, Level, Line


def quality_charts(run: RunData) -> Iterator[Chart]:
    """Chart every test metric, with its value on training data if there is one, and the gap of the first metric."""
    metrics, training = run.metrics(), run.training_metrics
    for index, (name, series) in enumerate(metrics.items()):
        training_line = [Line("on training examples", training[name])] if name in training else []
        yield Chart(
            f"metric-{index}",
            capitalize(name),
            (Line(name, series), *training_line),
            level=constant_level(run, name),
            percent=is_share(name),
        )
    yield from [_gap_chart(name, series, training[name]) for name, series in metrics.items() if name in training][:1]


def constant_level(run: RunData, metric: str) -> Level | None:
    """Return the squared error of a constant prediction: a model above it has learned nothing. None for others."""
    return Level("a constant", run.constant_error) if metric == "mse" and run.constant_error is not None else None


def norm_charts(run: RunData) -> Iterator[Chart]:
    """Chart the norms of the clients' updates before any clip, with percentiles and the clip norm."""
    norms = {name: run.series(f"norms.{name}") for name in ("median", "mean", "max")}
    centre = "median" if norms["median"] else "mean"
    if not norms[centre]:
        return
    lines = (Line(centre, norms[centre]), *([Line("largest", norms["max"])] if norms["max"] else []))
    edges = (
        ("5th–95th percentile", run.series("norms.p5"), run.series("norms.p95")),
        ("25th–75th percentile", run.series("norms.p25"), run.series("norms.p75")),
    )
    bands = tuple(Band(name, low, high) for name, low, high in edges if low and high)
    clip = run.value("algorithm", "mechanism", "clip_norm")
    level = Level("clip norm", float(clip)) if isinstance(clip, int | float) else None
    yield Chart("norms", "Norm of an update", lines, bands=bands, level=level, from_zero=True)


def clipping_charts(run: RunData) -> Iterator[Chart]:
    """Chart the fraction of clipped updates, and how much of an update the clip left."""
    if run.value("algorithm", "mechanism", "kind") == "none":
        return  # nothing is clipped there, and a row of zeros would mislead
    share = run.series("clipped", "clipped_fraction")
    if share:
        yield Chart("clipped", "Fraction of updates clipped", (Line("clipped", share),), percent=True, from_zero=True)
    kept = [(name, run.series(f"kept.{name}")) for name in ("mean", "deviation")]
    if all(series for _, series in kept):
        lines = tuple(Line(name, series) for name, series in kept)
        yield Chart("kept", "Fraction of an update that the clip left", lines, percent=True, from_zero=True)


def signal_charts(run: RunData) -> Iterator[Chart]:
    """Chart the signal-to-noise ratio of the sum."""
    ratio = run.series("signal_to_noise")
    if ratio:
        level = Level("signal equals noise", 1.0)
        yield Chart("signal", "Signal to noise of the sum", (Line("signal to noise", ratio),), level=level)


def format_metric(name: str, value: float) -> str:
    """Write the value of a metric, a share in percent."""
    return format_percent(value) if is_share(name) else format_number(value)


def _gap_chart(metric: str, test: Series, training: Series) -> Chart:
    gap = {number: training[number] - value for number, value in test.items() if number in training}
    caption = f"Gap: {metric} on training examples minus {metric} on test examples"
    return Chart("gap", caption, (Line("gap", gap),), percent=is_share(metric))
