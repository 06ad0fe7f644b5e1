"""The one reader of a run directory: pages, comparisons and resumes all read its files here. It loads no torch."""

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from discreet.errors import InvalidInput

RESOLVED, SOURCE, IDENTITY, ENVIRONMENT = "resolved.toml", "experiment.toml", "run.json", "environment.json"
ROUNDS, OUTCOME, LEDGER, TABLE = "rounds.jsonl", "guarantee.json", "ledger.jsonl", "table.json"
ATTACKS = {kind: f"attack_{kind}.json" for kind in ("membership", "inversion", "labels")}
AUDIT = "audit.json"
PROFILE, PROFILE_PICTURE = "profile.json", "profile.svg"
NAMES = (RESOLVED, SOURCE, IDENTITY, ENVIRONMENT, ROUNDS, OUTCOME)

RoundRecord: TypeAlias = dict[str, Any]  # a line of rounds.jsonl; no guarantee covers any of it but `epsilon`


@dataclass(frozen=True)
class RunFiles:
    """Reads the files of a run as plain data.

    A missing file is empty. What can't be read is empty too, and is added to `problems`; `require` makes an error of
    the first problem, for readers that must have all of it.
    """

    path: Path
    problems: list[str] = field(default_factory=list)
    _texts: dict[str, str] = field(default_factory=dict, repr=False)

    def is_run(self) -> bool:
        """Whether at least one file of a run is here."""
        return any((self.path / name).is_file() for name in NAMES)

    def text(self, name: str) -> str:
        """Return the text of a file, which is read once."""
        if name not in self._texts:
            self._texts[name] = self._read(name)
        return self._texts[name]

    def _read(self, name: str) -> str:
        try:
            return (self.path / name).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""
        except OSError as error:
            self.problems.append(f"{name} can't be read ({error.strerror}).")
            return ""

    def json(self, name: str, kind: Any = dict) -> Any:
        """Return the JSON document of this file if it is of this kind, else None."""
        if not (text := self.text(name)):
            return None
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            self.problems.append(f"{name} is not valid JSON: {error}.")
            return None
        if not isinstance(data, kind):
            self.problems.append(f"{name} holds something else than was expected.")
            return None
        return data

    def experiment(self) -> dict[str, Any]:
        """Return the resolved experiment, or else the one that was written."""
        name, text = RESOLVED, self.text(RESOLVED)
        if not text and (written := self.text(SOURCE)):
            name, text = SOURCE, written
        try:
            return tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            self.problems.append(f"{name} is not valid TOML: {error}.")
            return {}

    def rounds(self) -> dict[int, RoundRecord]:
        """Return every whole line of rounds.jsonl by its round. A later line about a round replaces an earlier one.

        A last line without its newline was left by a process that was killed, and is skipped.
        """
        records: dict[int, RoundRecord] = {}
        *lines, _ = self.text(ROUNDS).split("\n")
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                records[int(record["round"])] = record
            except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
                self.problems.append(f"Line {number} of {ROUNDS} can't be read.")
        return dict(sorted(records.items()))

    def outcome(self) -> dict[str, Any]:
        """Return how the run ended, with its cards. Older runs kept the bare cards."""
        data = self.json(OUTCOME, dict | list)
        if isinstance(data, list):
            return {"guarantees": data}
        return {"guarantees": [data]} if data and "unit" in data else data or {}

    def require(self) -> None:
        """Raise the first problem that reading has met."""
        if self.problems:
            raise InvalidInput(f"In the run directory {self.path}: {self.problems[0]}")


def json_number(value: Any) -> float | None:
    """Return the number that JSON holds, also where it is a word ("inf", "nan"); else None."""
    if isinstance(value, str) and value.lower() in {"inf", "-inf", "nan"}:
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e300 or not isinstance(value, int) else math.inf


def as_numbers(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return metrics as numbers, also those that JSON holds as words."""
    return {name: float(value) for name, value in metrics.items()}


def value_at(data: Any, path: Sequence[str]) -> Any:
    """Return the value that this path of keys leads to, or None."""
    for name in path:
        data = data.get(name) if isinstance(data, dict) else None
    return data
