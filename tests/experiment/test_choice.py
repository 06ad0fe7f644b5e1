"""Settings are chosen on validation data: each seed for itself, by a metric whose direction is known."""

import math
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import InvalidInput
from discreet.experiment.comparison.cells import expand_cells, list_runs
from discreet.experiment.comparison.choice import Candidate, choose_best, group_cells, parse_choice
from discreet.experiment.metrics import choosing_metric, is_better

RATES = ("algorithm.learning_rate", ["1", "4"])


def candidate(value: str, test: float = 0.5, **validation: Any) -> Candidate:
    return Candidate({"rate": value}, {"metrics": {"accuracy": test}, "validation": validation})


def test_the_best_on_validation_data_is_chosen_whatever_the_test_data_says():
    found = choose_best([candidate("1", test=0.9, accuracy=0.6), candidate("2", test=0.1, accuracy=0.7)])
    assert found.values == {"rate": "2"}
    assert choose_best([candidate("1", mse=0.3, loss=1.0), candidate("2", mse=0.2, loss=2.0)]).values == {"rate": "2"}


def test_of_equals_the_first_is_chosen_and_a_run_that_diverged_never():
    assert choose_best([candidate("1", accuracy=0.5), candidate("2", accuracy=0.5)]).values == {"rate": "1"}
    assert choose_best([candidate("1", mse="inf"), candidate("2", mse=9.0)]).values == {"rate": "2"}
    assert choose_best([candidate("1", mse=9.0), candidate("2", mse="nan")]).values == {"rate": "1"}


def test_a_metric_of_ones_own_chooses_nothing_because_its_direction_is_not_known():
    assert choosing_metric({"regret": 1.0, "loss": 0.5}) == "loss"
    assert choosing_metric({"f1": 1.0, "accuracy": 0.5, "loss": 0.5}) == "accuracy"
    assert is_better("accuracy", 0.6, 0.5)
    assert is_better("loss", 0.5, 0.6)
    assert not is_better("loss", math.nan, 0.6)


def test_without_validation_data_nothing_can_be_chosen():
    with pytest.raises(InvalidInput, match=r"holds none out. Set it in the task, or add: --set task\.validation"):
        choose_best([candidate("1"), candidate("2")])
    with pytest.raises(InvalidInput, match="have accuracy and mse"):
        choose_best([candidate("1", accuracy=0.5), candidate("2", mse=0.5)])


@pytest.mark.parametrize(("text", "what"), [("privacy.epsilon=1,2", "promise"), ("task.clients=1,2", "data")])
def test_neither_the_promise_nor_the_data_is_chosen_by_results(text: str, what: str):
    with pytest.raises(InvalidInput, match=f"would choose the {what} by its results. Compare its values: --sweep"):
        parse_choice(text)


def test_each_seed_chooses_for_itself_once_all_its_settings_were_run(small: Path):
    grid = expand_cells([small], [("rounds", ["2", "4"]), RATES])
    runs, groups = list_runs(grid, seeds=2), group_cells(grid, [RATES[0]])
    assert [(group.swept, len(group.cells)) for group in groups] == [({"rounds": "2"}, 2), ({"rounds": "4"}, 2)]
    accuracy = {("1", 0): 0.9, ("4", 0): 0.8, ("1", 1): 0.1, ("4", 1): 0.2}
    results = {
        run.key: {"validation": {"accuracy": accuracy[run.cell.swept[RATES[0]], run.seed]}, "seed": run.seed}
        for run in runs
    }
    chosen = groups[0].choose(runs, results)
    assert [(each.values[RATES[0]], each.result["seed"]) for each in chosen] == [("1", 0), ("4", 1)]
    last = next(run.key for run in runs if run.seed == 1 and run.cell is groups[0].cells[1])
    del results[last]
    assert [each.result["seed"] for each in groups[0].choose(runs, results)] == [0]
