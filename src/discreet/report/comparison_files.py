"""A comparison for a paper: its table in LaTeX or as CSV, and its charts as one picture."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from discreet.errors import InvalidInput
from discreet.experiment.metrics import is_share
from discreet.privacy.wording import join_words
from discreet.report.comparison_charts import comparison_picture
from discreet.report.comparison_columns import narrow_columns
from discreet.report.comparison_page import comparison_title
from discreet.report.comparison_rows import Row, notes
from discreet.report.latex_table import render_table
from discreet.report.picture_files import check_picture_path, check_writable, save_picture
from discreet.report.run_page import write_atomically

ENDINGS = {"--latex": ".tex", "--csv": ".csv"}
UNPRINTED = ("seconds", "noise")  # columns that a paper's table rarely has room for; the CSV has them
VALUES = ("metric", "unit_of_metric", "mean", "standard_error", "validation", "runs", "diverged")
PROMISE = ("epsilon", "delta", "unit", "against", "on_word_of")
OTHERS = ("noise_multiplier", "rounds", "clients", "device", "seconds")


def check_paths(latex: Path | None, csv_file: Path | None, picture: Path | None) -> None:
    """Check that the files can be written before anything is run.

    Raises:
        InvalidInput: A name has another ending, or a file can't be written.
    """
    for option, path in (("--latex", latex), ("--csv", csv_file)):
        if path is None:
            continue
        if path.suffix.lower() != ENDINGS[option]:
            raise InvalidInput(f"The file of {option} must end in {ENDINGS[option]}, and got {path.name!r}.")
        check_writable(path)
    if picture is not None:
        check_picture_path(picture)


def write_files(
    rows: Sequence[Row], command: str, latex: Path | None, csv_file: Path | None, picture: Path | None
) -> list[Path]:
    """Write those files that are wanted, each completely or not at all, and return their paths."""
    written = []
    if latex is not None:
        written.append(write_atomically(latex, render_latex(rows, command, latex.stem)))
    if csv_file is not None:
        written.append(write_atomically(csv_file, render_csv(rows)))
    if picture is not None:
        written.append(save_picture(comparison_picture(rows, comparison_title(rows)), picture))
    return written


def render_latex(rows: Sequence[Row], command: str, name: str) -> str:
    """Return the table in LaTeX: what all rows share and every note are in its caption."""
    differing, sentences = narrow_columns(rows)
    shown = [column for column in differing if column.heading not in UNPRINTED]
    return render_table(
        [column.heading for column in shown],
        list(zip(*(column.cells for column in shown), strict=True)),
        is_text=[column.is_text for column in shown],
        caption=f"{comparison_title(rows)}. {' '.join([*sentences, *notes(rows)])}",
        label=f"tab:{name}",
        comment=[r"Needs \usepackage{booktabs}.", f"Made by: {command}"],
    )


def render_csv(rows: Sequence[Row]) -> str:
    """Return all numbers with all their digits, one line for each row of the table."""
    swept = list(dict.fromkeys(path for row in rows for path in row.swept))
    chosen = list(dict.fromkeys(path for row in rows for path in row.chosen))
    file = io.StringIO()
    lines = csv.writer(file, lineterminator="\n")
    lines.writerow(["experiment", *swept, *(f"chosen {path}" for path in chosen), *VALUES, *PROMISE, *OTHERS])
    for row in rows:
        data = row.data() | {"unit_of_metric": "share" if is_share(row.metric or "") else ""}
        data["on_word_of"] = join_words(data["on_word_of"]) if data.get("on_word_of") else None
        values = [data["swept"].get(path) for path in swept]
        values += [" ".join(row.chosen.get(path, ())) for path in chosen]
        lines.writerow([row.name, *values, *(_cell(data[name]) for name in (*VALUES, *PROMISE, *OTHERS))])
    return file.getvalue()


def _cell(value: Any) -> Any:
    return "" if value is None else value
