"""`discreet tune`: search good settings, and account for the search."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options import AcceptDataRanges, DataDir, Device, OutputDir, Overrides
from discreet.cli.output import Json, emit, print_note
from discreet.cli.progress_bar import progress_bars
from discreet.cli.search_output import (
    composed_lines,
    format_setting,
    largest_trial_epsilon,
    random_lines,
    write_composed_page,
    write_random_page,
)
from discreet.cli.trust_options import TrustOption, choose_trust
from discreet.errors import InvalidInput
from discreet.part import to_plain
from discreet.privacy.wording import compact, round_up

if TYPE_CHECKING:
    from discreet.experiment.configuration.tune_table import Tune
    from discreet.experiment.job import Job
    from discreet.experiment.loop.training_loop import Watch
    from discreet.experiment.tuning.composed_search import ComposedPlan
    from discreet.experiment.tuning.search_files import ScoredTrial
    from discreet.experiment.tuning.trial_jobs import TrialBuilder

EPILOG = """\b
Examples:
  discreet tune experiment.toml --out search
  discreet tune experiment.toml --set tune.trials=5 --ledger visits.jsonl
  discreet tune public.toml --public-data

\b
In the mode compose the same command continues a search that was stopped;
what it spent stays spent. In the mode random only the best trial leaves, so a
search that is stopped leaves nothing.

\b
Exit codes: 0 done; 2 wrong input; 3 refused by the privacy budget; 1
interrupted, or anything else.
"""


def tune(
    file: Annotated[Path, typer.Argument(metavar="FILE", hidden=True)],
    out: OutputDir = None,
    ledger: Annotated[
        Path | None,
        typer.Option(metavar="PATH", show_default="a new one in the folder", help="Ledger of the data."),
    ] = None,
    settings: Overrides = None,
    public_data: Annotated[
        bool, typer.Option("--public-data", help="Declare that all data of FILE is public: nothing is counted.")
    ] = False,
    device: Device = None,
    data_dir: DataDir = None,
    key_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the secret key of a trial, until it ends.")
    ] = None,
    accept_data_ranges: AcceptDataRanges = False,
    trust: TrustOption = False,
    as_json: Json = False,
) -> None:
    """Search good settings for FILE, and account for the search.

    The table [tune] in the experiment's FILE says what is searched and how. Trials are compared on validation data,
    by a noisy score that counts like the training does. The best trial is kept with a card for the whole search.
    """
    from discreet.experiment.tuning.trial_jobs import TrialBuilder
    from discreet.randomness.streams import RunKey

    given = (f"device={device}",) if device else ()
    declared = ("tune.public_data=true",) if public_data else ()
    overrides = (*(settings or ()), *given, *declared)
    folder = out if out is not None else Path("runs") / f"tune-{file.stem}"
    builder = TrialBuilder(
        file, overrides, data_dir, choose_trust(trust, file), RunKey.generate(), accept_data_ranges=accept_data_ranges
    )
    wanted = builder.read_tune()
    if wanted.public_data and ledger is not None:
        raise InvalidInput("A search on public data counts nothing, and takes no --ledger.")
    if wanted.mode == "random" and not wanted.public_data:
        _search_at_random(builder, folder, ledger, as_json)
    else:
        _search_by_composing(builder, wanted, folder, ledger, key_dir, as_json)


def _search_at_random(builder: "TrialBuilder", folder: Path, shared: Path | None, as_json: bool) -> None:
    from discreet import api
    from discreet.experiment.run_directory.run_record import check_path_is_free
    from discreet.experiment.tuning import random_search
    from discreet.experiment.tuning.hidden_trials import times_of_beginning

    check_path_is_free(folder)
    with progress_bars(quiet=as_json) as watch:
        plan = random_search.plan_search(builder, watch, shared)
    if not as_json:
        _print_warnings(plan.warnings)
        print_note(
            f"The search will cost epsilon = {round_up(plan.epsilon)} at delta = {compact(plan.delta)}; one trial "
            f"alone costs {round_up(plan.naive)}. Nothing is shown until it ends."
        )
    with times_of_beginning(folder):
        ledger = random_search.open_ledger(plan, folder, shared)
        winner = random_search.run_search(builder, plan, folder, ledger)
        if winner is not None:
            api.write_page(winner.record.path)
        page = write_random_page(builder, plan, winner, folder)
    data = {
        "mode": "random",
        **_cost(plan.epsilon, plan.delta, plan.naive),
        "expected_trials": plan.tune.expected_trials,
        "distribution": plan.tune.distribution,
        "candidates": len(plan.candidates),
        "best": None if winner is None else _best(winner.settings, winner.score, winner.record.path, winner.metrics),
        "guarantees": [] if winner is None else [to_plain(card) for card in winner.guarantees],
        "ledger": str(ledger),
        "page": str(page),
    }
    emit(lambda: data, lambda: random_lines(plan, winner, page), as_json=as_json)


def _print_warnings(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        print_note(f"Warning: {sentence}")


def _cost(epsilon: float | None, delta: float | None, naive: float | None) -> dict[str, Any]:
    return {"epsilon": epsilon, "delta": delta, "best_trial_alone": naive}


def _best(settings: dict[str, Any], score: float, run: Path | None, metrics: dict[str, Any]) -> dict[str, Any]:
    return {"settings": settings, "score": score, "run": None if run is None else str(run), "metrics": metrics}


def _search_by_composing(
    builder: "TrialBuilder", wanted: "Tune", folder: Path, ledger: Path | None, key_dir: Path | None, as_json: bool
) -> None:
    from discreet import api
    from discreet.experiment.tuning import composed_search, search_card
    from discreet.experiment.tuning.search_files import SearchFiles, digest_experiment

    files = SearchFiles(folder)
    identity = files.find(digest_experiment(builder.read({}).text), ledger)
    with progress_bars(quiet=as_json) as watch:
        builder = replace(builder, deal=identity.deal_key, on_progress=watch)
        plan = composed_search.plan_search(builder, wanted, files, ledger)
    if not as_json:
        _print_warnings(plan.warnings)
    files.create(identity)
    with files.lock():
        composed_search.create_ledger(plan)
        observer = _Quiet() if as_json else _Lines(plan)
        end = composed_search.ComposedSearch(builder, plan, files, identity, key_dir, observer).run()
        cards = search_card.write_search_card(builder, plan, end.trials, files.best)
        if cards:
            api.write_page(files.best)
    page = write_composed_page(builder, plan, end, cards, folder)
    best = composed_search.best_trial(plan.tune, end.trials)
    kept = None if plan.ledger is None else files.best
    data = {
        "mode": "compose",
        "public_data": wanted.public_data,
        **_cost(plan.whole_epsilon, None if plan.budget is None else plan.budget.delta, largest_trial_epsilon(end)),
        "trials": [
            {"settings": trial.settings, "score": trial.score, "epsilon": trial.epsilon} for trial in end.trials
        ],
        "planned_trials": plan.trials,
        "best": None if best is None else _best(best.settings, best.score, kept, search_card.read_metrics(files.best)),
        "guarantees": [to_plain(card) for card in cards],
        "ledger": None if plan.ledger is None else str(plan.ledger),
        "page": str(page),
        "stopped": end.stopped,
    }
    emit(lambda: data, lambda: composed_lines(plan, end, cards, folder, page), as_json=as_json)
    if end.stopped is not None:
        raise typer.Exit(3 if end.is_refused else 1)


class _Quiet:
    def begin_trial(self, number: int, settings: dict[str, Any], job: "Job") -> "Watch":
        return lambda line: None

    def finish_trial(self, trial: "ScoredTrial") -> None: ...


@dataclass
class _Lines(_Quiet):
    """Print a line for every trial that has a score."""

    plan: "ComposedPlan"

    def finish_trial(self, trial: "ScoredTrial") -> None:
        settings = "  ".join(f"{name}={format_setting(value)}" for name, value in trial.settings.items())
        score = f"{self.plan.tune.metric} {compact(trial.score, 4)}"
        print_note(f"{trial.number + 1}/{self.plan.trials}  {settings}: {score}")
