"""A family is one way to train with all settings that are tried of it; validation data choose one of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.experiment.comparison import cells
from discreet.experiment.comparison.cells import Cell, CellRun
from discreet.experiment.comparison.comparison_results import Result, ResultsFile

HERE = Path(__file__).parent
SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Family:
    """`key` names it on a page, in parts. Where each seed draws its own test examples, each seed chooses for itself."""

    key: tuple[str, ...]
    cells: tuple[Cell, ...]
    each_seed_chooses: bool = False

    def validation_runs(self) -> list[CellRun]:
        seeds = SEEDS if self.each_seed_chooses and len(self.cells) > 1 else SEEDS[:1]
        return [run for run in _runs(self.cells) if run.seed in seeds] if len(self.cells) > 1 else []

    def choose(self, validated: Sequence[Result], seed: int) -> Cell | None:
        """The cell with the best validation accuracy; None before all of them were tried."""
        if len(self.cells) == 1:
            return self.cells[0]
        chooser = seed if self.each_seed_chooses else SEEDS[0]
        found = [accuracies(validated, cell).get(chooser) for cell in self.cells]
        if any(value is None for value in found):
            return None
        return max(zip(self.cells, found, strict=True), key=lambda pair: pair[1] or 0.0)[0]

    def final_runs(self, validated: Sequence[Result]) -> list[CellRun]:
        choices = {seed: self.choose(validated, seed) for seed in SEEDS}
        return [run for run in _runs(self.cells) if run.cell is choices[run.seed]]

    def reported_results(self, validated: Sequence[Result], final: Sequence[Result]) -> dict[int, Result]:
        """The final result of each seed with the settings that were chosen for it."""
        found: dict[int, Result] = {}
        for seed in SEEDS:
            cell = self.choose(validated, seed)
            for each in [] if cell is None else select_results(final, cell):
                if each["seed"] == seed:
                    found[seed] = each
        return found


def identity(result: Result) -> tuple[Any, ...]:
    """What tells a result from the others of its study and phase."""
    return (result["name"], *sorted(result["swept"].items()), result["seed"])


def run_identity(run: CellRun) -> tuple[Any, ...]:
    return (run.cell.name, *sorted(run.cell.swept.items()), run.seed)


def select_results(results: Sequence[Result], cell: Cell) -> list[Result]:
    return [each for each in results if each["name"] == cell.name and each["swept"] == cell.swept]


def accuracies(results: Sequence[Result], cell: Cell) -> dict[int, float]:
    """In percent, by seed."""
    return {each["seed"]: 100 * each["metrics"]["accuracy"] for each in select_results(results, cell)}


def results(study: str, phase: str) -> list[Result]:
    return list(ResultsFile(HERE / "results" / study / phase).read_by_key().values())


def all_runs(family: Family) -> list[CellRun]:
    """Every cell of a family with every seed: the runs among which each phase chooses."""
    return _runs(family.cells)


def _runs(found: Sequence[Cell]) -> list[CellRun]:
    return cells.list_runs(list(found), len(SEEDS))
