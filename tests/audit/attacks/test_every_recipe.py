"""Every recipe of the catalog can be attacked, and no attack on a private one exceeds what is certified."""

from dataclasses import replace

import pytest
import torch

from discreet.algorithms.recipes.registry import RECIPES
from discreet.api.experiment_jobs import prepare_job
from discreet.audit.attacks.inversion_attack import attack_inversion
from discreet.audit.attacks.membership_attack import OWN, attack_membership
from discreet.audit.attacks.server_view import own_view
from discreet.audit.attacks.stand_in_examples import own_examples
from discreet.data.federation import Federation
from discreet.experiment.configuration.experiment_file import load_experiment
from discreet.experiment.job import Job
from discreet.experiment.loop.run_guarantees import certify_run
from discreet.randomness.streams import RunKey

KEY = RunKey.from_seed(6)
SURE = 1 - 1e-6


@pytest.fixture(scope="module")
def digits() -> Job:
    return prepare_job(load_experiment(None, ("seed=1", "rounds=2", "task.clients=4", "task.test_fraction=0.9")))


def recipe_job(digits: Job, name: str) -> Job:
    """Return the job of a recipe's example on digits, with a noise multiplier of 1 where it takes one."""
    recipe = RECIPES[name]
    algorithm = recipe(**recipe.example).with_noise(1.0).for_population(digits.population, 650)
    public = digits.data if algorithm.sparsifier.needs_public_data else None
    if public is not None:
        inputs, targets = public.examples_at(torch.arange(8))
        public = Federation(inputs, targets, (8,))
    return replace(digits, algorithm=algorithm, privacy=None, public_data=public)


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_members_of_a_private_recipe_are_recognised_no_more_often_than_certified(digits: Job, name: str) -> None:
    """Each comparison fails by chance at most once in 500,000 seeds: both its intervals hold with 1 − 1e-6."""
    job = recipe_job(digits, name)
    cards = certify_run(job.terms, job.rounds, None, shared=False) if RECIPES[name].protects else []
    found = attack_membership(job, cards[0] if cards else None, shadows=8, key=KEY)
    for roc in found.curves[OWN].values():
        for rate in (roc.rate_at(0.01), roc.rate_at(0.1), roc.rate_at(0.5)):
            bound = found.certified_rate(rate.largest_false_positive_rate(SURE))
            assert bound is None or rate.interval(SURE)[0] <= bound
            assert rate.positives + rate.negatives == 8 * (4 if found.unit == "client" else 180)


@pytest.mark.parametrize("name", RECIPES)
def test_what_the_server_of_a_recipe_sees_can_be_attacked(digits: Job, name: str) -> None:
    job = recipe_job(digits, name)
    rebuilt = attack_inversion(job, None, key=KEY).reconstructions
    assert len(rebuilt) == 3
    assert all(torch.isfinite(each.inputs).all() for each in rebuilt)
    seen = own_view(job, None).observe(job, own_examples(job.task, per_client=6), 6, KEY)
    assert {label: value.shape for label, value in seen.items()} == {
        label: value.shape for label, value in job.params.items()
    }
