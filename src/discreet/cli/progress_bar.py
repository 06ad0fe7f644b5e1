"""What a person sees while data is prepared: a bar on stderr for whatever takes a while, and only in a terminal."""

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
    """The same experiment; what it computes before it trains is shown."""
    with progress_bars(quiet=quiet) as watch:
        yield replace(source, paths=replace(source.paths, on_progress=watch))


@contextmanager
def progress_bars(*, quiet: bool) -> Iterator[OnProgress]:
    """What is told of preparations is shown, a bar for each, and leaves nothing behind."""
    console = stderr_console()
    if quiet or not console.is_terminal:
        yield lambda what, done, total: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), TimeRemainingColumn(compact=True))
    with Progress(*columns, console=console, transient=True) as bars:
        shown: dict[str, TaskID] = {}

        def watch(what: str, done: int, total: int) -> None:
            if what not in shown:
                shown[what] = bars.add_task(what, total=total)
            bars.update(shown[what], completed=done)

        yield watch
