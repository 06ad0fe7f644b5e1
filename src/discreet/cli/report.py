"""`discreet report`: write the page of a run again, or one page to decide by, for the data's owner or for everyone."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from rich.console import RenderableType

from discreet.cli.output import Json, emit
from discreet.errors import InvalidInput

if TYPE_CHECKING:
    from discreet.experiment.run_directory.run_data import RunData

EPILOG = """\b
Examples:
  discreet report runs/first
  discreet report runs/first --brief
  discreet report runs/first --public
  discreet report runs/first --public --out clinic.html
"""

ENDINGS = (".html", ".htm")

Directory: TypeAlias = Annotated[Path, typer.Argument(metavar="RUN", hidden=True)]


def report(
    run: Directory,
    public: Annotated[
        bool, typer.Option("--public", help="Leave out every number that the guarantee does not cover.")
    ] = False,
    brief: Annotated[
        bool, typer.Option("--brief", help="Write one page to decide by and to sign: brief.html, one sheet in print.")
    ] = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE", show_default="in RUN", help="File to write.")] = None,
    as_json: Json = False,
) -> None:
    """Write the HTML report of the run directory RUN again.

    report.html shows everything: guarantee, accuracy, update norms. With --public, report-public.html shows the
    guarantee and the privacy spent, and leaves out accuracy, norms and counts, so it may be given to anyone if the
    guarantee is certified and the ledger intact. With --brief, brief.html says on one page who is protected from whom
    and how well, which three things somebody must check, and what is not covered, with lines to sign; the full
    report is written beside it, with --out as FILE-report.html. Each is one file that loads nothing from elsewhere.
    """
    from discreet.experiment.run_directory.run_data import read_run
    from discreet.report import brief_page, run_page
    from discreet.report.brief import write_brief
    from discreet.report.verdict import ledger_warning

    _refuse_unfinished(run)
    if out is not None and out.suffix.lower() not in ENDINGS:  # a mistyped path must not overwrite a model or a ledger
        raise InvalidInput(f"--out must name a file that ends in .html, and got {str(out)!r}.")
    full = run_page.write(run, public=public, out=_report_path(out) if brief and out is not None else out)
    read = read_run(run)
    warning = ledger_warning(read)
    data: dict[str, Any] = {"run": str(run), "report": str(full), "public": public}
    data |= {"warnings": [] if warning is None else [warning]}
    if not brief:
        emit(lambda: data, lambda: _page(run, read, full, public), as_json=as_json)
        return
    written = brief_page.write(run, public=public, out=out, report=full.name)
    data |= {"brief": str(written)} | write_brief(read, public=public).to_plain()
    emit(lambda: data, lambda: _brief_page(run, read, written, full, public), as_json=as_json)


def _refuse_unfinished(run: Path) -> None:
    """Refuse a run without a card: one that was killed, or is still running. A run that was stopped has its card."""
    if not run.is_dir():
        raise InvalidInput(f"There is no run directory {run}.", fix="Name a directory that `discreet run` wrote.")
    if (run / "run.json").is_file() and not (run / "guarantee.json").is_file():
        from discreet.experiment.run_directory.run_record import RunRecord

        raise InvalidInput(
            f"The run in {run} is unfinished: it has no guarantee.json yet.",
            fix=f"Wait until it ends, or continue it: {RunRecord.open(run).resume_command}",
        )


def _report_path(brief: Path) -> Path:
    """Return where the full report is written that a brief links to: a link to a folder would name it in public."""
    return brief.with_name(f"{brief.stem}-report{brief.suffix}")


def _brief_page(run: Path, read: "RunData", written: Path, full: Path, public: bool) -> Iterator[RenderableType]:
    _, *whom = _page(run, read, written, public)
    yield f"Wrote {written}, one page to decide by and to sign, and the full report behind it, {full}"
    if written.parent != run:
        yield f"The page links to {full.name} beside it: give both together."
    yield from (line.replace("--public", "--brief --public") if isinstance(line, str) else line for line in whom)


def _page(run: Path, read: "RunData", written: Path, public: bool) -> Iterator[RenderableType]:
    from discreet.audit.audit_record import read_audits, strongest_audits
    from discreet.report.verdict import ledger_warning

    yield f"Wrote {written}"
    if (warning := ledger_warning(read)) is not None:
        yield warning
    shown = strongest_audits(record for record in read_audits(run) if record.is_public or not public)
    yield from (record.sentence for record in shown)
    if public:
        yield _say_who_may_see(read)
    else:
        yield "It shows numbers that the guarantee does not cover: show it only to those who may see the data."
        yield f"For everyone else: discreet report {run} --public"


def _say_who_may_see(run: "RunData") -> str:
    """Say to whom the public page may be given: to anyone only if a certified guarantee holds, and its ledger too."""
    from discreet.report.verdict import judge, standing_guarantee

    if run.ledger_fault is not None:
        return (
            "Give the page to nobody who relies on the guarantee before the ledger is back as it was: restore it from "
            "a copy, and write the page again. Accuracy, norms and counts are left out."
        )
    card = standing_guarantee(run)
    if card is None:
        return f"{judge(run).sentence} Accuracy, norms and counts are left out, but no guarantee covers what is shown."
    if not card.is_certified:
        return (
            "Every number that the guarantee does not cover is left out. The guarantee itself is not certified: its "
            "noise is only declared, by a user's own code. Give the page only to those who trust that code."
        )
    return "You may give it to anyone: every number that the guarantee does not cover is left out."
