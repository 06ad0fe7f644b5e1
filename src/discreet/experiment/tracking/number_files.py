"""Trackers that need no library: one CSV file, or one file of JSON lines, with a line for each round."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from discreet.durable_files import write_durably
from discreet.experiment.tracking.number_writer import TrackedRun


class CsvFile:
    """A table with a line for each round. Its columns grow when a round has a number that no round had before."""

    def __init__(self, path: Path, run: TrackedRun) -> None:
        self._path, self._columns, self._lines = path, ["round"], list[dict[str, Any]]()
        if path.is_file():
            with open(path, encoding="utf-8", newline="") as file:
                kept = csv.DictReader(file)
                self._lines = [line for line in kept if int(line["round"]) < run.first_round]
                self._columns = list(kept.fieldnames or self._columns)
        self._rewrite()

    def write(self, round: int, numbers: Mapping[str, float]) -> None:
        line = {"round": round, **numbers}
        self._lines.append(line)
        if new := [name for name in line if name not in self._columns]:
            self._columns += new
            self._rewrite()
        else:
            with open(self._path, "a", encoding="utf-8", newline="") as file:
                file.write(self._format([line], header=False))

    def finish(self, facts: Mapping[str, str]) -> None:
        """Write nothing: a table of numbers has no place for words, and the run directory has the card."""

    def close(self) -> None:
        """Every line is written already."""

    def _rewrite(self) -> None:
        write_durably(self._path, self._format(self._lines, header=True).encode())

    def _format(self, lines: Iterable[Mapping[str, Any]], *, header: bool) -> str:
        file = io.StringIO()
        table = csv.DictWriter(file, self._columns, restval="", lineterminator="\n")
        if header:
            table.writeheader()
        table.writerows(lines)
        return file.getvalue()


class JsonLinesFile:
    """An object for each round, and at the end one with what is certified."""

    def __init__(self, path: Path, run: TrackedRun) -> None:
        self._path = path
        kept = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        before = [line for line in kept if json.loads(line).get("round", run.first_round) < run.first_round]
        write_durably(path, "".join(f"{line}\n" for line in before).encode())

    def write(self, round: int, numbers: Mapping[str, float]) -> None:
        self._append({"round": round, **{name: _plain(value) for name, value in numbers.items()}})

    def finish(self, facts: Mapping[str, str]) -> None:
        self._append({"finished": dict(facts)})

    def close(self) -> None:
        """Every line is written already."""

    def _append(self, line: Mapping[str, Any]) -> None:
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _plain(value: float) -> float | str:
    """Return a value that JSON can hold: infinity and NaN become words, as in rounds.jsonl."""
    return value if value - value == 0 else str(value)
