"""`discreet export`: the model of a run as a file for other programs, or its model card."""

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from discreet.cli.output import Json, emit
from discreet.cli.trust_options import TrustOption, choose_trust
from discreet.errors import InvalidInput
from discreet.paths import write_new_file

if TYPE_CHECKING:
    from discreet.api.run_result import ModelFormat

EPILOG = """\b
Examples:
  discreet export runs/first --to onnx
  discreet export runs/first --to torchscript --out visits.pt
  discreet export runs/first --to card --public --out MODEL_CARD.md
"""


class Format(StrEnum):
    """What can be written."""

    ONNX = "onnx"
    TORCHSCRIPT = "torchscript"
    SAFETENSORS = "safetensors"
    CARD = "card"


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", hidden=True)],
    to: Annotated[Format, typer.Option(help="The format, or the model card in Markdown.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", show_default="in RUN", help="File to write, which must not exist.")
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="With --to card: leave out what the guarantee does not cover.")
    ] = False,
    trust: TrustOption = False,
    as_json: Json = False,
) -> None:
    """Write the model of RUN as a file for other programs.

    RUN is a run directory. A model of a table takes the columns in their own units, and returns the probability of
    each value or a number, as `discreet predict` does: ONNX with one input for each column, TorchScript with matrices.
    safetensors has the weights, and the columns in its metadata. ONNX needs the extra onnx.
    """
    from discreet import api
    from discreet.experiment.run_directory.run_record import EXPORTED

    loaded = replace(api.load(run), trust=choose_trust(trust, run))
    if to is Format.CARD:
        written = run / EXPORTED["public card" if public else "card"] if out is None else out
        write_new_file(written, loaded.model_card(public=public))
    elif public:
        raise InvalidInput("--public belongs to --to card: a model has no numbers beside its weights.")
    else:
        written = loaded.export(cast("ModelFormat", to.value), out)
    data = {"run": str(run), "to": to.value, "out": str(written), "bytes": written.stat().st_size}
    emit(lambda: data, lambda: _page(run, to, written, public), as_json=as_json)


def _page(run: Path, to: Format, written: Path, public: bool) -> Iterator[str]:
    from discreet.experiment.run_directory.run_data import read_run

    yield f"Wrote {written}"
    if to is not Format.CARD:
        if read_run(run).has_data_ranges:
            yield "Its ranges were taken from the data, and no guarantee covers what they reveal."
        yield f"Give its model card with it: discreet export {run} --to card --public"
    elif not public:
        yield "It has metrics that the guarantee does not cover: for everyone else, add --public."
