"""Every private recipe of the catalog is attacked at its certified numbers. The false-alarm rate of each is 1e-6."""

from typing import Any

import pytest

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.algorithms.recipes.registry import RECIPES
from discreet.audit.round_tester import Effort, attack_round
from discreet.privacy.release import Person

CLIENTS = Population(examples=(4, 4, 4, 4))
SMALL: dict[str, Any] = {"batch_size": 2, "sampling_rate": 0.5, "learning_rate": 1.0}  # in place of the example's
PRIVATE = [name for name, recipe in RECIPES.items() if recipe.protects]
FEW = Effort(repetitions=20_000, candidates=4, quick_repetitions=600, generations=0, finalists=1)
MANY = Effort(repetitions=100_000, candidates=48, quick_repetitions=2000)


def small_recipe(name: str) -> Algorithm:
    """Return the recipe's example for clients with four examples."""
    example = dict(RECIPES[name].example)
    return RECIPES[name](**example | {key: value for key, value in SMALL.items() if key in example}).with_noise(2.0)


def attack(name: str, effort: Effort, **more: Any) -> None:
    for result in attack_round(small_recipe(name), population=CLIENTS, effort=effort, seed=1, **more):
        assert not result.violated, str(result)
        assert 0 < result.lower_bound <= result.claimed_epsilon, str(result)


@pytest.mark.parametrize("name", ["fl_sgd_gaussian", "shards", "dp_fedsam_top"])
def test_a_recipe_holds_what_it_certifies(name: str) -> None:
    attack(name, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("name", PRIVATE)
def test_every_recipe_holds_what_it_certifies_in_100_000_repetitions(name: str) -> None:
    attack(name, MANY)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pfl", "ddp_fedavg", "convex_local"])
def test_two_rows_of_a_person_are_covered_in_100_000_repetitions(name: str) -> None:
    attack(name, MANY, unit=Person(column="who", at_most=2))
