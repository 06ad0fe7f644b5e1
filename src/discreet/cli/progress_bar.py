"""Progress bars on stderr while data is prepared; only in a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from discreet.cli.output import stderr_console
from discreet.paths import OnProgress

if TYPE_CHECKING:
    from rich.progress import TaskID

    from discreet.experiment.configuration.experiment_file import Source


@contextmanager
def show_preparation(source: "Source", *, quiet: bool) -> Iterator["Source"]:
    """Yield a copy of the experiment that shows a progress bar for all it computes before training."""
    with progress_bars(quiet=quiet) as watch:
        yield replace(source, paths=replace(source.paths, on_progress=watch))


@contextmanager
def progress_bars(*, quiet: bool) -> Iterator[OnProgress]:
    """Yield a function that is called with a task, its progress and its total, and shows a bar for each task.

    The bars disappear at the end. With `quiet`, or outside a terminal, the function shows nothing.
    """
    console = stderr_console()
    if quiet or not console.is_terminal:
        yield lambda what, done, total: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), TimeRemainingColumn(compact=True))
    with Progress(*columns, console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def watch(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done)

        yield watch
