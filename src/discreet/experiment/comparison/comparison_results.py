"""results.jsonl: a line for each run that a comparison has made, so that the same command goes on where it stopped."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from discreet.errors import InvalidInput
from discreet.experiment.run_directory import json_lines
from discreet.privacy.ledger.log import sync_directory

Result: TypeAlias = dict[str, Any]
FILE_NAME = "results.jsonl"


@dataclass(frozen=True)
class ResultsFile:
    """Those in `folder`, which is made with the first of them."""

    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / FILE_NAME

    def check_folder(self) -> None:
        """A comparison writes into a folder of its own only."""
        taken = self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir()))
        if taken and not self.path.is_file():
            raise InvalidInput(
                f"{self.folder} is there already, not empty, and holds no {FILE_NAME}.",
                fix="Name a directory that is new, empty or of an earlier comparison.",
            )

    def read_by_key(self) -> dict[str, Result]:
        """By their keys."""
        try:
            return {result["key"]: result for result in json_lines.read_lines(self.path)}
        except (ValueError, KeyError, TypeError):
            raise InvalidInput(
                f"{self.path} holds a line that is no result.", fix="Name another directory with --out."
            ) from None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """While one process adds results, another can't; a line that was left unfinished goes."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = open(self.path, "a+b")  # noqa: SIM115 - it is closed below
        except OSError as error:
            raise InvalidInput(f"Results can't be kept in {self.folder} ({error.strerror}).") from None
        with file:
            json_lines.lock_file(file, f"A comparison in {self.folder} is going on in another process.")
            sync_directory(self.folder)
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
            yield

    def append(self, result: Result) -> None:
        json_lines.append_line(self.path, result)
