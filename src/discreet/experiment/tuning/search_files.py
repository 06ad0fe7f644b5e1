"""The files of a search that counts every trial: what it is, its trials so far, and the run that goes on.

search.json     the search's id, the key that deals the data, its ledger, and a digest of what is searched
study.jsonl     one line when a trial is begun, with its settings, and one with its score
trial/          the run directory of the trial that goes on
best/           that of the best trial, with the card of the whole search
ledger.jsonl    the search's own ledger, if it shares none
search.html     the picture of the search
"""

import hashlib
import json
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from discreet.durable_files import lock_file, write_durably
from discreet.errors import InvalidInput
from discreet.experiment.run_directory import json_lines
from discreet.experiment.run_directory.run_record import RunRecord, check_path_is_free, explain_os_errors
from discreet.experiment.tuning.search_space import Point
from discreet.json_reader import parse_json
from discreet.privacy.ledger import Ledger
from discreet.randomness.streams import RunKey

SEARCH, STUDY, LEDGER, PAGE = "search.json", "study.jsonl", "ledger.jsonl", "search.html"
RESTORE = "Restore the file, or begin another search: --out FOLDER. What this one spent stays spent."


@dataclass(frozen=True)
class SearchIdentity:
    """The content of search.json.

    Attributes:
        id: The search's random name.
        deal: The key that deals the data and draws the first weights, in hexadecimal digits. It is public.
        experiment: A digest of the file and the settings of the command.
        ledger: The ledger that the search shares with others. None if it has its own, or counts nothing.
    """

    id: str
    deal: str
    experiment: str
    ledger: str | None

    @property
    def deal_key(self) -> RunKey:
        return RunKey(bytes.fromhex(self.deal))


@dataclass(frozen=True)
class BegunTrial:
    """A trial that has begun: its number and its settings."""

    number: int
    settings: Point


@dataclass(frozen=True)
class ScoredTrial(BegunTrial):
    """A trial with its score, the id of its run, its ε alone and what it revealed."""

    score: float
    run: str
    epsilon: float | None
    event: Any


@dataclass(frozen=True)
class SearchFiles:
    """The folder of a search."""

    folder: Path

    def find(self, experiment: str, ledger: Path | None) -> SearchIdentity:
        """Return the search in the folder, or a new one, which is not written yet.

        Raises:
            InvalidInput: The folder holds something else, or another search, or a file of the search is damaged.
        """
        path = self.folder / SEARCH
        shared = None if ledger is None else str(ledger.resolve())
        if not path.is_file():
            check_path_is_free(self.folder)
            return SearchIdentity(secrets.token_hex(8), secrets.token_bytes(32).hex(), experiment, shared)
        damaged = InvalidInput(f"{path} can't be read as a search of this version.", fix=RESTORE)
        identity = parse_json(path.read_bytes(), _build_identity, damaged)
        if identity.experiment != experiment or identity.ledger != shared:
            raise InvalidInput(
                f"{self.folder} holds a search with another file, other settings or another ledger.",
                fix="Continue it as it was begun, or name another folder with --out.",
            )
        self._study()  # a damaged one is refused before anything is trained
        return identity

    def create(self, identity: SearchIdentity) -> None:
        """Create the folder of a search, unless it is there already."""
        with explain_os_errors("folder of the search", self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            if not (self.folder / SEARCH).exists():
                write_durably(self.folder / SEARCH, (json.dumps(asdict(identity), indent=2) + "\n").encode())

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the search, so that only one process goes on with it, and remove an unfinished last line."""
        with open(self.folder / SEARCH, "rb") as file:
            lock_file(file, InvalidInput(f"The search in {self.folder} is going on in another process."))
            if (study := self.folder / STUDY).exists():
                with open(study, "r+b") as lines:
                    json_lines.remove_unfinished(lines)
            yield

    @property
    def trial(self) -> Path:
        return self.folder / "trial"

    @property
    def best(self) -> Path:
        return self.folder / "best"

    @property
    def own_ledger(self) -> Path:
        return self.folder / LEDGER

    def append(self, line: dict[str, Any]) -> None:
        json_lines.append_line(self.folder / STUDY, line)

    def scored_trials(self) -> list[ScoredTrial]:
        """Return all trials that have a score, in order."""
        return [trial for trial in self._study() if isinstance(trial, ScoredTrial)]

    def count_begun(self) -> int:
        """Return the number of trials that are scored or have begun to spend, of which the rest is no new trial."""
        return len(self.scored_trials()) + self.trial.exists()

    def begun_settings(self, number: int) -> Point | None:
        """Return the settings of a trial that was begun. None if it was not."""
        return next((trial.settings for trial in self._study() if trial.number == number), None)

    def _study(self) -> "list[BegunTrial]":
        return json_lines.read_lines(self.folder / STUDY, _build_trial, RESTORE)

    def keep_best(self, best: ScoredTrial, ledger: Path | None) -> None:
        """Keep the run of a scored trial if it is the best and counted, else remove it. One without a score is left."""
        if not (self.trial / "run.json").is_file():
            return
        run = RunRecord.open(self.trial)
        scored = {trial.run for trial in self.scored_trials()}
        if run.identity.id not in scored:
            return
        if run.identity.id == best.run and ledger is not None:
            shutil.rmtree(self.best, ignore_errors=True)
            run.publish(self.best, ledger)
        shutil.rmtree(self.trial)

    def remove_card(self) -> None:
        """Remove the card of a search that goes on: it will spend more than the card says."""
        if (self.best / "run.json").is_file():
            RunRecord.open(self.best).remove_card()


def _build_identity(data: Any) -> SearchIdentity:
    identity = SearchIdentity(**data)
    bytes.fromhex(identity.deal)
    return identity


def _build_trial(line: Any) -> BegunTrial:
    number, settings = line["trial"], dict(line["settings"])
    if type(number) is not int:
        raise TypeError
    if "score" not in line:
        return BegunTrial(number, settings)
    return ScoredTrial(number, settings, float(line["score"]), line["run"], line["epsilon"], line["event"])


def digest_experiment(text: str) -> str:
    """Return a digest of the file with all settings of the command, which decides a search."""
    return hashlib.sha256(text.encode()).hexdigest()


def open_shared(path: Path) -> Ledger:
    """Open a ledger that other runs share, or say how to create it."""
    if not path.exists():
        raise InvalidInput(f"There is no ledger {path}.", fix=f"Create it first: discreet ledger create {path}")
    return Ledger.open(path)
