"""`discreet audit`: attack a run or an experiment with canaries, and print what was measured beside its card."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import RenderableType
from rich.text import Text

from discreet.cli.audit_attack import AttackChoice, print_attack
from discreet.cli.audit_modes import choose_mode, refuse_other_options
from discreet.cli.options import (
    COUNT,
    PROBABILITY,
    DataDir,
    Overrides,
    ViewWord,
    expand_records,
    number_option,
    parse_view,
)
from discreet.cli.output import Json, emit
from discreet.cli.progress_bar import progress_bars, show_preparation
from discreet.cli.text_table import text_table
from discreet.cli.trust_options import TrustOption, choose_trust
from discreet.errors import InvalidInput

if TYPE_CHECKING:
    from discreet.audit.audit_record import AuditRecord
    from discreet.audit.auditor import AuditOptions, Watch

EXCEEDED = 4  # exit code of an audit that contradicts its card
REPETITIONS = 100_000
MAKE_ONE = "`discreet run` makes a run directory; `discreet init` writes an experiment's file."
EPILOG = """\b
Examples:
  discreet audit runs/first
  discreet audit experiment.toml --estimator one-run
  discreet audit runs/first --against public --runs 20
  discreet audit runs/first --attack membership --compare
  discreet audit runs/first --attack inversion --picture inversion.svg
  discreet audit runs/first --json
  discreet audit experiment.toml --round

\b
Exit codes:
  0  done: the measured epsilon is not above the certified one
  4  alarm: the measured epsilon is above the certified one
  2  wrong input: nothing was computed
"""

Estimator = Literal["gaussian", "one-run", "one-run-fdp", "repeated"]


@expand_records
def audit(
    run: Annotated[Path | None, typer.Argument(metavar="[RUN|FILE]", hidden=True)] = None,
    *,
    canaries: Annotated[
        int | None,
        typer.Option(
            click_type=COUNT, metavar="M", show_default="as many as fit, up to 1,000", help="Canaries in a training."
        ),
    ] = None,
    estimator: Annotated[
        Estimator | None, typer.Option(show_default="gaussian", help="How scores become a lower bound.")
    ] = None,
    confidence: Annotated[
        float | None,
        number_option(PROBABILITY, "P", "Probability with which the lower bound holds.", default="0.95"),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(click_type=COUNT, metavar="R", show_default="enough for 200 canaries", help="Trainings."),
    ] = None,
    unit: Annotated[
        Literal["example", "person", "client"] | None,
        typer.Option(show_default="the promised one", help="Unit whose guarantee is attacked."),
    ] = None,
    against: Annotated[
        ViewWord | None,
        typer.Option(show_default="the promised one", help="Who attacks; client and clients are the same."),
    ] = None,
    choice: AttackChoice,
    whole_round: Annotated[
        bool, typer.Option("--round", help="Attack one round of FILE's algorithm on a toy task instead.")
    ] = False,
    repetitions: Annotated[
        int | None,
        number_option(
            COUNT, "N", "With --round: rounds on each of two neighbouring data sets.", default=f"{REPETITIONS:,}"
        ),
    ] = None,
    settings: Overrides = None,
    data_dir: DataDir = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", show_default=False, help="Make the audit repeatable.")
    ] = None,
    trust: TrustOption = False,
    as_json: Json = False,
) -> None:
    """Attack a run with canaries, and bound its epsilon from below.

    RUN is a run directory, FILE an experiment. The same algorithm is trained again on stand-in data: every row is
    blank but for canaries, each present or absent by a fair coin. The attack sees what the observer of the guarantee
    sees, and measures how well presence shows. No private data is read and no budget is spent. The result of a RUN is
    kept in its directory, in audit.json, beside earlier ones; pages show the largest. `seconds` in JSON is the time of
    the trainings and the estimate, without loading. A lower bound proves no safety: another attack may find more.

    --attack shows the owner of the data what known attacks achieve, with privacy and without: whose data a model was
    trained on (membership), which examples a server can rebuild (inversion), and which labels it can count (labels).
    Without RUN or FILE, it attacks the built-in experiment on digits.

    With --round, FILE's algorithm, with parts of your own too, plays one round on a model of a few parameters, many
    times on each of two neighbouring data sets that are searched for. What the observer sees is compared with what is
    certified of that round, at a false-alarm rate of 1e-6. Noise that follows from a promise is set to a multiplier
    of 1.
    """
    mode = choose_mode(choice.attack, whole_round=whole_round)
    refuse_other_options(
        mode,
        {
            "--canaries": canaries,
            "--estimator": estimator,
            "--confidence": confidence,
            "--runs": runs,
            "--unit": unit,
            "--against": against,
            "--repetitions": repetitions,
            "--data-dir": data_dir,
            **choice.options(),
        },
    )
    view = None if against is None else parse_view(against)
    if run is not None:
        _check_target(run)
    if choice.attack is not None:
        print_attack(run, choice, settings, data_dir, seed, trusted=trust, as_json=as_json)
        return
    if run is None:
        raise InvalidInput(
            "--round needs an experiment's file, and got none."
            if whole_round
            else "An audit by canaries needs a run directory or an experiment's file, and got none.",
            fix="`discreet init` writes an experiment's file." if whole_round else MAKE_ONE,
        )
    if whole_round:
        from discreet.cli.round_audit import audit_round

        allowed = choose_trust(trust, run)
        audit_round(run, settings, data_dir, allowed, unit, view, repetitions or REPETITIONS, seed, as_json=as_json)
        return
    from discreet.audit.auditor import AuditOptions

    if choice.picture is not None:
        from discreet.report.picture_files import check_picture_path

        check_picture_path(choice.picture)
    options = AuditOptions(
        canaries, estimator or "gaussian", 0.95 if confidence is None else confidence, runs, unit, view, seed
    )
    record = _measure(run, options, settings, data_dir, trusted=trust, quiet=as_json)
    if choice.picture is not None:
        from discreet.report.audit_sections import audit_picture
        from discreet.report.picture_files import save_picture

        save_picture(audit_picture(record), choice.picture)
    kept = run / "audit.json" if run.is_dir() else None
    emit(lambda: _data(run, record, kept, choice.picture), lambda: _page(record, kept, choice.picture), as_json=as_json)
    if record.is_alarm:
        raise typer.Exit(EXCEEDED)


def _check_target(path: Path) -> None:
    """Refuse what is neither a run directory nor an experiment's file."""
    if not path.exists():
        raise InvalidInput(
            f"An audit needs a run directory or an experiment's file, and there is neither at {path}.",
            fix=MAKE_ONE,
        )
    if path.is_file() and path.suffix == ".json":
        raise InvalidInput(
            f"An audit needs a run directory or an experiment's file, and {path} is JSON.",
            fix=f"A card is checked by: discreet verify {path}",
        )


def _measure(
    run: Path,
    options: "AuditOptions",
    settings: list[str] | None,
    data_dir: Path | None,
    *,
    trusted: bool,
    quiet: bool,
) -> "AuditRecord":
    from discreet.api import run_audit
    from discreet.audit.auditor import audit_experiment
    from discreet.experiment.configuration import experiment_file

    allowed = choose_trust(trusted, run)
    if run.is_dir():
        if settings:
            raise InvalidInput("--set belongs to an experiment's file, and a run has its settings already.")
        if data_dir is not None:
            raise InvalidInput(
                "--data-dir belongs to an experiment's file, and an audit of a run by canaries reads no data.",
                fix="Leave out --data-dir.",
            )
        with progress_bars(quiet=quiet) as bars:
            return run_audit.audit_directory(run, options, allowed, _as_watch(bars))
    source = experiment_file.load_experiment(run, tuple(settings or ()), data_dir, allowed)
    with show_preparation(source, quiet=quiet) as ready:
        setup = run_audit.setup_from_source(ready)
    with progress_bars(quiet=quiet) as bars:
        return audit_experiment(setup, options, _as_watch(bars))


def _as_watch(bars: Any) -> "Watch":
    return lambda done, total: bars("attacking", done, total)


def _data(run: Path, record: "AuditRecord", kept: Path | None, picture: Path | None) -> dict[str, Any]:
    from discreet.part import to_plain

    data: dict[str, Any] = {"run" if kept else "file": str(run), **to_plain(record), "alarm": record.is_alarm}
    return data | ({"kept": str(kept)} if kept else {}) | ({"picture": str(picture)} if picture else {})


def _page(record: "AuditRecord", kept: Path | None, picture: Path | None) -> Iterator[RenderableType]:
    from discreet.audit.audit_wording import audit_lines

    yield Text(record.sentence, style="bold red" if record.is_alarm else "")
    table = text_table("", "", gap=2)
    for label, sentence in audit_lines(record):
        table.add_row(label, sentence)
    yield table
    if picture is not None:
        yield f"Wrote {picture}"
    if kept is not None:
        yield f"Kept in {kept}, and shown in {kept.parent / 'report.html'}."
