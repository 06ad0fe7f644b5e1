"""A run as its directory describes it, for pages: no file is required, and nothing is guessed."""

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

from discreet.errors import DiscreetError, InvalidInput
from discreet.experiment.metrics import CONSTANT, METRICS
from discreet.experiment.run_directory import run_files
from discreet.experiment.run_directory.ledger_chain import Chain
from discreet.experiment.run_directory.run_files import RunFiles
from discreet.experiment.run_directory.run_profile import RunProfile, read_profile
from discreet.file_version import check_file_version
from discreet.part import from_plain
from discreet.privacy import wording
from discreet.privacy.guarantee import Guarantee, LedgerMark
from discreet.privacy.ledger.charges import ENOUGH_FOR
from discreet.privacy.release import View

Series: TypeAlias = dict[int, float]  # by round; a round that says nothing is left out


@dataclass(frozen=True)
class Promise:
    """What `[privacy]` in the experiment asks for.

    `client_epsilons` has one for each client, if they have their own; `epsilon` is the largest.
    """

    unit: str
    against: View
    epsilon: float
    delta: float
    client_epsilons: tuple[float, ...] = ()

    def is_about(self, card: Guarantee) -> bool:
        """Whether the card speaks of the promised unit, and of an onlooker who sees at least as much."""
        return self.unit == wording.unit_name(card.unit) and card.view in ENOUGH_FOR.get(self.against, ())

    def is_kept_by(self, card: Guarantee) -> bool:
        asked = [self.client_epsilons[client] for client in card.clients or () if client < len(self.client_epsilons)]
        return self.is_about(card) and card.epsilon <= min(asked, default=self.epsilon) and card.delta <= self.delta


@dataclass(frozen=True)
class RunData:
    """One run, read from its directory and its ledger alone. `problems` says which other files could not be read.

    `ledger_error` says why the ledger can't be trusted, if it is there. `attacks` are those that the owner has made on
    the run; they are about private data. `audits` are what audits measured, as their file holds it. `profile` says
    where the time of a round went, if that was measured; it may tell who took part.
    """

    name: str
    resolved_text: str
    source_text: str
    experiment: dict[str, Any]
    recipe: str | None
    identity: dict[str, Any]
    environment: dict[str, Any]
    rounds: dict[int, dict[str, Any]]
    outcome: dict[str, Any]
    guarantees: tuple[Guarantee, ...]
    chain: Chain | None
    problems: tuple[str, ...]
    attacks: tuple[dict[str, Any], ...] = ()
    audits: tuple[dict[str, Any], ...] = ()
    ledger_error: str | None = None
    profile: RunProfile | None = None

    @property
    def planned_rounds(self) -> int | None:
        rounds = self.experiment.get("rounds")
        return rounds if isinstance(rounds, int) and not isinstance(rounds, bool) else None

    @property
    def is_finished(self) -> bool:
        return self.planned_rounds is None or len(self.rounds) >= self.planned_rounds

    @property
    def is_seeded(self) -> bool:
        flags = (self.identity.get("seeded"), self.outcome.get("seeded"))
        return self.experiment.get("seed") is not None or True in flags

    @property
    def has_data_ranges(self) -> bool:
        """Whether columns were scaled by ranges that were taken from the data, which no guarantee covers."""
        return self.identity.get("data_ranges") is True

    @property
    def rows_left_out(self) -> int | None:
        """Rows that were left out because a person had more. None if the promise is not for persons."""
        rows = self.outcome.get("rows_left_out")
        return rows if isinstance(rows, int) else None

    @property
    def warning(self) -> str | None:
        """That the model diverged, or is hardly better than a constant answer."""
        said = self.outcome.get("warning")
        return said if isinstance(said, str) else None

    @property
    def delta_warning(self) -> str | None:
        """That δ is so large that publishing one unit in full would keep the promise, if it is."""
        said = self.outcome.get("delta_warning")
        return said if isinstance(said, str) else None

    @property
    def stop_reason(self) -> str | None:
        """Why the run ended early, in the run's own words."""
        why = self.outcome.get("stopped")
        return why if isinstance(why, str) else None

    @property
    def certified_rounds(self) -> int:
        """Number of rounds that the guarantees cover: fewer than were completed while a resumed run goes on."""
        rounds = self.outcome.get("rounds")
        return rounds if isinstance(rounds, int) else len(self.rounds)

    @cached_property
    def promise(self) -> Promise | None:
        privacy = self.experiment.get("privacy")
        if not isinstance(privacy, dict):
            return None
        asked, unit = privacy.get("epsilon"), privacy.get("unit")
        own = (
            [run_files.json_number(epsilon) for epsilon in asked]
            if isinstance(asked, list)
            else [run_files.json_number(asked)]
        )
        delta = run_files.json_number(privacy.get("delta"))
        known = tuple(epsilon for epsilon in own if epsilon is not None)
        if not known or len(known) < len(own) or delta is None:
            return None
        named = "person" if isinstance(unit, dict) or str(unit).startswith("person") else str(unit)
        listed = known if isinstance(asked, list) else ()
        return Promise(named, privacy.get("against", "server"), max(known), delta, listed)

    @property
    def main_guarantee(self) -> Guarantee | None:
        """The guarantee that the promise is about; otherwise the first."""
        asked = [card for card in self.guarantees if self.promise and self.promise.is_about(card)]
        return next(iter((*asked, *self.guarantees)), None)

    @property
    def ledger_mark(self) -> LedgerMark | None:
        return next((card.ledger for card in self.guarantees if card.ledger), None)

    @property
    def ledger_fault(self) -> Literal["changed", "missing", "other"] | None:
        """Why the ledger no longer shows that the card counts every round. None if it does, or if no card names one."""
        mark = self.ledger_mark
        if self.ledger_error is not None:
            return "changed"
        if mark is None:
            return None
        if self.chain is None:
            return "missing"
        return None if self.chain.is_named_by(mark) else "other"

    def value(self, *path: str) -> Any:
        """Return a field of the experiment, such as value("algorithm", "mechanism", "clip_norm"), or None."""
        return run_files.value_at(self.experiment, path)

    def series(self, *paths: str) -> Series:
        """Return a number by round. If there are several names for it ("norms.mean"), the first one present counts."""
        return self._numbers(lambda row: _first_number(row, paths))

    def metrics(self) -> dict[str, Series]:
        """Return every metric of the model by round, accuracy first."""
        names = {name: None for row in self.rounds.values() for name in _metric_names(row)}
        by_name = {name: self._metric(name) or self.series(name) for name in sorted(names, key=_rank)}
        return {name: series for name, series in by_name.items() if series and name != CONSTANT}

    @property
    def training_metrics(self) -> dict[str, Series]:
        """The metrics on training examples by round, where the model was evaluated on those too."""
        return self._metrics_in("training")

    @property
    def validation_metrics(self) -> dict[str, Series]:
        """The metrics on validation examples by round, where some are held out."""
        return self._metrics_in("validation")

    def _metrics_in(self, table: str) -> dict[str, Series]:
        by_name = {name: self._metric(name, table) for name in self.metrics()}
        return {name: series for name, series in by_name.items() if series}

    @property
    def constant_error(self) -> float | None:
        """The squared error of the clients' mean target, predicted for every test example."""
        return next(iter((self._metric(CONSTANT) or self.series(CONSTANT)).values()), None)

    def _metric(self, name: str, table: str = "evaluation") -> Series:
        """Return a metric by round. Its name may contain dots."""
        return self._numbers(lambda row: run_files.json_number(run_files.value_at(row, (table, name))))

    def _numbers(self, number: Callable[[dict[str, Any]], float | None]) -> Series:
        values = {at: number(row) for at, row in self.rounds.items()}
        return {at: value for at, value in values.items() if value is not None}


def read_run(run_dir: Path) -> RunData:
    """Read a run directory; InvalidInput if there is none, or if it holds no run."""
    files = RunFiles(run_dir)
    if not files.is_run():
        raise InvalidInput(
            f"{run_dir} holds no run: none of {', '.join(run_files.NAMES)} is there.",
            fix="Name a directory that `discreet run` has made.",
        )
    outcome = files.outcome()
    audits, profile = _read_audits(files), _read_profile(files)
    attacks = [(kind, files.json(name)) for kind, name in run_files.ATTACKS.items()]
    identity = files.json(run_files.IDENTITY) or {}
    check_file_version(identity, run_dir / run_files.IDENTITY)
    chain, ledger_error = _read_chain(_ledger_path(run_dir, identity.get("ledger")))
    return RunData(
        name=run_dir.resolve().name,
        resolved_text=files.text(run_files.RESOLVED),
        source_text=files.text(run_files.SOURCE),
        experiment=files.experiment(),
        recipe=_read_recipe(files.text(run_files.SOURCE)),
        identity=identity,
        environment=files.json(run_files.ENVIRONMENT) or {},
        rounds=files.rounds(),
        outcome=outcome,
        guarantees=tuple(_read_guarantees(outcome.get("guarantees"), files.problems)),
        chain=chain,
        problems=tuple(files.problems),
        attacks=tuple(found for kind, found in attacks if found and found.get("attack") == kind),
        audits=audits,
        ledger_error=ledger_error,
        profile=profile,
    )


def _first_number(row: dict[str, Any], paths: tuple[str, ...]) -> float | None:
    values = (run_files.json_number(run_files.value_at(row, path.split("."))) for path in paths)
    return next((value for value in values if value is not None), None)


def _metric_names(row: dict[str, Any]) -> Iterator[str]:
    evaluation = row.get("evaluation")
    yield from evaluation if isinstance(evaluation, dict) else (name for name in METRICS if name in row)


def _rank(name: str) -> tuple[int, str]:
    return (METRICS.index(name) if name in METRICS else len(METRICS), name)


def _read_recipe(text: str) -> str | None:
    """The algorithm's name, which only the file as it was written knows: the resolved one holds its parts."""
    try:
        name = run_files.value_at(tomllib.loads(text), ("algorithm", "recipe"))
    except (ValueError, RecursionError):
        return None
    return name if isinstance(name, str) else None


def _read_audits(files: RunFiles) -> tuple[dict[str, Any], ...]:
    """Return what audits measured. A file without it is a problem: a page must not leave an audit out silently."""
    data = files.json(run_files.AUDIT)
    audits = data.get("audits") if data is not None else []
    if not isinstance(audits, list) or not all(isinstance(audit, dict) for audit in audits):
        files.problems.append(f"{run_files.AUDIT} has no list of audits, so none is shown.")
        return ()
    return tuple(audits)


def _read_profile(files: RunFiles) -> RunProfile | None:
    data = files.json(run_files.PROFILE)
    profile = None if data is None else read_profile(data)
    if data is not None and profile is None:
        files.problems.append(f"{run_files.PROFILE} is not what `discreet run --profile` writes, so it isn't shown.")
    return profile


def _read_guarantees(data: Any, problems: list[str]) -> Iterator[Guarantee]:
    for card in data if isinstance(data, list) else []:
        try:
            yield from_plain(Guarantee, card)
        except DiscreetError as error:
            problems.append(f"A guarantee in guarantee.json can't be read, so it isn't shown: {error}")


def _ledger_path(run_dir: Path, shared: Any) -> Path:
    """Return where the ledger is: where the run shares it with others, or else in the run directory."""
    return Path(shared) if isinstance(shared, str) and Path(shared).is_file() else run_dir / run_files.LEDGER


def _read_chain(path: Path) -> tuple[Chain | None, str | None]:
    """Return the chain of a ledger, or why it can't be trusted. Neither if there is no such file."""
    if not path.is_file():
        return None, None
    try:
        return Chain.read(path), None
    except DiscreetError as error:
        return None, f"The ledger can't be trusted: {error}"
