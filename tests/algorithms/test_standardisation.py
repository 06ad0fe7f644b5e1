"""Numbers are standardised by the noisy moments of one sum, which the first round's releases include."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import discreet as d
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.input_scale import CENTRE, SPREAD, InputScale
from discreet.algorithms.population import Population
from discreet.algorithms.sampling import Everyone, RoundRobin
from discreet.algorithms.standardisation import MOMENTS, Standardisation, is_worthwhile, moment_deviation
from discreet.privacy import accountant
from discreet.privacy.events import Composed, GaussianNoise, steps

POPULATION = Population(examples=(400, 600, 1000))
WANTED = Standardisation(inputs=5, numeric=(0, 2, 3), noise_multiplier=8.0)
EXAMPLES: dict[str, Any] = {"learning_rate": 1.0, "clip_norm": 1.0, "sampling_rate": 0.2, "noise_multiplier": 3.0}
CLIENTS: dict[str, Any] = {"learning_rate": 1.0, "clip_norm": 1.0, "batch_size": 50, "noise_multiplier": 3.0}
ALGORITHMS = {
    "pfl": d.pfl(**EXAMPLES),
    "ddp_fedavg": d.ddp_fedavg(**EXAMPLES),
    "ddp_fedavg, gaussian": d.ddp_fedavg(**EXAMPLES, noise="gaussian"),
    "dp_fedavg": d.dp_fedavg(**CLIENTS, epochs=1),
    "ddp_fedavg_client": d.ddp_fedavg_client(**CLIENTS, epochs=1),
}
every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=list(ALGORITHMS))


def with_moments(algorithm: Algorithm) -> Algorithm:
    return replace(algorithm, standardisation=WANTED).for_population(POPULATION, 10)


@given(arrays(np.float64, (4, 5), elements=st.floats(-3, 3)), arrays(np.float64, 4, elements=st.floats(-1, 1)))
def test_no_example_has_larger_moments_than_the_bound(inputs: Any, targets: Any) -> None:
    wanted = replace(WANTED, target=True)
    params = wanted.first_model(torch.zeros((), dtype=torch.float64))
    loss = wanted.moment_loss
    examples = torch.as_tensor(inputs), torch.as_tensor(targets)
    gradients = torch.func.vmap(torch.func.grad(lambda p, x, y: loss(p, x, y)), (None, 0, 0))(params, *examples)
    assert float(gradients[MOMENTS].norm(dim=1).max()) <= wanted.bound * (1 + 1e-12)


def test_a_step_of_rate_one_adds_the_mean_of_the_moments() -> None:
    inputs = torch.rand(7, 5, dtype=torch.float64) * 2 - 1
    params = WANTED.first_model(inputs)
    gradient = torch.func.grad(lambda p: WANTED.moment_loss(p, inputs, torch.zeros(7)).mean())(params)[MOMENTS]
    numbers = inputs[:, [0, 2, 3]]
    torch.testing.assert_close(-gradient, torch.cat([numbers.mean(0), numbers.square().mean(0) - 0.5]))


def test_exact_moments_give_the_mean_and_the_deviation_of_each_number() -> None:
    numbers = torch.tensor([[-0.5, 0.1, 0.3], [0.5, 0.3, 0.3]], dtype=torch.float64)
    moments = torch.cat([numbers.mean(0), numbers.square().mean(0) - 0.5])
    input_scale = WANTED.scale_from_moments(moments, 0.0)
    assert input_scale[CENTRE].tolist() == pytest.approx([0, 0, 0.2, 0.3, 0, 0])
    assert input_scale[SPREAD].tolist() == pytest.approx([0.5, 1, 0.1, 1, 1, 1])  # one value has no spread


def test_a_spread_is_never_below_its_own_noise() -> None:
    moments = torch.tensor([0.0, 0.5, 0.9, -0.5, -0.25, 0.3], dtype=torch.float64)  # variances 0, 0 and -0.01
    spread = WANTED.scale_from_moments(moments, 0.01)[SPREAD][[0, 2, 3]]
    assert spread.square().tolist() == pytest.approx([0.02 * math.sqrt(1 + 4 * m * m) for m in (0, 0.5, 0.9)])


def test_labels_of_classes_stay_as_they_are() -> None:
    input_scale = InputScale(torch.tensor([0.5, 0.0]), torch.tensor([0.25, 1.0]))
    assert input_scale.scale_inputs(torch.tensor([[1.0], [0.5]])).tolist() == [[2.0], [0.0]]
    assert input_scale.scale_targets(torch.tensor([1, 0])).tolist() == [1, 0]


@every_algorithm
def test_the_first_round_releases_the_moments_too_and_the_others_do_not(algorithm: Algorithm) -> None:
    algorithm = with_moments(algorithm)
    moments = algorithm.for_moments(POPULATION)
    assert moments is not None
    before = {(each.unit, each.view): each.event for each in moments.releases(POPULATION, 0)}
    plain = replace(algorithm, standardisation=None).releases(POPULATION, 0)
    assert plain
    for first, alone in zip(algorithm.releases(POPULATION, 0), plain, strict=True):
        assert first == replace(alone, event=Composed(events=(before[alone.unit, alone.view], alone.event)))
    assert algorithm.releases(POPULATION, 1) == replace(algorithm, standardisation=None).releases(POPULATION, 1)


@every_algorithm
def test_all_rounds_together_cost_more_with_the_moments(algorithm: Algorithm) -> None:
    algorithm = with_moments(algorithm)
    plain = replace(algorithm, standardisation=None)
    for dearer, cheaper in zip(*(each.planned_releases(20, POPULATION) for each in (algorithm, plain)), strict=True):
        relation = cheaper.relation
        assert accountant.epsilon(dearer.event, 1e-5, relation) > accountant.epsilon(cheaper.event, 1e-5, relation)


def test_every_example_is_in_the_sum_of_moments() -> None:
    moments = with_moments(ALGORITHMS["pfl"]).for_moments(POPULATION)
    assert moments is not None
    (release,) = moments.releases(POPULATION, 0)
    assert steps(release.event) == {GaussianNoise(noise_multiplier=8.0): 1}
    assert moments.trainer.clip_norm == WANTED.bound == pytest.approx(math.sqrt(3.75))


@pytest.mark.parametrize(
    "algorithm",
    [
        replace(ALGORITHMS["pfl"], sampling=RoundRobin(cohort=1)),
        d.ldp_fedavg(gradient_bound=1.0, learning_rate=0.1, noise_multiplier=2.0),
        d.ddp_fedavg(**EXAMPLES, gradients="local", local_steps=2, as_published=True),
    ],
    ids=["clients that take turns", "noise on each client's update", "as published"],
)
def test_algorithms_that_would_not_charge_every_client_soundly_sum_no_moments(algorithm: Algorithm) -> None:
    assert replace(algorithm, standardisation=WANTED).for_moments(POPULATION) is None


def test_what_the_moments_do_not_protect_is_not_promised() -> None:
    turns = replace(ALGORITHMS["pfl"], sampling=RoundRobin(cohort=1), standardisation=WANTED)
    assert turns.for_population(POPULATION, 10).releases(POPULATION, 0) == []
    assert replace(turns, sampling=Everyone()).for_population(POPULATION, 10).releases(POPULATION, 0)


def test_noise_of_few_rows_hides_the_spreads() -> None:
    algorithm = replace(ALGORITHMS["pfl"], standardisation=WANTED)
    assert is_worthwhile(algorithm, POPULATION)
    assert not is_worthwhile(algorithm, Population(examples=(20, 20)))
    many = replace(WANTED, inputs=2000, numeric=tuple(range(2000)))
    assert not is_worthwhile(replace(algorithm, standardisation=many), POPULATION)


def test_the_deviation_of_the_moments_follows_from_public_numbers() -> None:
    bound = WANTED.bound
    own, shared, whole = (
        moment_deviation(with_moments(ALGORITHMS[name]), POPULATION) for name in ("pfl", "ddp_fedavg", "dp_fedavg")
    )
    assert own == pytest.approx(8 * bound * math.sqrt(3) / 2000)
    assert shared == pytest.approx(8 * bound / 2000)
    assert whole == pytest.approx(8 * bound / 3)
