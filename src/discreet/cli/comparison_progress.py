"""How the runs of a comparison proceed, on stderr: one bar in a terminal, else one line for each run."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from discreet.cli.output import print_note, stderr_console

if TYPE_CHECKING:
    from discreet.experiment.comparison.cells import CellRun
    from discreet.experiment.comparison.comparison import Observer

BAR_WIDTH = 56  # columns of a progress line without the label of the run


@contextmanager
def run_progress(missing: "Sequence[CellRun]", total: int, *, quiet: bool) -> "Iterator[Observer]":
    """Show on stderr how the runs proceed: one bar in a terminal, else one line for each run; nothing if `quiet`."""
    console = stderr_console()
    if quiet:
        yield _Silent()
    elif not console.is_terminal:
        yield _Lines(total - len(missing), total)
    else:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("run {task.fields[number]}/{task.fields[total_runs]}"),
            BarColumn(bar_width=20),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[status]}"),
        )
        with Progress(*columns, console=console, transient=True) as progress:
            rounds = sum(run.rounds for run in missing)
            task = progress.add_task("", total=rounds, number=total - len(missing) + 1, total_runs=total, status="")
            yield _Bar(progress, task)


class _Silent:
    def round(self, run: "CellRun", line: dict[str, Any]) -> None: ...

    def finish_run(self, run: "CellRun", result: dict[str, Any]) -> None: ...


class _Lines(_Silent):
    """Print a line for every finished run."""

    def __init__(self, done: int, total: int) -> None:
        self.done, self.total = done, total

    def finish_run(self, run: "CellRun", result: dict[str, Any]) -> None:
        self.done += 1
        metric = _describe_metric(result["metrics"])
        print_note(f"{self.done}/{self.total}  {run.label}: {metric} in {result['seconds']:.3g} s")


class _Bar:
    """Show one bar over all runs, which moves with every round."""

    def __init__(self, progress: Any, task: Any) -> None:
        self.progress, self.task = progress, task

    def round(self, run: "CellRun", line: dict[str, Any]) -> None:
        room = max(10, self.progress.console.width - BAR_WIDTH)
        label = run.label if len(run.label) <= room else f"{run.label[: room - 1]}…"
        self.progress.update(self.task, advance=1, status=f"round {line['round']}/{run.rounds}  {label}")

    def finish_run(self, run: "CellRun", result: dict[str, Any]) -> None:
        fields = self.progress.tasks[self.task].fields
        self.progress.update(self.task, number=min(fields["number"] + 1, fields["total_runs"]))


def _describe_metric(metrics: dict[str, Any]) -> str:
    """Return the name and value of the first metric, which is the main one, or that the run diverged."""
    if any(isinstance(value, str) for value in metrics.values()):
        return "diverged"
    return next((f"{name} {value:.4g}" for name, value in metrics.items()), "nothing to measure")
