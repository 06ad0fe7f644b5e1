"""What experiments that tune by a grid share: settings as a file has them, a validation split, the best of several."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from discreet.experiment.comparison.cells import Cell
from discreet.experiment.comparison.comparison_results import Result

FRACTION = 0.2  # of each client's training examples, on which settings are chosen
VALIDATED = {"validation": f"{FRACTION:g}"}  # tells the runs that choose from those that are reported

T = TypeVar("T")


class Variant(Protocol):
    """One way to train, with its knobs set."""

    @property
    def method(self) -> str: ...

    @property
    def swept(self) -> dict[str, str]: ...


V = TypeVar("V", bound=Variant)


def format_toml(value: Any) -> str:
    """Return a value as a TOML file writes it."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {format_toml(each)}" for name, each in value.items()) + "}"
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def validation_cell(cell: Cell) -> Cell:
    """Return a cell as settings are chosen by it: trained on less, since a part of each client's data is held out."""
    experiment = cell.source.experiment
    source = replace(cell.source, experiment=replace(experiment, task=_hold_out(experiment.task)))
    return replace(cell, swept=cell.swept | VALIDATED, source=source)


def _hold_out(task: Any) -> Any:
    """Return the task with a validation split, which the data set has that it is made of."""
    if hasattr(task, "of"):
        return replace(task, of=_hold_out(task.of))
    return replace(task, validation_fraction=FRACTION)


def best_variant(results: Sequence[Result], points: Sequence[V], seed: int) -> V | None:
    """Return the point that was best on the validation data of a seed, or None before all of them were tried.

    Results that were made before there was a validation split are compared on test data.
    """
    found = best(points, lambda point: _accuracy(results, point, VALIDATED, "validation", seed))
    return found or best(points, lambda point: _accuracy(results, point, {}, "metrics", seed))


def is_validated(results: Sequence[Result]) -> bool:
    """Return whether settings were chosen on validation data. If not, a page must say that test data chose them."""
    return any(VALIDATED.items() <= result["swept"].items() for result in results)


def _accuracy(
    results: Sequence[Result], point: Variant, mark: Mapping[str, str], table: str, seed: int
) -> float | None:
    wanted = (point.method, {**point.swept, **mark}, seed)
    found = [each for each in results if (each["name"], each["swept"], each["seed"]) == wanted]
    return 100 * float(found[-1][table]["accuracy"]) if found else None


def best(points: Sequence[T], reached: Callable[[T], float | None]) -> T | None:
    """Return the point with the largest value, or None before all of them were tried."""
    found = [(each, reached(each)) for each in points]
    if any(value is None for _, value in found):
        return None
    return max(found, key=lambda pair: pair[1] or 0.0)[0]
