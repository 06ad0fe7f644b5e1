"""Progress of a run: a bar in a terminal or a notebook, a few plain lines elsewhere."""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from discreet.experiment.loop.callbacks import Callback, Record
from discreet.experiment.loop.notebook_bar import NotebookBar
from discreet.experiment.metrics import METRICS
from discreet.experiment.run_directory.run_files import RoundRecord
from discreet.privacy.wording import compact


@contextmanager
def progress_bar(
    rounds: int, done: int, budget: float | None, console: Console
) -> Iterator[Callable[[RoundRecord], None]]:
    """Show a live bar with round, clients, metrics, ε spent and left, and time left. It disappears at the end."""
    columns = (
        TextColumn("round {task.completed}/{task.total}"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[text]}"),
        TimeRemainingColumn(compact=True),
    )
    shown: RoundRecord = {}
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=rounds, completed=done, text="")

        def watch(line: RoundRecord) -> None:
            shown.pop("lost", None)
            shown.update(line)  # a value that was not measured in this round stays
            progress.update(task, completed=line["round"], text=_describe(shown, budget))

        yield watch


@contextmanager
def notebook_bar(rounds: int, budget: float | None) -> Iterator[Callable[[RoundRecord], None]]:
    """Show a bar with the same contents in a notebook. Its last state stays."""
    bar = NotebookBar(rounds)
    shown: RoundRecord = {}

    def watch(line: RoundRecord) -> None:
        shown.pop("lost", None)
        shown.update(line)
        bar.show(line["round"], _describe(shown, budget))

    try:
        yield watch
    finally:
        bar.close()


@contextmanager
def progress_lines(
    rounds: int, budget: float | None, write: Callable[[str], None]
) -> Iterator[Callable[[RoundRecord], None]]:
    """Write a plain line whenever the model was evaluated, for logs and pipes."""

    def watch(line: RoundRecord) -> None:
        if "evaluation" in line:
            write(f"round {line['round']}/{rounds}  {_describe(line, budget)}")

    yield watch


@contextmanager
def no_progress() -> Iterator[Callable[[RoundRecord], None]]:
    """Show nothing."""
    yield lambda line: None


class ProgressCallback(Callback):
    """One of these as a callback. It is shown while the run goes on, and can't stop it."""

    may_stop = False

    def __init__(self, display: AbstractContextManager[Callable[[RoundRecord], None]]) -> None:
        self._display = display

    def __enter__(self) -> Self:
        self._watch = self._display.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._display.__exit__(*error)

    def round_ended(self, record: Record) -> None:
        self._watch(dict(record))


def _describe(line: RoundRecord, budget: float | None) -> str:
    parts = [f"{line['clients']} client{'' if line['clients'] == 1 else 's'}" if "lost" not in line else "lost"]
    evaluation = line.get("evaluation") or {}
    for name in METRICS:  # a user's own would not fit on one line
        if name in evaluation:
            parts.append(f"{name} {_format_number(evaluation[name])}")
    if (epsilon := line.get("epsilon")) is not None:
        spent = float(epsilon)
        left = "" if budget is None else f", {_format_cents(budget - spent, math.floor)} left"
        parts.append(f"ε {_format_cents(spent, math.ceil)}{left}")
    return "  ".join(parts)


def _format_cents(value: float, towards: Callable[[float], int]) -> str:
    return f"{towards(value * 100) / 100:.2f}" if math.isfinite(value) else str(value)


def _format_number(value: float | str) -> str:
    return value if isinstance(value, str) else compact(value, 3)
