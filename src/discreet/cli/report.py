"""`discreet report`: writes a run's page again, whole for those who may see the data or fit for everybody."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.console import RenderableType

from discreet.cli.output import Json, emit
from discreet.errors import InvalidInput

EPILOG = """\b
Examples:
  discreet report runs/first
  discreet report runs/first --public
  discreet report runs/first --public --out clinic.html
"""

ENDINGS = (".html", ".htm")

Directory: TypeAlias = Annotated[Path, typer.Argument(metavar="RUN", hidden=True)]


def report(
    run: Directory,
    public: Annotated[bool, typer.Option("--public", help="Leave out every number that no guarantee covers.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Where to write it; default: into RUN.")] = None,
    as_json: Json = False,
) -> None:
    """Write the page of the run in directory RUN again.

    report.html shows all: the guarantee, accuracy, norms. report-public.html, by --public, keeps the guarantee and
    what was spent, and leaves out accuracy, norms and counts: it may be handed to anybody. Each is one file that loads
    nothing.
    """
    from discreet.report import run_page

    _refuse_unfinished(run)
    if out is not None and out.suffix.lower() not in ENDINGS:  # so that a slip writes over no model and no ledger
        raise InvalidInput(f"--out must name a file that ends in .html, and got {str(out)!r}.")
    written = run_page.write(run, public=public, out=out)
    found = {"run": str(run), "report": str(written), "public": public}
    emit(lambda: found, lambda: _page(run, written, public), as_json=as_json)


def _refuse_unfinished(run: Path) -> None:
    """A run that was stopped has its card and its page; one that was killed, or still goes on, has neither."""
    if not run.is_dir():
        raise InvalidInput(f"There is no run directory {run}.", fix="Name one that `discreet run` has made.")
    if (run / "run.json").is_file() and not (run / "guarantee.json").is_file():
        from discreet.experiment.run_directory.run_record import RunRecord

        raise InvalidInput(
            f"The run in {run} is unfinished: it has no guarantee.json yet.",
            fix=f"Wait for its end, or go on with it: {RunRecord.open(run).resume_command}",
        )


def _page(run: Path, written: Path, public: bool) -> Iterator[RenderableType]:
    yield f"Wrote {written}"
    if public:
        yield "It may be handed on: every number that no guarantee covers was left out."
    else:
        yield "It holds numbers that no guarantee covers: show it to those who may see the data."
        yield f"For everybody else: discreet report {run} --public"
