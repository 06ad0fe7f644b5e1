"""Which runs are missing, in named groups: each can be asked for by itself, and groups are made in the order asked."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from experiments.pfl import cells as pfl
from experiments.pfl.cells import TABLES, Cell, table, with_settings
from experiments.tuned import families
from experiments.tuned.families import SEEDS, Family, identity, run_identity
from experiments.tuned.reproduce import PHASES, STUDIES, wanted_runs

Result: TypeAlias = dict[str, Any]
ENDS, MIDDLE = ((1, 20), (20, 1)), ((5, 4),)


@dataclass(frozen=True)
class PflJob:
    """One cell of PFL's tables at the settings of its authors, with a seed."""

    cell: Cell
    seed: int

    study = "pfl"
    phase = "authors"

    @classmethod
    def from_result(cls, result: Result) -> "PflJob":
        return cls(Cell(**{name: result[name] for name in Cell.__dataclass_fields__}), result["seed"])


@dataclass(frozen=True)
class TunedJob:
    """One run of a study whose settings validation data choose."""

    study: str
    phase: str
    identity: tuple[Any, ...]


Job: TypeAlias = PflJob | TunedJob

PFL_GROUPS: dict[str, Callable[[Cell], bool]] = {
    "pfl-ends": lambda cell: _is_private_cnn(cell) and cell.clients == 10 and _split(cell) in ENDS,
    "pfl-middle": lambda cell: _is_private_cnn(cell) and cell.clients == 10 and _split(cell) in MIDDLE,
    "pfl-clients": lambda cell: cell.clients > 10,
    "pfl-others": lambda cell: cell.clients == 10,
    "pfl-alone": lambda cell: cell.clients == 1,
}
TUNED_GROUPS: dict[str, tuple[str, Callable[[Family], bool]]] = {
    "fu": ("fu", lambda family: True),
    "fu-ten": ("fu", lambda family: family.key[:2] == ("10", "240")),
    "fedsam-femnist": ("fedsam", lambda family: family.key[0] == "femnist"),
    "fedsam-short": ("fedsam", lambda family: family.key[0] == "cifar" and int(family.key[2]) <= 10),
    "fedsam-long": ("fedsam", lambda family: family.key[0] == "cifar" and int(family.key[2]) > 10),
    "heikkila": ("heikkila", lambda family: True),
}
GROUPS = (*PFL_GROUPS, *TUNED_GROUPS)


def _is_private_cnn(cell: Cell) -> bool:
    return cell.epsilon is not None and cell.model.startswith("cnn")


def _split(cell: Cell) -> tuple[int, int]:
    return cell.epochs, cell.rounds


def missing_pfl(name: str, found: list[Result]) -> list[PflJob]:
    """The runs of a group of PFL's cells that have no result."""
    every = dict.fromkeys(cell for each in TABLES for cell in with_settings("authors", list(pfl.cells(table(each)))))
    there = {PflJob.from_result(result) for result in (*pfl.results(), *found) if result["settings"] == "authors"}
    wanted = [PflJob(cell, seed) for cell in every if PFL_GROUPS[name](cell) for seed in SEEDS]
    return [job for job in wanted if job not in there]


def read_families(study: str, settings: tuple[str, ...] = (), data_dir: Path | None = None) -> list[Family]:
    """All families of a study, as they are run with these settings."""
    return list(STUDIES[study](settings, data_dir))


def missing_tuned(name: str, read_made: Callable[[str, str], list[Result]]) -> list[TunedJob]:
    """The runs of a group of families that have no result, and that can be made now: validation runs come first."""
    study, is_wanted = TUNED_GROUPS[name]
    wanted = [family for family in read_families(study) if is_wanted(family)]
    validated = [*families.results(study, "validation"), *read_made(study, "validation")]
    found: dict[TunedJob, None] = {}
    for phase in PHASES:
        there = {identity(each) for each in (*families.results(study, phase), *read_made(study, phase))}
        names = [run_identity(run) for run in wanted_runs(wanted, phase, validated)]
        found |= dict.fromkeys(TunedJob(study, phase, each) for each in names if each not in there)
    return list(found)


def list_missing(names: list[str], read_made: Callable[[str, str], list[Result]]) -> Iterator[Job]:
    """All missing runs of these groups, in their order."""
    for name in names:
        yield from (
            missing_pfl(name, read_made("pfl", "authors")) if name in PFL_GROUPS else missing_tuned(name, read_made)
        )
