"""Experiments that tune choose on validation data; results of before are compared on test data, and a page says so."""

from dataclasses import dataclass
from typing import Any

from experiments.common.tuning import FRACTION, VALIDATED, best_variant, is_validated, validation_cell
from experiments.distributed import cells as distributed
from experiments.iterations import points
from experiments.iterations.point_results import PointResults, choose_rate_and_clip
from experiments.local_steps import cells as local_steps


@dataclass(frozen=True)
class Setting:
    name: str
    method: str = "m"

    @property
    def swept(self) -> dict[str, str]:
        return {"knob": self.name}


def line(name: str, test: float, validation: float | None = None, seed: int = 0) -> dict[str, Any]:
    mark = {} if validation is None else VALIDATED
    tables = {"metrics": {"accuracy": test}, "validation": {"accuracy": validation}}
    return {"name": "m", "swept": {"knob": name, **mark}, "seed": seed, **tables}


SETTINGS = [Setting("1"), Setting("2")]


def test_validation_data_chooses_whatever_the_test_data_says():
    found = [line("1", test=0.9, validation=0.5), line("2", test=0.1, validation=0.6), line("1", 0.9), line("2", 0.1)]
    assert best_variant(found, SETTINGS, seed=0) == SETTINGS[1]
    assert is_validated(found)


def test_results_of_before_are_compared_on_test_data_and_are_known_as_such():
    found = [line("1", 0.9), line("2", 0.1)]
    assert best_variant(found, SETTINGS, seed=0) == SETTINGS[0]
    assert not is_validated(found)
    assert best_variant(found[:1], SETTINGS, seed=0) is None
    assert best_variant(found, SETTINGS, seed=1) is None


def test_the_runs_that_choose_hold_out_a_part_of_each_client_and_the_reported_ones_do_not():
    variants: list[Any] = [
        local_steps.grid("fashion", "one_step", 10)[0],  # features of a data set
        local_steps.grid("mnist", "one_step", 10)[0],
        distributed.grid("cifar", "ldp", 10)[0],  # merged features
        distributed.grid("income", "ldp", 10)[0],
    ]
    for variant in variants:
        reported = variant.cell()
        tried = validation_cell(reported)
        task, whole = tried.source.experiment.task, reported.source.experiment.task
        while hasattr(task, "of"):
            task, whole = task.of, whole.of
        assert (task.validation_fraction, whole.validation_fraction) == (FRACTION, 0)
        assert tried.swept == {**reported.swept, **VALIDATED}


def test_fu_chooses_the_rate_on_validation_data_once_all_were_tried():
    tuning = points.tuning("gaussian")
    assert all(point.validated for point in tuning)
    assert tuning[0].cell((), None).source.experiment.task.validation_fraction == FRACTION

    def result(point: points.Point, test: float, validation: float | None) -> dict[str, Any]:
        tables = {"metrics": {"accuracy": test}, "validation": {"accuracy": validation}}
        return {"name": "gaussian", "swept": point.swept, "seed": 0, "history": [], **tables}

    validated = [result(point, 0.9 - place / 10, 0.1 + place / 10) for place, point in enumerate(tuning)]
    assert choose_rate_and_clip(validated, "gaussian")[0] == tuning[-1].rate
    before = [result(points.Point(*key), 0.9 - place / 10, None) for place, key in enumerate(earlier_points(tuning))]
    assert choose_rate_and_clip(before, "gaussian")[0] == tuning[0].rate
    assert not PointResults.from_results("gaussian", before).is_validated()


def earlier_points(tuning: list[points.Point]) -> list[tuple[Any, ...]]:
    """Return the fields of the same points as they were run before there was a validation split."""
    return [(point.kind, point.epsilon, point.total, point.local, point.rate, point.clip) for point in tuning]
