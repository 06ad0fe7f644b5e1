"""What can be drawn of a run's diagnostics, one function for each subject; where the run is silent, nothing is."""

from collections.abc import Iterator

from discreet.report.plotly_figures import Band, Chart, Level, Line
from discreet.report.run_data import RunData, Series


def quality_charts(story: RunData) -> Iterator[Chart]:
    """Every metric on test data, beside it on training data where that was asked for; and the gap of the first."""
    metrics, trained = story.metrics(), story.training_metrics
    for place, (name, series) in enumerate(metrics.items()):
        beside = [Line("on training examples", trained[name])] if name in trained else []
        yield Chart(
            f"metric-{place}",
            capitalize(name),
            (Line(name, series), *beside),
            level=constant_level(story, name),
            percent=name == "accuracy",
        )
    yield from [_gap_chart(name, series, trained[name]) for name, series in metrics.items() if name in trained][:1]


def constant_level(story: RunData, metric: str) -> Level | None:
    """What a squared error must be below: a model that is no better has learned nothing."""
    return Level("a constant", story.constant_error) if metric == "mse" and story.constant_error is not None else None


def norm_charts(story: RunData) -> Iterator[Chart]:
    found = {name: story.series(f"norms.{name}") for name in ("median", "mean", "max")}
    middle = "median" if found["median"] else "mean"
    if not found[middle]:
        return
    lines = (Line(middle, found[middle]), *([Line("largest", found["max"])] if found["max"] else []))
    edges = (
        ("5th–95th percentile", story.series("norms.p5"), story.series("norms.p95")),
        ("25th–75th percentile", story.series("norms.p25"), story.series("norms.p75")),
    )
    bands = tuple(Band(name, low, high) for name, low, high in edges if low and high)
    clip = story.value("algorithm", "mechanism", "clip_norm")
    level = Level("clip norm", float(clip)) if isinstance(clip, int | float) else None
    yield Chart("norms", "Norm of an update", lines, bands=bands, level=level, from_zero=True)


def clipping_charts(story: RunData) -> Iterator[Chart]:
    if story.value("algorithm", "mechanism", "kind") == "none":
        return  # updates are clipped by nobody there, so a row of zeros would mislead
    share = story.series("clipped", "clipped_fraction")
    if share:
        yield Chart("clipped", "Fraction of updates clipped", (Line("clipped", share),), percent=True, from_zero=True)
    left = [(name, story.series(f"kept.{name}")) for name in ("mean", "deviation")]
    if all(series for _, series in left):
        lines = tuple(Line(name, series) for name, series in left)
        yield Chart("kept", "What the clip left of an update", lines, percent=True, from_zero=True)


def signal_charts(story: RunData) -> Iterator[Chart]:
    ratio = story.series("signal_to_noise")
    if ratio:
        level = Level("as loud as the noise", 1.0)
        yield Chart("signal", "Signal to noise of the sum", (Line("signal to noise", ratio),), level=level)


def capitalize(name: str) -> str:
    return name.upper() if name == "mse" else name[:1].upper() + name[1:]


def _gap_chart(metric: str, tested: Series, trained: Series) -> Chart:
    gap = {at: trained[at] - value for at, value in tested.items() if at in trained}
    caption = f"Gap: {metric} on training examples, less that on test examples"
    return Chart("gap", caption, (Line("gap", gap),), percent=metric == "accuracy")
