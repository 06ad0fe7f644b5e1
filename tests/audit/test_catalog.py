"""Every private recipe of the catalog, attacked as each observer of its guarantees: below the card, and near it."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from discreet.algorithms.population import Population
from discreet.algorithms.recipes.registry import RECIPES
from discreet.algorithms.sampling import Everyone, FixedSize, Poisson, RoundRobin
from discreet.audit.attack_plan import plan_attack
from discreet.audit.audit_setup import AuditSetup
from discreet.audit.auditor import ENOUGH_CANARIES, AuditOptions, audit_experiment, bound_epsilon, play_runs
from discreet.engines.engine_table import Embedded
from discreet.privacy.guarantee import Guarantee

POPULATION = Population(examples=(16,) * 40)
PARAMS = {"0.weight": torch.zeros(10, 60), "0.bias": torch.zeros(10)}
DIMENSION, ROUNDS, DELTA = 610, 4, 1e-5
ARGUMENTS: dict[str, dict[str, Any]] = {
    "pfl": {"sampling_rate": 0.5, "batch_size": None, "epochs": None, "local_steps": 1},
    "ddp_fedavg": {"sampling_rate": 0.5, "local_steps": 1},
    "denoised_release": {"local_steps": 1},
    "ldp_fedavg": {"cohort": 20},
}
RATES = {"sampling_rate": 0.5}  # in most examples it is 0.1, at which a small audit sees few entries
LOOSE = {
    "denoised_release": "the noise of states is counted as if they were seen",
    "proximal_local": "the bound is that of an example in the last batch, and batches are drawn at random",
}


def build_setup(name):
    """The catalog's example for small clients and a noise multiplier of 1, with its cards."""
    recipe = RECIPES[name]
    rates = RATES if "sampling_rate" in recipe.example else {}
    arguments = {**recipe.example, **rates, **ARGUMENTS.get(name, {})}
    algorithm = recipe(**arguments).for_population(POPULATION, DIMENSION)
    algorithm = algorithm.with_noise(1.0).for_population(POPULATION, DIMENSION)
    releases = algorithm.planned_releases(ROUNDS, POPULATION)
    cards = tuple(Guarantee.certify(release, DELTA) for release in releases)
    return AuditSetup(algorithm, POPULATION, PARAMS, ROUNDS, Embedded(), cards, {})


def private_recipes():
    return [name for name, recipe in RECIPES.items() if recipe.protects]


@pytest.mark.parametrize("name", private_recipes())
def test_the_lower_bound_is_below_every_card_and_near_it_where_the_analysis_is_tight(name):
    """Each bound exceeds a true ε with a probability of 1e-6 at most; the second check is at 95 %, on a fixed seed."""
    setup = build_setup(name)
    assert setup.cards
    for card in setup.cards:
        plan = plan_attack(setup.algorithm, POPULATION, card, view=card.view, rounds=ROUNDS, params=PARAMS)
        runs = play_runs(setup, plan, -(-ENOUGH_CANARIES // len(plan.slots)), 7, lambda done, total: None)
        sure, usual = (
            bound_epsilon(runs, plan, "gaussian", delta=DELTA, confidence=confidence) for confidence in (1 - 1e-6, 0.95)
        )
        assert sure.lower_bound <= usual.lower_bound <= card.epsilon
        if name not in LOOSE:
            assert usual.lower_bound >= 0.6 * card.epsilon


@pytest.mark.parametrize("sampling", [FixedSize(cohort=20), Poisson(rate=0.5), RoundRobin(cohort=20), Everyone()])
def test_every_way_to_draw_clients_is_attacked_by_its_own_relation(sampling):
    recipe = RECIPES["dp_fedavg"]
    algorithm = replace(recipe(**recipe.example), sampling=sampling).for_population(POPULATION, DIMENSION)
    algorithm = algorithm.with_noise(1.5)
    (release,) = algorithm.planned_releases(ROUNDS, POPULATION)
    card = Guarantee.certify(release, DELTA)
    setup = AuditSetup(algorithm, POPULATION, PARAMS, ROUNDS, Embedded(), (card,), {})
    record = audit_experiment(setup, AuditOptions(seed=5))
    assert record.relation == sampling.relation
    # a cohort of fixed size is priced for the worst other clients, who are not those of the audit
    share = 0.4 if sampling.kind == "fixed_size" else 0.5
    assert share * card.epsilon < record.lower_bound < card.epsilon
