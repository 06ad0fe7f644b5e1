"""Progress of a run: a bar in a terminal or a notebook, a few plain lines elsewhere."""

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Self, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from discreet.experiment.loop.callbacks import Callback, Record
from discreet.experiment.loop.notebook_bar import NotebookBar
from discreet.experiment.metrics import METRICS
from discreet.experiment.promise.promise import Privacy
from discreet.experiment.run_directory.run_files import RoundRecord
from discreet.privacy.ledger import Ledger
from discreet.privacy.wording import compact

EpsilonLeft: TypeAlias = Callable[[float], float]  # from the ε that the run has spent, how much may still be spent


def epsilon_left(privacy: Privacy | None, ledger: Path | None) -> EpsilonLeft | None:
    """Return a function that computes how much ε is left: the least of what the promise and a shared ledger leave.

    Only budgets for the promised unit and view count, since an ε of another one can't be compared; all budgets if the
    ledger has none for them. None if nothing limits ε.
    """
    if privacy is None and ledger is None:
        return None
    limit = math.inf if privacy is None else privacy.largest_epsilon
    open_ledger = functools.cache(Ledger.open)  # later lines are read as they come

    def compute(spent: float) -> float:
        return min(limit - spent, math.inf if ledger is None else _epsilon_in_ledger(open_ledger(ledger), privacy))

    return compute


def _epsilon_in_ledger(ledger: Ledger, privacy: Privacy | None) -> float:
    promised = None if privacy is None else (privacy.unit, privacy.against)
    left = [
        ((budget.unit, budget.view), float(summary["remaining"]))
        for budget, summary in zip(ledger.budgets, ledger.summary()["budgets"], strict=True)
    ]
    alike = [epsilon for kind, epsilon in left if kind == promised]
    return min(alike or [epsilon for _, epsilon in left])


@contextmanager
def progress_bar(
    rounds: int, done: int, left: EpsilonLeft | None, console: Console
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
            progress.update(task, completed=line["round"], text=_describe(shown, left))

        yield watch


@contextmanager
def notebook_bar(rounds: int, left: EpsilonLeft | None) -> Iterator[Callable[[RoundRecord], None]]:
    """Show a bar with the same contents in a notebook. Its last state stays."""
    bar = NotebookBar(rounds)
    shown: RoundRecord = {}

    def watch(line: RoundRecord) -> None:
        shown.pop("lost", None)
        shown.update(line)
        bar.show(line["round"], _describe(shown, left))

    try:
        yield watch
    finally:
        bar.close()


@contextmanager
def progress_lines(
    rounds: int, left: EpsilonLeft | None, write: Callable[[str], None]
) -> Iterator[Callable[[RoundRecord], None]]:
    """Write a plain line whenever the model was evaluated, for logs and pipes."""

    def watch(line: RoundRecord) -> None:
        if "evaluation" in line:
            write(f"round {line['round']}/{rounds}  {_describe(line, left)}")

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


def _describe(line: RoundRecord, left: EpsilonLeft | None) -> str:
    parts = [f"{line['clients']} client{'' if line['clients'] == 1 else 's'}" if "lost" not in line else "lost"]
    evaluation = line.get("evaluation") or {}
    for name in METRICS:  # a user's own would not fit on one line
        if name in evaluation:
            parts.append(f"{name} {_format_number(evaluation[name])}")
    if (epsilon := line.get("epsilon")) is not None:
        spent = float(epsilon)
        rest = "" if left is None else f", {_format_cents(left(spent), math.floor)} left"
        parts.append(f"ε {_format_cents(spent, math.ceil)}{rest}")
    return "  ".join(parts)


def _format_cents(value: float, towards: Callable[[float], int]) -> str:
    return f"{towards(value * 100) / 100:.2f}" if math.isfinite(value) else str(value)


def _format_number(value: float | str) -> str:
    return value if isinstance(value, str) else compact(value, 3)
