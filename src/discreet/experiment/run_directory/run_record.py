"""The run directory: the one file that writes run files, each of them whole or not at all.

experiment.toml           as it was written, with its comments
resolved.toml             all parts in full, with the noise that was computed
run.json                  the run's id, its ledger, what file names are relative to, and a fingerprint of data and code
environment.json          versions, the commit of discreet, and the machine
rounds.jsonl              one line for each round, with the code that played it; a guarantee covers only its `epsilon`
checkpoint.safetensors    the server's state after the last round that is safe, and which round that is
ledger.jsonl              the run's own ledger, if it shares none
model.safetensors         the model at the end
guarantee.json, .txt      what is certified about the run
report.html               the report; report-public.html, the one to publish
brief.html                one page to decide by, if somebody asked for it; brief-public.html, the one to publish
attack_*.json             what `discreet audit --attack` found; it is about private data, and never published
audit.json                what `discreet audit` measured
profile.json, .svg        where the time of a round went, if somebody asked for it; it may tell who took part
exported.*                what `discreet export` wrote; model_card.md, and model_card-public.md, the one to publish

All from model.safetensors on are written when a run has ended or was stopped, and removed when it is resumed.
"""

import hashlib
import json
import os
import shlex
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from discreet.algorithms.algorithm import ServerState
from discreet.data.tables.table_columns import TableColumns
from discreet.durable_files import lock_file, sync_directory, write_durably
from discreet.errors import InvalidInput
from discreet.experiment.run_directory import json_lines, run_files
from discreet.experiment.run_directory.checkpoint import CHECKPOINT, Checkpoint, tensor_bytes
from discreet.experiment.run_directory.draft_folder import draft_path
from discreet.experiment.run_directory.fingerprint import Fingerprint
from discreet.experiment.run_directory.run_files import RoundRecord, RunFiles
from discreet.file_version import FIRST, check_file_version
from discreet.logs import get_log
from discreet.part import from_plain
from discreet.privacy.ledger import Ledger

log = get_log(__name__)

PAGES = ("brief-public.html", "brief.html", "report-public.html", "report.html")
MODEL = "model.safetensors"
OUTCOME = (
    run_files.AUDIT,
    "guarantee.json",
    "guarantee.txt",
    run_files.PROFILE,
    run_files.PROFILE_PICTURE,
    *PAGES,
    *run_files.ATTACKS.values(),
    MODEL,
)
EXPORTED = {
    "onnx": "exported.onnx",
    "torchscript": "exported.pt",
    "safetensors": "exported.safetensors",
    "card": "model_card.md",
    "public card": "model_card-public.md",  # a name of its own, so that nobody shares the wrong file
}  # by format: what `discreet export` writes, unless another file is named


IDENTITY_KINDS: dict[str, Any] = {
    "id": str,
    "ledger": str | None,
    "folder": str | None,
    "seeded": bool,
    "private": bool,
    "again": str | None,
    "data_ranges": bool | None,
    "code": str | None,
}


@dataclass(frozen=True)
class RunIdentity:
    """The content of run.json, which a resume needs.

    Attributes:
        id: The run's random name.
        ledger: The ledger that the run shares with others. None if it has its own.
        folder: The folder that file names are relative to. None for a run from Python.
        seeded: Whether all randomness comes from a seed, which protects nobody.
        private: Whether a ledger counts the run.
        again: The command that resumes the run, if it is not `discreet run`.
        data_ranges: Whether ranges were taken from the data, which the user accepted at the start.
        fingerprint: Digests of data and code. None for a run of an older version, which can be read but not resumed.
        code: The stamp of the code that started the run. None for a run of an older version.
        model_files: Name and digest of the user's files that build the model, for whoever loads it later.
        examples: Number of examples of each client, which is public. Empty for a run of an older version.
        max_multiplicity: Number of clients that may hold the same example.
        version: The form of the run directory. `RunRecord.open` and pages refuse one that they don't know.
    """

    id: str
    ledger: str | None
    folder: str | None
    seeded: bool
    private: bool
    again: str | None = None
    data_ranges: bool = False
    fingerprint: Fingerprint | None = None
    code: str | None = None
    model_files: Sequence[str] = ()
    examples: Sequence[int] = ()
    max_multiplicity: int = 1
    version: int = FIRST

    @classmethod
    def read(cls, data: dict[str, Any]) -> "RunIdentity":
        """Read run.json. Fields of a newer version are left out: only a resume needs them, and it is refused."""
        known = {field.name: data[field.name] for field in fields(cls) if field.name in data}
        if amiss := [name for name, kind in IDENTITY_KINDS.items() if not isinstance(known.get(name), kind)]:
            raise TypeError(amiss[0])
        return cls(**known | {"fingerprint": Fingerprint.read(data.get("fingerprint"))})

    def round_key(self, round: int) -> str:
        """Return the ledger's key of a round: it names the run, and its experiment, data and code by their digest."""
        assert self.fingerprint is not None  # a run that has none is neither started nor resumed
        return f"run {self.id} round {round} of {self.fingerprint.digest}"


@dataclass(frozen=True)
class RunRecord:
    path: Path
    identity: RunIdentity

    @classmethod
    def create(
        cls,
        path: Path,
        identity: RunIdentity,
        texts: Mapping[str, str],
        prepare: Callable[[Path], None] = lambda _: None,
    ) -> "RunRecord":
        """Create the directory with everything that is known before the first round, whole or not at all.

        Args:
            texts: Further files, by name.
            prepare: Called with the draft of the directory before it gets its name.
        """
        check_path_is_free(path)
        draft = draft_path(path)
        with explain_os_errors("run directory", path):
            try:
                draft.mkdir(parents=True)
                for name, text in texts.items():
                    write_durably(draft / name, text.encode())
                write_durably(draft / "run.json", _json_bytes(asdict(identity)))
                prepare(draft)
                os.rename(draft, path)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
        sync_directory(path.parent)
        return cls(path, identity)

    @classmethod
    def open(cls, path: Path) -> "RunRecord":
        identity = RunFiles(path).json(run_files.IDENTITY)
        check_file_version(identity or {}, path / run_files.IDENTITY)
        try:
            return cls(path, RunIdentity.read(identity))
        except (TypeError, AttributeError):
            raise InvalidInput(
                f"{path} is not a run directory: it has no run.json that can be read.",
                fix="Name a directory that `discreet run` has made.",
            ) from None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the run, so that only one process trains it."""
        with open(self.path / "run.json", "rb") as file:
            lock_file(file, InvalidInput(f"The run in {self.path} is going on in another process."))
            yield

    @property
    def resume_command(self) -> str:
        """The command that resumes the run, or the call for a run from Python."""
        if self.identity.again is None and self.identity.folder is None:
            return f"discreet.train(..., resume={str(self.path)!r})"
        return self.identity.again or f"discreet run --resume {shlex.quote(str(self.path))}"

    @property
    def ledger_path(self) -> Path | None:
        """The ledger that the run is counted in. None if it promises nothing, so that there is nothing to count."""
        if self.identity.ledger is not None:
            return Path(self.identity.ledger)
        return self.path / "ledger.jsonl" if self.identity.private else None

    @property
    def shares_ledger(self) -> bool:
        """Whether the run is counted in a ledger that other runs share."""
        return self.identity.ledger is not None

    def open_ledger(self) -> Ledger | None:
        """Open the ledger that the run is counted in."""
        return None if self.ledger_path is None else Ledger.open(self.ledger_path)

    def read_text(self, name: str) -> str:
        """Return the text of a file that must be there."""
        files = RunFiles(self.path)
        text = files.text(name)
        files.require()
        if not (self.path / name).exists():
            raise InvalidInput(f"{self.path / name} is missing.")
        return text

    def experiment_digest(self) -> str:
        """Return a digest of the resolved experiment. A checkpoint belongs to exactly one."""
        return hashlib.sha256(self.read_text("resolved.toml").encode()).hexdigest()

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        write_durably(self.path / CHECKPOINT, checkpoint.to_bytes())
        log.debug("checkpoint written", run=self.identity.id, round=checkpoint.completed, path=self.path / CHECKPOINT)

    def has_checkpoint(self) -> bool:
        return (self.path / CHECKPOINT).exists()

    def load_checkpoint(self, like: ServerState) -> Checkpoint | None:
        """Load the last checkpoint, for a state like this one. None before the first."""
        if not self.has_checkpoint():
            return None
        return Checkpoint.read(self.path / CHECKPOINT, like, self.identity.id, self.experiment_digest())

    def append_round(self, line: Mapping[str, Any]) -> None:
        json_lines.append_line(self.path / "rounds.jsonl", line)

    def read_rounds(self) -> list[RoundRecord]:
        """Return the records of all rounds, in order."""
        files = RunFiles(self.path)
        records = list(files.rounds().values())
        files.require()
        return records

    def code_stamps(self) -> list[str]:
        """Return the stamps of the code that took part so far: at the start, and in each recorded round."""
        stamps = [self.identity.code, *(line.get("code") for line in self.read_rounds())]
        return list(dict.fromkeys(stamp for stamp in stamps if stamp is not None))

    def client_code_stamps(self) -> list[str]:
        """Return the stamps of the code that real clients said they run, in any recorded round."""
        return list(dict.fromkeys(stamp for line in self.read_rounds() for stamp in line.get("client_code", ())))

    def rewind(self, checkpoint: Checkpoint | None) -> None:
        """Cut rounds.jsonl back to the checkpoint: later rounds are repeated, and its own line is never missing."""
        kept = [line for line in self.read_rounds() if checkpoint and line["round"] < checkpoint.completed]
        wanted = [*kept, checkpoint.line] if checkpoint and checkpoint.completed else []
        with self._explain_unwritable():
            write_durably(self.path / "rounds.jsonl", b"".join(json.dumps(line).encode() + b"\n" for line in wanted))

    def write_outcome(self, model: Mapping[str, Tensor], guarantee: Mapping[str, Any], card: str) -> None:
        write_durably(self.path / "model.safetensors", tensor_bytes(model))
        self.write_card(guarantee, card)

    def publish(self, path: Path, ledger: Path | None, leave_out: Collection[str] = ("epsilon",)) -> "RunRecord":
        """Write a finished run once more, as the best trial of a search; its card is still to be written.

        When the trial began is left out, which shows how many were made before.

        Args:
            path: Where to create the directory.
            ledger: The ledger that counts the search. None if nothing is counted.
            leave_out: What to leave out of each round. The ε of single rounds is that of the trial alone, and the trial
                was chosen among others; a first round that is slow shows that no trial was made before.
        """
        names = ("resolved.toml", "environment.json", run_files.TABLE, "experiment.toml")
        texts = {name: self.read_text(name) for name in names if (self.path / name).exists()}
        rounds = [{key: value for key, value in line.items() if key not in leave_out} for line in self.read_rounds()]
        texts["rounds.jsonl"] = "".join(json.dumps(line) + "\n" for line in rounds)
        known = json.loads(texts["environment.json"])
        known.pop("started", None)
        texts["environment.json"] = _json_bytes(known).decode()
        identity = replace(self.identity, ledger=None if ledger is None else str(ledger), private=ledger is not None)

        def copy_model(draft: Path) -> None:
            write_durably(draft / "model.safetensors", (self.path / "model.safetensors").read_bytes())

        return RunRecord.create(path, identity, texts, copy_model)

    def write_card(self, guarantee: Mapping[str, Any], card: str) -> None:
        """Write the card of a run that has a model."""
        write_durably(self.path / "guarantee.txt", f"{card}\n".encode())
        write_durably(self.path / "guarantee.json", _json_bytes(guarantee))  # last: with it the run counts as ended

    def write_profile(self, profile: Mapping[str, Any]) -> None:
        """Write where the time of the rounds of this process went."""
        write_durably(self.path / run_files.PROFILE, _json_bytes(profile))

    def write_attack(self, found: Mapping[str, Any]) -> Path:
        """Write what an attack on the run found, and return its path. An earlier attack of its kind is replaced."""
        path = self.path / run_files.ATTACKS[found["attack"]]
        with explain_os_errors("attack's file", path):
            write_durably(path, _json_bytes(found))
        return path

    def remove_card(self) -> None:
        """Remove the card and all pages made from it, since a search that goes on spends more than they say."""
        for name in {*OUTCOME, *EXPORTED.values()} - {MODEL}:
            (self.path / name).unlink(missing_ok=True)
        sync_directory(self.path)

    def remove_outcome(self) -> None:
        """Remove the outcome of an earlier stop, before the next round is reserved.

        A resumed run spends more than its old card says.
        """
        with self._explain_unwritable():
            for name in (*OUTCOME, *EXPORTED.values()):
                (self.path / name).unlink(missing_ok=True)
        sync_directory(self.path)

    def is_finished(self) -> bool:
        """Whether the run completed its last round and wrote its outcome."""
        return RunFiles(self.path).outcome().get("stopped", "unfinished") is None

    def load_model(self) -> dict[str, Tensor]:
        path = self.path / "model.safetensors"
        if not path.exists():
            raise self._unfinished_error("model")
        try:
            return safetensors.torch.load_file(path)
        except (OSError, safetensors.SafetensorError):
            raise InvalidInput(f"{path} can't be read.", fix="Restore it from its backup, or train again.") from None

    def read_columns(self) -> TableColumns | None:
        """Return the columns of the table that was trained on. None if the data was no table."""
        files = RunFiles(self.path)
        columns = files.json(run_files.TABLE)
        files.require()
        return from_plain(TableColumns, columns) if columns else None

    def read_outcome(self) -> dict[str, Any]:
        """Return how the run ended, its metrics and its cards, as plain data."""
        if not (self.path / "guarantee.json").exists():
            raise self._unfinished_error("guarantee")
        files = RunFiles(self.path)
        outcome = files.outcome()
        files.require()
        if type(outcome.get("rounds")) is not int or not isinstance(outcome.get("guarantees"), list):
            raise InvalidInput(
                f"{self.path / run_files.OUTCOME} must have the number of rounds and the guarantees, and does not.",
                fix=f"Restore it from its backup, or make it again: {self.resume_command}",
            )
        return outcome

    def _unfinished_error(self, missing: str) -> InvalidInput:
        return InvalidInput(
            f"The run in {self.path} is unfinished: it has no {missing} yet.",
            fix=f"Resume it: {self.resume_command}",
        )

    @contextmanager
    def _explain_unwritable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InvalidInput(
                f"{self.path} can't be written to ({error.strerror}), so the run in it can't be resumed.",
                fix="Resume it as the user who owns the run, on a disk with free space.",
            ) from None


def check_path_is_free(path: Path) -> None:
    """Refuse a path at which something exists: a run never overwrites anything."""
    try:
        taken = path.exists() and (not path.is_dir() or any(path.iterdir()))
    except OSError as error:
        raise InvalidInput(
            f"{path} can't be looked into ({error.strerror}).", fix="Name a directory of your own."
        ) from None
    if taken:
        raise InvalidInput(f"{path} already exists, and is not empty.", fix="Name a directory that is new or empty.")


@contextmanager
def explain_os_errors(what: str, path: Path) -> Iterator[None]:
    """Turn an OSError inside into InvalidInput that names what could not be created."""
    try:
        yield
    except OSError as error:
        raise InvalidInput(f"The {what} can't be created at {path} ({error.strerror}).") from None


def _json_bytes(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode()
