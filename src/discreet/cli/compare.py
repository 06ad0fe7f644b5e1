"""`discreet compare`: run several experiments, swept fields and seeds, and write one table and one chart."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from rich.console import RenderableType

from discreet.cli.comparison_progress import run_progress
from discreet.cli.options import COUNT, AcceptDataRanges, DataDir, Device, OutputDir, Overrides, number_option
from discreet.cli.output import PIPE_WIDTH, Json, emit
from discreet.cli.progress_bar import progress_bars
from discreet.cli.text_table import text_table
from discreet.cli.trust_options import TrustOption, choose_trust

if TYPE_CHECKING:
    from discreet.experiment.comparison.cells import CellRun
    from discreet.experiment.comparison.choice import CellGroup
    from discreet.experiment.comparison.comparison_results import ResultsFile
    from discreet.report.comparison_rows import Row

EPILOG = """\b
Examples:
  discreet compare pfl.toml fedavg.toml
  discreet compare pfl.toml --sweep algorithm.epochs=1,2,4 --seeds 5
  discreet compare a.toml b.toml --sweep privacy.epsilon=1,2 --out ab
  discreet compare a.toml b.toml --choose algorithm.learning_rate=0.1,1
  discreet compare a.toml b.toml --latex table.tex --picture table.pdf

\b
The results are results.jsonl, compare.html and table.md. Ctrl-C stops after
the current round and keeps every finished run; the same command continues.
A directory that holds another comparison is refused. Files of --latex, --csv
and --picture are replaced.
All runs are seeded, so they protect nobody, and the page says so.

\b
Exit codes: 0 done; 2 wrong input, nothing written; 3 refused by the privacy
budget; 1 interrupted, or anything else.
"""

GAP = 2  # spaces between two columns

Files: TypeAlias = Annotated[list[Path], typer.Argument(metavar="FILE...", hidden=True)]


def compare(
    files: Files,
    seeds: Annotated[int, number_option(COUNT, "N", "Number of runs of each cell.")] = 3,
    sweep: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=V1,V2,...", help="Run every value of a field; repeat it for a grid."),
    ] = None,
    choose: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=V1,V2,...", help="Run every value, and report the best on validation data."),
    ] = None,
    settings: Overrides = None,
    out: OutputDir = None,
    latex: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the table in LaTeX (booktabs).")] = None,
    csv_file: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Write the table as CSV, with all digits.")
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the charts into this file: .svg, .pdf, .png or .html."),
    ] = None,
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

    --choose needs a validation split (task.validation_fraction). Each seed then takes the values that are best on its
    validation data, and the row has the test metric of those runs: no test data has chosen anything. A recipe that
    lacks the field is run as its file says.
    """
    from discreet.experiment.comparison import cells, choice, comparison
    from discreet.experiment.comparison.comparison_results import ResultsFile
    from discreet.report import comparison_files

    comparison_files.check_paths(latex, csv_file, picture)
    overrides = (*(settings or ()), *([f"device={device}"] if device else ()))
    choices = [choice.parse_choice(field) for field in choose or ()]
    sweeps = [*(cells.parse_sweep(field) for field in sweep or ()), *choices]
    left_out = choice.find_left_out(files, choices)
    grid = cells.expand_cells(files, sweeps, overrides, data_dir, choose_trust(trust, files[0]), left_out)
    results = ResultsFile(out if out is not None else _default_folder(files))
    results.check_folder()
    results.check_same_comparison(grid)
    runs, finished_runs = cells.list_runs(grid, seeds), results.read_by_key()
    data = comparison.DataCache(accept_data_ranges=accept_data_ranges)
    missing = list({run.key: run for run in runs if run.key not in finished_runs}.values())  # equal cells run once
    total = len({run.key for run in runs})
    with progress_bars(quiet=as_json) as watch:
        comparison.plan_comparison(missing, data, watch, is_choosing=bool(choices))
    finished = True
    if missing:
        with run_progress(missing, total, quiet=as_json) as observer:
            finished = comparison.run_comparison(missing, results, data, observer)
    options = {
        "--sweep": sweep or (),
        "--choose": choose or (),
        "--set": overrides,
        "--out": [out],
        "--data-dir": [data_dir],
        "--latex": [latex],
        "--csv": [csv_file],
        "--picture": [picture],
    }
    words = [word for option, values in options.items() for value in values if value for word in (option, str(value))]
    words += [*(["--accept-data-ranges"] if accept_data_ranges else []), *(["--trust"] if trust else [])]
    command = shlex.join(["discreet", "compare", *map(str, files), "--seeds", str(seeds), *words])
    rows = _rows(choice.group_cells(grid, [path for path, _ in choices]), runs, seeds, results)
    written = comparison_files.write_files(rows, command, latex, csv_file, picture)
    without = [f"{file} has no {' and no '.join(fields)} to choose." for file, fields in left_out.items()]
    print_comparison(rows, results, command, finished, as_json, written, without)


def print_comparison(
    rows: "list[Row]",
    results: "ResultsFile",
    command: str,
    finished: bool,
    as_json: bool,
    written: Sequence[Path] = (),
    left_out: Sequence[str] = (),
) -> None:
    """Write the page and the table, and print the comparison.

    Args:
        rows: The rows of the table.
        results: Where the results are kept.
        command: The command that repeats the comparison.
        finished: Whether all runs are done.
        as_json: Whether to print one JSON object.
        written: The other files that were written.
        left_out: Sentences that say which file has no field to choose.

    Raises:
        typer.Exit: With code 1 if the comparison was interrupted.
    """
    from discreet.report import comparison_page
    from discreet.report.comparison_rows import notes

    page, table = comparison_page.write(results.folder, rows, command)
    done = sum(len(row.results) * row.tried for row in rows)
    total = sum(row.planned_runs * row.tried for row in rows)
    stopped = None
    if not finished:
        stopped = f"Interrupted: {done} of {total} runs are done and kept. To continue: {command}"
    data = {
        "rows": [row.data() for row in rows],
        "runs": done,
        "wanted": total,
        "seeded": True,
        "note": notes(rows)[-1],
        "left_out": list(left_out),
        "stopped": stopped,
        "results": str(results.path),
        "page": str(page),
        "table": str(table),
        "files": list(map(str, written)),
    }
    emit(lambda: data, lambda: _page(rows, results, stopped, written, left_out), as_json=as_json)
    if stopped:
        raise typer.Exit(1)


def _rows(groups: "Sequence[CellGroup]", runs: "Sequence[CellRun]", seeds: int, results: "ResultsFile") -> "list[Row]":
    """Return one row for each group of cells: its only cell, or what each seed chose among them."""
    from discreet.report.comparison_rows import Row

    by_key, rows = results.read_by_key(), []
    for group in groups:
        best = group.choose(runs, by_key)
        chosen = {path: [candidate.values[path] for candidate in best] for path in group.chosen}
        rows.append(Row(group.name, group.swept, [each.result for each in best], seeds, chosen, len(group.cells)))
    return rows


def _page(
    rows: "list[Row]", results: "ResultsFile", stopped: str | None, written: Sequence[Path], left_out: Sequence[str]
) -> Iterator[RenderableType]:
    from discreet.report.comparison_columns import narrow_columns
    from discreet.report.comparison_rows import notes

    differing, sentences = narrow_columns(rows)
    for least in ("seconds", "noise"):  # which the page has too
        if _width([column.least_width for column in differing]) > PIPE_WIDTH:
            differing = [column for column in differing if column.heading != least]
    right = {column.heading for column in differing if not column.is_text}
    table = text_table(*(column.heading for column in differing), right=right, gap=GAP)
    if _width([max(len(column.heading), column.least_width) for column in differing]) > PIPE_WIDTH:
        for column, drawn in zip(differing, table.columns, strict=True):
            drawn.width = column.least_width  # so that headings break, and no cell does
    for cells in zip(*(column.cells for column in differing), strict=True):
        table.add_row(*cells)
    yield table
    yield ""
    yield from [*sentences, *left_out, *notes(rows)]
    yield ""
    yield f"Results are in {results.folder}: compare.html (the page), table.md, results.jsonl"
    if written:
        yield f"Written: {', '.join(map(str, written))}"
    if stopped:
        yield ""
        yield stopped


def _width(columns: Sequence[int]) -> int:
    """Return the width of a table whose columns have these widths."""
    return sum(columns) + GAP * (len(columns) - 1)


def _default_folder(files: Sequence[Path]) -> Path:
    """Name the folder by the files alone, so that the same command continues in it."""
    names = "-".join(file.stem for file in files[:3]) + (f"-and-{len(files) - 3}-more" if len(files) > 3 else "")
    return Path("runs") / f"compare-{names}"
