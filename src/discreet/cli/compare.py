"""`discreet compare`: run several experiments, swept fields and seeds, and write one table and one chart."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from rich.console import RenderableType

from discreet.cli.options import COUNT, AcceptDataRanges, DataDir, Device, OutputDir, Overrides, number_option
from discreet.cli.output import Json, emit, print_note, stderr_console
from discreet.cli.progress_bar import progress_bars
from discreet.cli.text_table import text_table
from discreet.cli.trust_options import TrustOption, choose_trust

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
The results are results.jsonl, compare.html and table.md. Ctrl-C stops after
the current round and keeps every finished run; the same command continues.
All runs are seeded, so they protect nobody, and the page says so.

\b
Exit codes: 0 done; 2 wrong input, nothing written; 3 refused by the privacy
budget; 1 interrupted, or anything else.
"""

BAR_WIDTH = 56  # columns of a progress line without the label of the run

Files: TypeAlias = Annotated[list[Path], typer.Argument(metavar="FILE...", hidden=True)]


def compare(
    files: Files,
    seeds: Annotated[int, number_option(COUNT, "N", "Number of runs of each cell.")] = 3,
    sweep: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=V1,V2,...", help="Run every value of a field; repeat it for a grid."),
    ] = None,
    settings: Overrides = None,
    out: OutputDir = None,
    data_dir: DataDir = None,
    device: Device = None,
    accept_data_ranges: AcceptDataRanges = False,
    trust: TrustOption = False,
    as_json: Json = False,
) -> None:
    """Run experiments with several seeds, and compare the results.

    A cell is one experiment FILE with one value of each swept field. All cells are planned first, so an error in one
    of them is reported before anything runs. The table has one row for each cell: mean and standard error of the test
    metric, and the certified epsilon; one that a user's own code only declares has a †, and `on_word_of` in JSON.
    """
    from discreet.experiment.comparison import cells, comparison
    from discreet.experiment.comparison.comparison_results import ResultsFile

    overrides = (*(settings or ()), *([f"device={device}"] if device else ()))
    sweeps = [cells.parse_sweep(field) for field in sweep or ()]
    grid = cells.expand_cells(files, sweeps, overrides, data_dir, choose_trust(trust, files[0]))
    results = ResultsFile(out if out is not None else _default_folder(files))
    results.check_folder()
    runs, finished_runs = cells.list_runs(grid, seeds), results.read_by_key()
    data = comparison.DataCache(accept_data_ranges=accept_data_ranges)
    missing = list({run.key: run for run in runs if run.key not in finished_runs}.values())  # equal cells run once
    total = len({run.key for run in runs})
    with progress_bars(quiet=as_json) as watch:
        comparison.plan_comparison(missing, data, watch)
    finished = True
    if missing:
        with run_progress(missing, total, quiet=as_json) as observer:
            finished = comparison.run_comparison(missing, results, data, observer)
    options = {"--sweep": sweep or (), "--set": overrides, "--out": [out], "--data-dir": [data_dir]}
    words = [word for option, values in options.items() for value in values if value for word in (option, str(value))]
    words += [*(["--accept-data-ranges"] if accept_data_ranges else []), *(["--trust"] if trust else [])]
    command = shlex.join(["discreet", "compare", *map(str, files), "--seeds", str(seeds), *words])
    print_comparison(_rows(grid, runs, seeds, results), results, command, finished, as_json)


def print_comparison(rows: "list[Row]", results: "ResultsFile", command: str, finished: bool, as_json: bool) -> None:
    """Write the page and the table, and print the comparison.

    Raises:
        typer.Exit: With code 1 if the comparison was interrupted.
    """
    from discreet.report import comparison_page
    from discreet.report.comparison_rows import notes

    page, table = comparison_page.write(results.folder, rows, command)
    done = sum(len(row.results) for row in rows)
    total = sum(row.planned_runs for row in rows)
    stopped = None
    if not finished:
        stopped = f"Interrupted: {done} of {total} runs are done and kept. To continue: {command}"
    data = {
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
    emit(lambda: data, lambda: _page(rows, results, stopped), as_json=as_json)
    if stopped:
        raise typer.Exit(1)


def _rows(grid: "Sequence[Cell]", runs: "Sequence[CellRun]", seeds: int, results: "ResultsFile") -> "list[Row]":
    from discreet.report.comparison_rows import Row

    by_key = results.read_by_key()
    keys = {cell.label: [run.key for run in runs if run.cell is cell] for cell in grid}
    return [
        Row(cell.name, cell.swept, [by_key[key] for key in keys[cell.label] if key in by_key], seeds) for cell in grid
    ]


def _page(rows: "list[Row]", results: "ResultsFile", stopped: str | None) -> Iterator[RenderableType]:
    from discreet.report.comparison_rows import columns, describe_shared, notes

    all_columns = columns(rows)
    differing = [column for column in all_columns if column.shared_value is None]
    right = {column.heading for column in differing if not column.is_text}
    table = text_table(*(column.heading for column in differing), right=right, gap=2)
    for cells in zip(*(column.cells for column in differing), strict=True):
        table.add_row(*cells)
    yield table
    yield ""
    yield from filter(None, [describe_shared(all_columns), *notes(rows)])
    yield ""
    yield f"Results are in {results.folder}: compare.html (the page), table.md, results.jsonl"
    if stopped:
        yield ""
        yield stopped


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


def _default_folder(files: Sequence[Path]) -> Path:
    """Name the folder by the files alone, so that the same command continues in it."""
    names = "-".join(file.stem for file in files[:3]) + (f"-and-{len(files) - 3}-more" if len(files) > 3 else "")
    return Path("runs") / f"compare-{names}"
