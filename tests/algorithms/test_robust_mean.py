"""Median and trimmed mean: what they compute, where they are refused, and that they change no guarantee."""

from dataclasses import replace

import pytest
import torch

from discreet.algorithms.aggregation import Aggregation, Median, Plain, TrimmedMean
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.mechanisms import (
    AdaptiveGaussian,
    AnyMechanism,
    DistributedGaussian,
    Gaussian,
    LocalNoise,
    NoPrivacy,
)
from discreet.algorithms.recipes.ldp_fedavg import ldp_fedavg
from discreet.algorithms.recipes.pfl import pfl
from discreet.algorithms.training import LocalSgd
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import Simulation
from discreet.errors import InvalidInput, UnsoundCombination
from discreet.part import from_plain
from discreet.randomness.streams import RunKey
from tests.engines.test_equal import engines_differ, train
from tests.federations import cross_entropy, federation, linear

HELD = federation(7, 1, 12, 4, 9)
ROBUST = [Median(), TrimmedMean(), TrimmedMean(trim=0.4)]
NOISED = {
    "pfl": pfl(learning_rate=0.5, clip_norm=0.5, sampling_rate=0.5, noise_multiplier=1.0),
    "ldp_fedavg": ldp_fedavg(learning_rate=0.2, gradient_bound=1.0, noise_multiplier=2.0),
    "ldp_fedavg in turns": ldp_fedavg(
        learning_rate=0.2, gradient_bound=1.0, noise="gaussian", cohort=2, noise_multiplier=2.0
    ),
}


def combine(aggregation: Aggregation, *numbers: float) -> float:
    """Return what the server divides by the number of clients: the combination of one coordinate."""
    combined = aggregation.combine({"w": torch.tensor(numbers, dtype=torch.float64)[:, None]})
    return float(combined["w"]) / len(numbers)


def test_the_median_of_an_odd_number_is_the_middle_and_of_an_even_one_the_mean_of_two() -> None:
    assert combine(Median(), 9, 1, 2) == 2
    assert combine(Median(), 9, 1, 2, 4) == 3
    assert combine(Median(), 5) == 5


def test_the_trimmed_mean_leaves_out_as_many_at_each_end() -> None:
    assert combine(TrimmedMean(trim=0.2), 1000, 1, 2, 3, -1000) == 2
    assert combine(TrimmedMean(trim=0.2), 1000, 1, 2, 3) == 251.5  # a fifth of four is none
    assert combine(TrimmedMean(trim=0.29), *range(100)) == 49.5


def test_two_of_ten_clients_move_a_trimmed_mean_no_further_than_the_honest_ones_reach() -> None:
    honest = [float(number) for number in range(8)]
    for lie in (1e30, -1e30):
        for aggregation in (Median(), TrimmedMean(trim=0.2)):
            assert 0 <= combine(aggregation, *honest, lie, lie) <= 7


@pytest.mark.parametrize("aggregation", ROBUST, ids=str)
@pytest.mark.parametrize("name", NOISED)
def test_the_guarantee_is_that_of_the_mean(name: str, aggregation: Aggregation) -> None:
    plain = NOISED[name].for_population(HELD.population, 18)
    robust = replace(NOISED[name], aggregation=aggregation).for_population(HELD.population, 18)  # type: ignore[arg-type]
    assert robust.planned_releases(5, HELD.population) == plain.planned_releases(5, HELD.population)
    assert robust.releases(HELD.population, 1, (0, 2), 2) == plain.releases(HELD.population, 1, (0, 2), 2)


@pytest.mark.parametrize("aggregation", ROBUST, ids=str)
@pytest.mark.parametrize("name", NOISED)
def test_engines_agree(name: str, aggregation: Aggregation) -> None:
    robust = replace(NOISED[name], aggregation=aggregation).for_population(HELD.population, 18)  # type: ignore[arg-type]
    assert engines_differ(robust, HELD, cross_entropy, linear(), rounds=3, block=2) < 1e-10


def test_the_model_is_not_that_of_the_mean() -> None:
    key, models = RunKey.from_seed(9), []
    for aggregation in (Plain(), Median()):
        algorithm = replace(NOISED["pfl"], aggregation=aggregation).for_population(HELD.population, 18)
        engine = EmbeddedEngine(Simulation(algorithm, HELD, cross_entropy, key))
        models.append(train(engine, algorithm, linear(), 1, key)["bias"])
    assert not torch.allclose(models[0], models[1])


def test_a_client_that_drops_out_does_not_shrink_the_step() -> None:
    algorithm = replace(NOISED["pfl"], aggregation=Median()).for_population(HELD.population, 18)
    engine = EmbeddedEngine(Simulation(algorithm, HELD, cross_entropy, RunKey.from_seed(9)))
    state = algorithm.init(linear())
    broadcast = algorithm.broadcast(state, 0)
    gathered = engine.gather(broadcast, [2])
    rows = engine.simulation.rows(broadcast, [-1])
    after = algorithm.server_step(state, broadcast, gathered.total, 1, HELD.population, rows)
    assert torch.allclose(after.params["bias"] - state.params["bias"], gathered.total["bias"])
    empty = engine.gather(broadcast, [])
    assert (
        algorithm.server_step(state, broadcast, empty.total, 0, HELD.population, rows).params["bias"].isfinite().all()
    )


@pytest.mark.parametrize("aggregation", ROBUST[:2], ids=str)
@pytest.mark.parametrize(
    "mechanism",
    [
        Gaussian(clip_norm=0.2, noise_multiplier=0.7),
        AdaptiveGaussian(clip_norm=0.2, noise_multiplier=0.7),
        DistributedGaussian(clip_norm=0.2, noise_multiplier=0.7),
    ],
    ids=lambda mechanism: mechanism.kind,
)
def test_a_median_is_refused_where_only_the_sum_has_enough_noise(
    mechanism: AnyMechanism, aggregation: Aggregation
) -> None:
    """One client moves a median by up to the clip norm, and the noise is for a mean that it moves by a share of it."""
    trainer = LocalSgd(learning_rate=0.1, batch_size=4, epochs=1)
    with pytest.raises(UnsoundCombination, match="can be moved by about the clip norm by one client"):
        Algorithm(trainer=trainer, mechanism=mechanism, aggregation=aggregation)  # type: ignore[arg-type]


def test_a_median_goes_with_noise_of_each_client_and_with_none_and_not_with_weights() -> None:
    trainer = LocalSgd(learning_rate=0.1, batch_size=4, epochs=1)
    local = LocalNoise(kind="local_gaussian", clip_norm=0.2, noise_multiplier=0.7)
    Algorithm(trainer=trainer, mechanism=local, aggregation=Median())
    Algorithm(trainer=trainer, mechanism=NoPrivacy(), aggregation=Median())  # nothing is promised
    with pytest.raises(InvalidInput, match="counts clients alike"):
        Algorithm(trainer=trainer, aggregation=Median(), weighting="by_examples")


def test_a_file_and_a_recipe_name_it() -> None:
    table = {"trainer": {"kind": "local_sgd", "learning_rate": 0.1, "batch_size": 4, "epochs": 1}}
    found = from_plain(Algorithm, table | {"aggregation": {"kind": "trimmed_mean", "trim": 0.1}})
    assert found.aggregation == TrimmedMean(trim=0.1)
    assert pfl(learning_rate=0.5, clip_norm=0.5, sampling_rate=0.5, aggregation=Median()).aggregation == Median()
    with pytest.raises(InvalidInput, match=r"trim: Input should be less than 0\.5"):
        TrimmedMean(trim=0.5)
