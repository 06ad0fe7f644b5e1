"""`discreet audit --attack`: an attack that people know, printed in words and numbers, and drawn as a picture."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import RenderableType

from discreet.cli.options import COUNT, number_option
from discreet.cli.output import emit, print_note
from discreet.cli.progress_bar import progress_bars, show_preparation
from discreet.cli.text_table import text_table
from discreet.cli.trust_options import choose_trust
from discreet.errors import InvalidInput

if TYPE_CHECKING:
    from discreet.api.run_attack import AttackKind, AttackOptions, FoundAttack

PRIVATE = "No guarantee covers what an attack on own data finds: show it only to those who may see the data."


@dataclass(frozen=True, kw_only=True)
class AttackChoice:
    """The options of an attack; `cli/audit_modes.py` says which attack each belongs to."""

    attack: Annotated[
        Literal["membership", "inversion", "labels"] | None,
        typer.Option(show_default="canaries", help="Attack in a way that people know, for the owner of the data."),
    ] = None
    shadows: Annotated[int | None, number_option(COUNT, "N", "membership: models to train.", default="32")] = None
    compare: Annotated[
        bool, typer.Option("--compare", help="membership: train as many models without privacy, by FedAvg.")
    ] = False
    batch: Annotated[
        int | None, number_option(COUNT, "B", "inversion: examples in the batch, 1 to 4.", default="1")
    ] = None
    on_data: Annotated[
        bool, typer.Option("--on-data", help="inversion, labels: attack the clients' own data, not stand-in data.")
    ] = False
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="Draw what was found: PNG, SVG, PDF or HTML."),
    ] = None

    def options(self) -> dict[str, object]:
        """Return the options of attacks by name; None and False for those that were not given."""
        return {
            "--shadows": self.shadows,
            "--compare": self.compare,
            "--batch": self.batch,
            "--on-data": self.on_data,
            "--picture": self.picture,
        }


def print_attack(
    run: Path | None,
    choice: AttackChoice,
    settings: list[str] | None,
    data_dir: Path | None,
    seed: int | None,
    *,
    trusted: bool,
    as_json: bool,
) -> None:
    """Attack a run or an experiment, print what was found, and draw it.

    Args:
        run: A run directory or an experiment's file. None for the built-in experiment on digits.
        choice: The attack and what it takes.
        settings: Fields of the experiment to override. A run has its settings already.
        data_dir: The folder of the data sets.
        seed: Makes the attack repeatable.
        trusted: Whether code that the experiment names may run.
        as_json: Print one JSON object.
    """
    from discreet.api.run_attack import AttackOptions
    from discreet.audit.attacks.membership_attack import SHADOWS
    from discreet.report.attack_page import save_attack_picture
    from discreet.report.picture_files import check_picture_path

    assert choice.attack is not None
    picture = choice.picture
    if picture is not None:
        check_picture_path(picture)
    options = AttackOptions(choice.shadows or SHADOWS, choice.compare, choice.batch or 1, choice.on_data, seed)
    found = _attack(run, choice.attack, options, settings, data_dir, trusted=trusted, quiet=as_json)
    data = found.to_plain()
    if picture is not None:
        save_attack_picture(data, picture)
    kept = run if run is not None and run.is_dir() else None
    named = {"run": None if run is None else str(run)} | ({} if picture is None else {"picture": str(picture)})
    emit(lambda: {**named, **data}, lambda: _page(data, kept, picture), as_json=as_json)


def _attack(
    run: Path | None,
    kind: "AttackKind",
    options: "AttackOptions",
    settings: list[str] | None,
    data_dir: Path | None,
    *,
    trusted: bool,
    quiet: bool,
) -> "FoundAttack":
    from discreet.api import run_attack
    from discreet.experiment.configuration.experiment_file import load_experiment

    allowed = choose_trust(trusted, run)
    is_run = run is not None and run.is_dir()
    if is_run and settings:
        raise InvalidInput("--set belongs to an experiment's file, and a run has its settings already.")
    with progress_bars(quiet=quiet) as bars:
        told = replace(options, announce=_announce(quiet=quiet), watch=bars)
        if is_run:
            assert run is not None
            return run_attack.attack_run(run, kind, told, data_dir, allowed)
        source = load_experiment(run, tuple(settings or ()), data_dir, allowed)
        with show_preparation(source, quiet=quiet) as ready:
            return run_attack.attack_source(ready, kind, told)


def _announce(*, quiet: bool) -> Any:
    def announce(seconds: float) -> None:
        if not quiet:
            print_note(f"Training shadow models takes about {_duration(seconds)}.")

    return announce


def _duration(seconds: float) -> str:
    return f"{max(1, round(seconds))} s" if seconds < 90 else f"{round(seconds / 60)} min"


def _page(data: Mapping[str, Any], kept: Path | None, picture: Path | None) -> Iterator[RenderableType]:
    from discreet.report.attack_charts import RATE_HEADINGS, rate_rows

    yield from data["sentences"]
    if data["attack"] == "membership":
        table = text_table(*RATE_HEADINGS, right=RATE_HEADINGS[1:], gap=2)
        for row in rate_rows(data):
            table.add_row(*row)
        yield ""
        yield table
        yield ""
    else:
        yield f"Attacked: {data['origin']}."
    if picture is not None:
        yield f"Wrote {picture}"
    if kept is not None:
        yield f"Kept in {kept}, and shown in its report.html, never in the public one."
    if data["attack"] == "membership" or data["on_data"]:
        yield PRIVATE
