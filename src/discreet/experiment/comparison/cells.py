"""The runs of a comparison: every file with every combination of swept values, each with every seed."""

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from discreet.code_version import read_code_version
from discreet.errors import DiscreetError, InvalidInput
from discreet.experiment.configuration import experiment_file
from discreet.experiment.configuration.experiment_file import Source
from discreet.experiment.configuration.run_settings import WITHOUT_EFFECT_ON_NUMBERS
from discreet.part import to_plain
from discreet.trust import Trust

Sweep: TypeAlias = tuple[str, list[str]]  # a field's name, and its values as `--set` takes them


@dataclass(frozen=True)
class Cell:
    """One experiment with its swept fields set, without a seed: a row of the table."""

    name: str
    swept: dict[str, str]
    source: Source

    @property
    def label(self) -> str:
        return format_label(self.name, self.swept)


@dataclass(frozen=True)
class CellRun:
    """One cell with one seed. Equal runs have equal keys, on any machine and at any time."""

    cell: Cell
    seed: int
    key: str

    @property
    def label(self) -> str:
        return f"{self.cell.label}, seed {self.seed}"

    @property
    def rounds(self) -> int:
        return self.cell.source.experiment.rounds

    @property
    def source(self) -> Source:
        """The experiment with its seed, one checkpoint, since the run is never resumed, and without its trackers."""
        whole = self.cell.source.experiment
        settings: dict[str, Any] = {"seed": self.seed, "checkpoint_every": whole.rounds, "track": ()}
        return replace(self.cell.source, experiment=replace(whole, **settings))


def parse_sweep(text: str, option: str = "--sweep") -> Sweep:
    """Parse a sweep such as `algorithm.epochs=1,2,4`. Commas inside brackets, braces and quotes belong to a value."""
    path, equals, values = text.partition("=")
    swept = [value.strip() for value in _split_at_commas(values)]
    if not path.strip() or not equals or not all(swept):
        raise InvalidInput(
            f"{option} needs NAME=V1,V2,…, and got {text!r}.", fix=f"For example: {option} algorithm.epochs=1,2,4"
        )
    if len(set(swept)) < len(swept):
        raise InvalidInput(f"{option} {text} has a value twice.", fix="Name each once.")
    return path.strip(), swept


def expand_cells(
    files: Sequence[Path],
    sweeps: Sequence[Sweep] = (),
    overrides: tuple[str, ...] = (),
    data_dir: Path | None = None,
    trust: Trust | None = None,
    left_out: Mapping[Path, Collection[str]] | None = None,
) -> list[Cell]:
    """Return every file with every combination of swept values. An error names the cell that can't be read.

    A file is not swept over the fields that `left_out` names for it.

    Parts of the user's own are built, which runs their code as far as `trust` allows it.
    """
    paths = [path for path, _ in sweeps]
    for what, listed in (("FILE", [os.path.realpath(file) for file in files]), ("The field", paths)):
        if twice := [name for name in listed if listed.count(name) > 1]:
            raise InvalidInput(f"{what} {twice[0]} is there twice.", fix="Name each once.")
    if "seed" in {*paths, *(override.partition("=")[0].strip() for override in overrides)}:
        raise InvalidInput("Every run gets its seed from --seeds, so seed can be neither set nor swept.")
    stems = [file.stem for file in files]
    names = stems if len(set(stems)) == len(stems) else [str(file) for file in files]
    cells = []
    for file, name in zip(files, names, strict=True):
        own = [(path, values) for path, values in sweeps if path not in (left_out or {}).get(file, ())]
        for values in itertools.product(*(values for _, values in own)):
            swept = dict(zip([path for path, _ in own], values, strict=True))
            with name_errors(format_label(name, swept), f"{file}: "):
                settings = (*overrides, *(f"{path}={value}" for path, value in swept.items()))
                source = experiment_file.load_experiment(file, settings, data_dir, trust)
                cells.append(Cell(name, swept, source.load_user_parts()))
    return cells


def list_runs(cells: Sequence[Cell], seeds: int) -> list[CellRun]:
    """Return every cell with every seed, ordered so that runs that share data follow each other."""
    digest = lru_cache(maxsize=None)(_digest)  # a table is read once for all cells that name it
    asked = [CellRun(cell, seed, _run_key(cell, seed, digest)) for seed in range(seeds) for cell in cells]
    groups = list(dict.fromkeys(data_key(cell.source) for cell in cells))
    return sorted(asked, key=lambda run: groups.index(data_key(run.cell.source)))


def format_label(name: str, swept: dict[str, str]) -> str:
    return ", ".join([name, *(f"{path}={value}" for path, value in swept.items())])


@contextmanager
def name_errors(label: str, known: str = "") -> Iterator[None]:
    """Put the name of the cell or run in front of any error inside."""
    try:
        yield
    except DiscreetError as error:
        raise type(error)(f"{label}: {error.problem.removeprefix(known)}", fix=error.fix) from None


def data_key(source: Source) -> str:
    """Return a key that is equal for experiments that read the same data, however they deal it out."""
    task = to_plain(source.experiment.task)
    for table in (task, task.get("of", {})) if hasattr(source.experiment.task, "examples") else ():
        for dealt in ("clients", "partition", "validation_fraction"):
            table.pop(dealt, None)
    return json.dumps([task, str(source.paths.folder), str(source.paths.data)], sort_keys=True)


def _run_key(cell: Cell, seed: int, digest: Callable[[Path], str]) -> str:
    """Return a digest of what decides the run's numbers: experiment, seed, the files it names, and our version."""
    experiment = to_plain(cell.source.experiment) | {"seed": seed} | dict.fromkeys(WITHOUT_EFFECT_ON_NUMBERS)
    if "device" not in cell.swept:
        del experiment["device"]  # so that results can be brought home from another machine
    files = {name: digest(path) for name, path in _user_files(experiment, cell.source.paths.folder)}
    decided = {"discreet": read_code_version().release, "experiment": experiment, "files": files}
    return hashlib.blake2b(json.dumps(decided, sort_keys=True).encode(), digest_size=12).hexdigest()


def _user_files(data: Any, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the user's files that an experiment names, as `table.csv` or `file.py:Name`."""
    if isinstance(data, dict | list):
        for item in data.values() if isinstance(data, dict) else data:
            yield from _user_files(item, folder)
    elif isinstance(data, str) and data:
        for name in {data, data.rpartition(":")[0]} - {""}:
            if (folder / name).is_file():
                yield name, folder / name


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


def _split_at_commas(text: str) -> Iterator[str]:
    """Split at commas outside brackets, braces and quotes."""
    depth, quote, start = 0, "", 0
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "[]{}":
            depth += 1 if letter in "[{" else -1
        elif letter == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]
