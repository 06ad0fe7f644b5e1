"""`discreet predict`: predictions of a trained model for new rows, by the run directory alone."""

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.output import Json, emit
from discreet.cli.trust_options import TrustOption, choose_trust
from discreet.paths import write_new_file

if TYPE_CHECKING:
    from discreet.data.tables.table_columns import Predictions

EPILOG = """\b
Examples:
  discreet predict runs/first new.csv --out predictions.csv
  discreet predict runs/first new.parquet --json
"""


def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", hidden=True)],
    table: Annotated[Path, typer.Argument(metavar="TABLE", hidden=True)],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", show_default=False, help="CSV file to write. Without it: printed.")
    ] = None,
    trust: TrustOption = False,
    as_json: Json = False,
) -> None:
    """Predict for the rows of TABLE with the model of RUN.

    RUN is a run directory. TABLE is a CSV or Parquet file with the columns that the model was trained on; others, such
    as the label, are not looked at. The training data is not needed. The result has one line for each row, in the same
    order: the prediction, then the probability of each value. A number is predicted in the label's own units.
    """
    from discreet import api

    predictions = replace(api.load(run), trust=choose_trust(trust, run)).predict(table)
    if out is not None:
        write_new_file(out, _csv_text(predictions))
    emit(lambda: _data(run, predictions, out), lambda: _page(predictions, out), as_json=as_json)


def _csv_text(predictions: "Predictions") -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(predictions.header)
    writer.writerows(predictions.rows())
    return text.getvalue()


def _data(run: Path, predictions: "Predictions", out: Path | None) -> dict[str, Any]:
    data: dict[str, Any] = {"run": str(run), "label": predictions.label, "rows": len(predictions)}
    if out is not None:
        return data | {"out": str(out)}
    return data | {"predictions": predictions.values, "probabilities": predictions.probabilities}


def _page(predictions: "Predictions", out: Path | None) -> Iterator[str]:
    if out is None:
        yield _csv_text(predictions).rstrip("\n")
    else:
        yield f"Wrote {out}: {predictions.label!r} for {len(predictions):,} row{'' if len(predictions) == 1 else 's'}."
