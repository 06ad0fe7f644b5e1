"""results.jsonl: one line for each completed run, so that the same command continues where it stopped."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from discreet.durable_files import lock_file, sync_directory
from discreet.errors import InvalidInput
from discreet.experiment.comparison.cells import Cell, format_label
from discreet.experiment.run_directory import json_lines

Result: TypeAlias = dict[str, Any]
FILE_NAME = "results.jsonl"


@dataclass(frozen=True)
class ResultsFile:
    """The results of a comparison in `folder`, which is created with the first result."""

    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / FILE_NAME

    def check_folder(self) -> None:
        """Refuse a folder that holds something else than a comparison."""
        taken = self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir()))
        if taken and not self.path.is_file():
            raise InvalidInput(
                f"{self.folder} already exists, is not empty, and holds no {FILE_NAME}.",
                fix="Name a directory that is new, empty or of an earlier comparison.",
            )

    def check_same_comparison(self, cells: Collection[Cell]) -> None:
        """Refuse results of a cell that this comparison doesn't have: its table would replace another one.

        More seeds, more values of a sweep, and a file that was edited are the same comparison.
        """
        labels = {cell.label for cell in cells}
        for result in self.read_by_key().values():
            if (label := format_label(result.get("name", "a run"), result.get("swept", {}))) not in labels:
                raise InvalidInput(
                    f"{self.folder} holds another comparison, with results of {label}, and is not overwritten.",
                    fix="Name another directory with --out, or repeat the command that its table.md ends with.",
                )

    def read_by_key(self) -> dict[str, Result]:
        """Return all results by their keys."""

        def build(result: Any) -> tuple[str, Result]:
            return str(result["key"]), dict(result)

        return dict(json_lines.read_lines(self.path, build, "Name another directory with --out."))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the results, so that only one process adds to them, and remove an unfinished last line."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = open(self.path, "a+b")  # noqa: SIM115 - it is closed below
        except OSError as error:
            raise InvalidInput(f"Results can't be kept in {self.folder} ({error.strerror}).") from None
        with file:
            lock_file(file, InvalidInput(f"A comparison in {self.folder} is going on in another process."))
            sync_directory(self.folder)
            json_lines.remove_unfinished(file)
            yield

    def append(self, result: Result) -> None:
        json_lines.append_line(self.path, result)
