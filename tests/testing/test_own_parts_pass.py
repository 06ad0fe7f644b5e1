"""Aggregations, server optimisers and schedules of this package keep their contracts, and so do compositions."""

from typing import Any, get_args

import pytest

from discreet.algorithms.aggregation import AnyAggregation, Lattice, Median, Plain, TrimmedMean
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.mechanisms import AdaptiveGaussian, DistributedGaussian, Gaussian, IntegerNoise, LocalNoise
from discreet.algorithms.population import Population
from discreet.algorithms.sampling import FixedSize
from discreet.algorithms.server_optimizers import AnyServer, ServerAdam, ServerSgd
from discreet.algorithms.sparsifiers import AllCoordinates, PublicTopK, PublishedTopK, RandomK, ServerTopK, TopK
from discreet.algorithms.training import BroadcastGradients, LocalSgd
from discreet.algorithms.training.schedules import (
    AnySchedule,
    Constant,
    Cosine,
    Exponential,
    Harmonic,
    Inverse,
    StepDecay,
)
from discreet.errors import UnsoundCombination
from discreet.params import count_values
from discreet.testing import check_aggregation, check_schedule, check_server_optimizer
from discreet.testing.mechanism_check import synthetic_model, try_mechanism

AGGREGATIONS = [
    Plain(),
    Lattice(),
    Lattice(bits=16),
    Lattice(rotated=True),
    Lattice(bits=16, rotated=True),
    Median(),
    TrimmedMean(),
    TrimmedMean(trim=0.49),
]
SERVERS = [ServerSgd(), ServerSgd(momentum=0.9, learning_rate=0.3), ServerAdam()]
SCHEDULES = [
    Constant(),
    Exponential(decay=0.9),
    Inverse(decay=0.1),
    Harmonic(gamma=3.0),
    StepDecay(every=20, decay=0.5),
    Cosine(length=60),
]

SPARSIFIERS = [
    AllCoordinates(),
    RandomK(fraction=0.1),
    RandomK(fraction=0.1, scaled=True),
    TopK(fraction=0.1),
    PublicTopK(fraction=0.1),
    ServerTopK(fraction=0.1),
    PublishedTopK(fraction=0.1),
]
MECHANISMS = [
    Gaussian(clip_norm=0.1, noise_multiplier=0.7),
    AdaptiveGaussian(clip_norm=0.1, noise_multiplier=3.0),
    DistributedGaussian(clip_norm=0.1, noise_multiplier=0.7),
    DistributedGaussian(noise_multiplier=0.7, shares=3),
    LocalNoise(kind="local_gaussian", clip_norm=0.1, noise_multiplier=2.0),
    LocalNoise(kind="local_laplace", clip_norm=0.1, noise_multiplier=2.0),
    IntegerNoise(kind="skellam", clip_norm=0.1, noise_multiplier=0.7, dropouts=1),
    IntegerNoise(kind="discrete_gaussian", noise_multiplier=0.7, colluding=1),
]
LOCAL = LocalSgd(learning_rate=1.0, batch_size=8, steps=1)
GRADIENTS = BroadcastGradients(steps=(1,), sampling_rate=0.5, clip_norm=1.0, learning_rate=1.0)


@pytest.mark.parametrize(
    ("union", "parts"), [(AnyAggregation, AGGREGATIONS), (AnyServer, SERVERS), (AnySchedule, SCHEDULES)]
)
def test_every_kind_is_here(union: Any, parts: list[Any]) -> None:
    assert {type(part) for part in parts} == set(get_args(get_args(union)[0]))


@pytest.mark.parametrize("aggregation", AGGREGATIONS, ids=str)
def test_an_aggregation_keeps_the_contract(aggregation: Any) -> None:
    assert check_aggregation(aggregation)


@pytest.mark.parametrize("server", SERVERS, ids=str)
def test_a_server_optimiser_keeps_the_contract(server: Any) -> None:
    assert check_server_optimizer(server)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_a_schedule_keeps_the_contract(schedule: Any) -> None:
    assert check_schedule(schedule)


@pytest.mark.parametrize("sparsifier", SPARSIFIERS, ids=lambda each: each.kind)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_no_sound_composition_is_refused(mechanism: Any, sparsifier: Any) -> None:
    """A clip of 0.1 after a sparsifier, fewer shares than clients, and clients that remove noise as published."""
    integers, examples = isinstance(mechanism, IntegerNoise), mechanism.unit == "example"
    parts: dict[str, Any] = {
        "trainer": GRADIENTS if examples else LOCAL,
        "mechanism": mechanism,
        "sparsifier": sparsifier,
        "aggregation": Lattice() if integers else Plain(),
        "sampling": FixedSize(cohort=5),
        "as_published": True,
    }
    model, population = synthetic_model(), Population(examples=(8,) * 12)
    try:
        algorithm = Algorithm(**parts).for_population(population, count_values(model))
    except UnsoundCombination:  # nothing of it ever runs
        assert sparsifier.depends_on_data
        return
    assert try_mechanism(algorithm, population, model)
