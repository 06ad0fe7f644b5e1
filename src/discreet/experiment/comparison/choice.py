"""Choose one setting of several by validation data, so that the test data of the chosen run has chosen nothing."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from discreet.errors import InvalidInput
from discreet.experiment.comparison.cells import Cell, CellRun, Sweep, format_label, parse_sweep
from discreet.experiment.comparison.comparison_results import Result
from discreet.experiment.configuration.algorithm_table import takes_field
from discreet.experiment.configuration.toml_document import parse_toml, read_toml_text
from discreet.experiment.metrics import choosing_metric, is_better
from discreet.experiment.run_directory.run_files import json_number


def parse_choice(text: str) -> Sweep:
    """Parse the values to choose from, such as `algorithm.learning_rate=0.1,1`.

    Raises:
        InvalidInput: The promise or the data would be chosen: then rows would no longer promise, or test, the same.
    """
    path, values = parse_sweep(text, "--choose")
    if (table := path.partition(".")[0]) in ("privacy", "task"):
        raise InvalidInput(
            f"--choose {path} would choose the {'promise' if table == 'privacy' else 'data'} by its results.",
            fix=f"Compare its values: --sweep {text}",
        )
    return path, values


def find_left_out(files: Sequence[Path], choices: Sequence[Sweep]) -> dict[Path, list[str]]:
    """Return the chosen fields that the recipe of a file does not have, for each file that lacks one.

    A field that no file has is not left out: it is refused when the first file is read, with the fields that exist.
    """
    left_out: dict[Path, list[str]] = {}
    for path, _ in choices:
        table, _, field = path.partition(".")
        if table != "algorithm":
            continue
        tables = {file: parse_toml(read_toml_text(file), str(file)).get("algorithm") for file in files}
        lacking = [file for file in files if not takes_field(tables[file], field.partition(".")[0])]
        for file in lacking if len(lacking) < len(files) else ():
            left_out.setdefault(file, []).append(path)
    return left_out


class Candidate(NamedTuple):
    """One setting, and the result of its run with one seed."""

    values: Mapping[str, str]
    result: Result


class CellGroup(NamedTuple):
    """Cells that differ only in the fields that are chosen.

    Attributes:
        name: The name of the experiment.
        swept: The values of the other swept fields.
        cells: One cell for each setting.
        chosen: The paths of the fields that are chosen. Empty if there is one cell, and nothing to choose.
    """

    name: str
    swept: Mapping[str, str]
    cells: tuple[Cell, ...]
    chosen: tuple[str, ...]

    def choose(self, runs: Sequence[CellRun], results: Mapping[str, Result]) -> list[Candidate]:
        """Return the best setting of each seed, for those seeds that all settings were run with.

        Each seed chooses for itself: where a seed draws the test examples too, they may be validation examples of
        another seed, whose choice must then not be used.
        """
        by_seed: dict[int, list[Candidate]] = {}
        for run in runs:
            if any(run.cell is cell for cell in self.cells) and run.key in results:
                values = {path: run.cell.swept[path] for path in self.chosen}
                by_seed.setdefault(run.seed, []).append(Candidate(values, results[run.key]))
        whole = [by_seed[seed] for seed in sorted(by_seed) if len(by_seed[seed]) == len(self.cells)]
        return [choose_best(candidates) if self.chosen else candidates[0] for candidates in whole]


def group_cells(grid: Sequence[Cell], chosen: Iterable[str]) -> list[CellGroup]:
    """Group cells by their experiment and by the swept fields that are not chosen, in the order of the grid."""
    fields, groups = tuple(chosen), dict[str, CellGroup]()  # a recipe may lack some of the fields
    for cell in grid:
        swept = {path: value for path, value in cell.swept.items() if path not in fields}
        label = format_label(cell.name, swept)
        group = groups.get(label, CellGroup(cell.name, swept, (), tuple(path for path in fields if path in cell.swept)))
        groups[label] = group._replace(cells=(*group.cells, cell))
    return list(groups.values())


def choose_best(candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate with the best validation metric; of equals the first. A run that diverged is the worst.

    Raises:
        InvalidInput: A run has no validation metric whose better direction is known.
    """
    metric, best = find_metric([candidate.result for candidate in candidates]), candidates[0]
    for candidate in candidates[1:]:
        if is_better(metric, _value(candidate, metric), _value(best, metric)):
            best = candidate
    return best


def find_metric(results: Iterable[Result]) -> str:
    """Return the metric by which settings are chosen, which all results must have.

    Raises:
        InvalidInput: A result has no validation metrics.
    """
    metrics = set()
    for result in results:
        if not result.get("validation"):
            raise missing_validation(str(result.get("name", "a run")))
        metrics.add(choosing_metric(result["validation"]))
    if len(metrics) != 1:
        raise InvalidInput(
            f"Settings are chosen by one metric, and these runs have {' and '.join(sorted(metrics))}.",
            fix="Choose among settings of one task.",
        )
    return metrics.pop()


def missing_validation(name: str) -> InvalidInput:
    """Return the error about an experiment that holds out no validation examples."""
    return InvalidInput(
        f"--choose compares settings on validation data, and {name} holds none out.",
        fix="Set it in the task, or add: --set task.validation_fraction=0.2",
    )


def _value(candidate: Candidate, metric: str) -> float:
    value = json_number(candidate.result["validation"].get(metric))
    return math.nan if value is None else value
