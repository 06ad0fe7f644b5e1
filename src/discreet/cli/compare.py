"""`discreet compare`: several experiments, swept fields and seeds; one table, one picture."""

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer
from rich.console import RenderableType
from rich.table import Table

from discreet.cli.options import COUNT, AcceptDataRanges, DataDir
from discreet.cli.output import Json, emit, stderr_console
from discreet.cli.progress_bar import progress_bars
from discreet.cli.run import Set

if TYPE_CHECKING:
    from discreet.experiment.comparison.cells import Cell, CellRun
    from discreet.experiment.comparison.comparison import Observer
    from discreet.experiment.comparison.comparison_results import ResultsFile
    from discreet.report.comparison_rows import Row

EPILOG = """\b
Examples:
  discreet compare pfl.toml fedavg.toml
  discreet compare pfl.toml --sweep algorithm.epochs=1,2,4 --seeds 5
  discreet compare a.toml b.toml --sweep privacy.epsilon=1,2 --out ab

\b
Writes results.jsonl, compare.html and table.md into DIR. Ctrl-C stops after
the round and keeps every finished run; the same command goes on. Seeded runs
protect nobody, and the page says so.

\b
Exit codes: 0 done; 2 wrong input, nothing written; 3 refused by the budget;
1 interrupted, or anything else.
"""

BAR = 56  # what a line of progress takes beside the name of the run

Files: TypeAlias = Annotated[list[Path], typer.Argument(metavar="FILE...", hidden=True)]


def compare(
    files: Files,
    seeds: Annotated[
        int, typer.Option(click_type=COUNT, metavar="N", show_default=False, help="Runs of each cell; default: 3.")
    ] = 3,
    sweep: Annotated[
        list[str] | None, typer.Option(metavar="NAME=V1,V2,...", help="Try each value; several make a grid.")
    ] = None,
    settings: Set = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Where results go; default: under runs/.")] = None,
    data_dir: DataDir = None,
    device: Annotated[
        Literal["auto", "cpu", "cuda"] | None, typer.Option(metavar="WHERE", help="auto (default), cpu or cuda.")
    ] = None,
    accept_data_ranges: AcceptDataRanges = False,
    as_json: Json = False,
) -> None:
    """Run experiments with several seeds each, and compare them.

    A cell is one FILE with one value of each swept field. All cells are planned first; what is wrong with one is said
    before anything runs. The table has a row a cell: the test metric's mean and standard error, and the certified
    epsilon.
    """
    from discreet.experiment.comparison import cells, comparison
    from discreet.experiment.comparison.comparison_results import ResultsFile

    overrides = (*(settings or ()), *([f"device={device}"] if device else ()))
    found = cells.expand_cells(files, [cells.parse_sweep(each) for each in sweep or ()], overrides, data_dir)
    results = ResultsFile(out if out is not None else _default_folder(files))
    results.check_folder()
    asked, there, data = (
        cells.list_runs(found, seeds),
        results.read_by_key(),
        comparison.DataCache(accept_data_ranges=accept_data_ranges),
    )
    missing = list({run.key: run for run in asked if run.key not in there}.values())  # equal files are run once
    total = len({run.key for run in asked})
    with progress_bars(quiet=as_json) as watch:
        comparison.plan_comparison(missing, data, watch)
    finished = True
    if missing:
        with run_progress(missing, total, quiet=as_json) as observer:
            finished = comparison.run_comparison(missing, results, data, observer)
    options = {"--sweep": sweep or (), "--set": overrides, "--out": [out], "--data-dir": [data_dir]}
    words = [word for option, given in options.items() for each in given if each for word in (option, str(each))]
    words += ["--accept-data-ranges"] if accept_data_ranges else []
    command = shlex.join(["discreet", "compare", *map(str, files), "--seeds", str(seeds), *words])
    print_comparison(_rows(found, asked, seeds, results), results, command, finished, as_json)


def print_comparison(rows: "list[Row]", results: "ResultsFile", command: str, finished: bool, as_json: bool) -> None:
    """The table and where all lies; the exit code says whether every run was made."""
    from discreet.report import comparison_page
    from discreet.report.comparison_rows import notes

    page, table = comparison_page.write(results.folder, rows, command)
    done = sum(len(row.results) for row in rows)
    total = sum(row.wanted for row in rows)
    stopped = None
    if not finished:
        stopped = f"Interrupted: {done} of {total} runs are done and kept. The same command goes on: {command}"
    found = {
        "rows": [row.data() for row in rows],
        "runs": done,
        "wanted": total,
        "seeded": True,
        "note": notes(rows)[-1],
        "stopped": stopped,
        "results": str(results.path),
        "page": str(page),
        "table": str(table),
    }
    emit(lambda: found, lambda: _page(rows, results, stopped), as_json=as_json)
    if stopped:
        raise typer.Exit(1)


def _rows(found: "Sequence[Cell]", asked: "Sequence[CellRun]", seeds: int, results: "ResultsFile") -> "list[Row]":
    from discreet.report.comparison_rows import Row

    there = results.read_by_key()
    keys = {cell.label: [run.key for run in asked if run.cell is cell] for cell in found}
    return [
        Row(cell.name, cell.swept, [there[key] for key in keys[cell.label] if key in there], seeds) for cell in found
    ]


def _page(rows: "list[Row]", results: "ResultsFile", stopped: str | None) -> Iterator[RenderableType]:
    from discreet.report.comparison_rows import columns, describe_shared, notes

    found = columns(rows)
    told = [column for column in found if column.shared is None]
    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in told:
        grid.add_column(column.heading, justify="left" if column.text else "right", overflow="fold")  # nothing is cut
    for cells in zip(*(column.cells for column in told), strict=True):
        grid.add_row(*cells)
    yield grid
    yield ""
    yield from filter(None, [describe_shared(found), *notes(rows)])
    yield ""
    yield f"Results lie in {results.folder}: compare.html to look at, table.md, results.jsonl"
    if stopped:
        yield ""
        yield stopped


@contextmanager
def run_progress(missing: "Sequence[CellRun]", total: int, *, quiet: bool) -> "Iterator[Observer]":
    """One bar over all runs in a terminal, a line a run in a log, nothing for a program; all on stderr."""
    console = stderr_console()
    if quiet:
        yield _Silent()
    elif not console.is_terminal:
        yield _Lines(total - len(missing), total)
    else:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("run {task.fields[number]}/{task.fields[of]}"),
            BarColumn(bar_width=20),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[said]}"),
        )
        with Progress(*columns, console=console, transient=True) as progress:
            rounds = sum(run.rounds for run in missing)
            task = progress.add_task("", total=rounds, number=total - len(missing) + 1, of=total, said="")
            yield _Bar(progress, task)


class _Silent:
    def round(self, run: "CellRun", line: dict[str, Any]) -> None: ...

    def ended(self, run: "CellRun", result: dict[str, Any]) -> None: ...


class _Lines(_Silent):
    """A line for every run that is done."""

    def __init__(self, done: int, total: int) -> None:
        self.done, self.total = done, total

    def ended(self, run: "CellRun", result: dict[str, Any]) -> None:
        self.done += 1
        said = f"{self.done}/{self.total}  {run.label}: {_describe_metric(result['metrics'])}"
        print(f"{said} in {result['seconds']:.3g} s", file=sys.stderr, flush=True)  # noqa: T201


class _Bar:
    """The same as a bar; it moves with every round."""

    def __init__(self, progress: Any, task: Any) -> None:
        self.progress, self.task = progress, task

    def round(self, run: "CellRun", line: dict[str, Any]) -> None:
        room = max(10, self.progress.console.width - BAR)
        label = run.label if len(run.label) <= room else f"{run.label[: room - 1]}…"
        self.progress.update(self.task, advance=1, said=f"round {line['round']}/{run.rounds}  {label}")

    def ended(self, run: "CellRun", result: dict[str, Any]) -> None:
        shown = self.progress.tasks[self.task].fields
        self.progress.update(self.task, number=min(shown["number"] + 1, shown["of"]))


def _describe_metric(metrics: dict[str, Any]) -> str:
    """The first metric, which is the one that counts; or that the run diverged."""
    if any(isinstance(value, str) for value in metrics.values()):
        return "diverged"
    return next((f"{name} {value:.4g}" for name, value in metrics.items()), "nothing to measure")


def _default_folder(files: Sequence[Path]) -> Path:
    """The same for the same files, so that the same command goes on."""
    named = "-".join(file.stem for file in files[:3]) + (f"-and-{len(files) - 3}-more" if len(files) > 3 else "")
    return Path("runs") / f"compare-{named}"
