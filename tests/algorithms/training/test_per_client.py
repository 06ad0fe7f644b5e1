"""Clients with their own settings: a block of clients gives what each gives alone."""

import math
from dataclasses import replace

import pytest
import torch

from discreet.algorithms import per_client
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.mechanisms import Gaussian
from discreet.algorithms.population import Population
from discreet.algorithms.recipes.fl_sgd_gaussian import fl_sgd_gaussian
from discreet.algorithms.recipes.ldp_fedavg import ldp_fedavg
from discreet.algorithms.recipes.pfl import pfl
from discreet.algorithms.training import DpSgd, MinibatchDp
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import Simulation
from discreet.engines.reference import ReferenceEngine
from discreet.errors import InvalidInput, UnsoundCombination, Unsupported
from discreet.part import from_plain, to_plain
from discreet.privacy.events import GaussianNoise, PoissonSampled, steps
from discreet.randomness.streams import RunKey
from tests.federations import convolution, cross_entropy, federation, images, linear

RATES, CLIPS, NOISE = (0.3, 0.6, 0.9), (0.5, 1.0, 2.0), (1.0, 2.0, 4.0)
OWN = {"sampling_rate": RATES, "clip_norm": CLIPS, "noise_multiplier": NOISE}
TRAINERS = [
    DpSgd(steps=2, learning_rate=0.1, **OWN),  # type: ignore[arg-type]
    DpSgd(steps=2, learning_rate=0.1, automatic=True, **OWN),  # type: ignore[arg-type]
    MinibatchDp(steps=2, learning_rate=0.1, **OWN),  # type: ignore[arg-type]
]
HELD = federation(4, 9, 6)


def simulation(algorithm: Algorithm, client: int | None = None) -> Simulation:
    return Simulation(algorithm, HELD, cross_entropy, RunKey.from_seed(1))


@pytest.mark.parametrize("trainer", TRAINERS, ids=lambda each: each.kind)
def test_in_a_block_each_client_trains_by_its_own_rate_clip_and_noise(trainer: DpSgd | MinibatchDp):
    broadcast = Broadcast(0, linear(), {})
    together = simulation(Algorithm(trainer=trainer)).step(broadcast, [0, 1, 2]).rows
    for client in range(3):
        alone = Algorithm(trainer=per_client.for_client(trainer, client))
        own = simulation(alone).step(broadcast, [client]).rows
        for name, value in own.items():
            torch.testing.assert_close(together[name][client], value[0], rtol=1e-10, atol=1e-12)


def test_own_clips_hold_layer_by_layer_and_one_by_one():
    params, loss = convolution()
    trainer = DpSgd(steps=1, sampling_rate=1.0, clip_norm=(0.1, 0.4), noise_multiplier=1e-6, learning_rate=1.0)
    sim = Simulation(Algorithm(trainer=trainer), images(1, 1), loss, RunKey.from_seed(0))
    rows = sim.step(Broadcast(0, params, {}), [0, 1]).norms
    assert rows[0] == pytest.approx(0.1, rel=1e-3)  # one example, whose gradient is longer than either clip
    assert rows[1] == pytest.approx(0.4, rel=1e-3)


@pytest.mark.parametrize(
    "algorithm",
    [
        fl_sgd_gaussian(learning_rate=0.5, **OWN),  # type: ignore[arg-type]
        fl_sgd_gaussian(learning_rate=0.5, clipping="minibatch", **OWN),  # type: ignore[arg-type]
        ldp_fedavg(learning_rate=0.1, gradient_bound=1.0, noise_multiplier=NOISE),
        ldp_fedavg(learning_rate=0.1, gradient_bound=1.0, noise="gaussian", noise_multiplier=NOISE),
    ],
)
def test_engines_agree_on_clients_that_differ(algorithm: Algorithm):
    sim = simulation(algorithm)
    broadcast = algorithm.broadcast(algorithm.init(linear()), 0)
    one, other = (engine.gather(broadcast, [0, 1, 2]) for engine in (ReferenceEngine(sim), EmbeddedEngine(sim, 2)))
    for name, value in one.total.items():
        torch.testing.assert_close(other.total[name], value, rtol=1e-10, atol=1e-12)
    assert from_plain(Algorithm, to_plain(algorithm)) == algorithm


def test_each_kind_of_client_has_a_release_of_its_own():
    algorithm = fl_sgd_gaussian(
        learning_rate=1, sampling_rate=(0.1, 0.2, 0.1), clip_norm=(1, 2, 1), noise_multiplier=(1, 2, 1)
    )
    population = Population(examples=(100, 50, 20))
    found = {each.clients: each for each in algorithm.releases(population, 0)}
    assert set(found) == {(0, 2), (1,)}
    (step,) = steps(found[1,].event)
    assert step == PoissonSampled(sampling_rate=0.2, event=GaussianNoise(noise_multiplier=2))
    assert [each.clients for each in algorithm.releases(population, 0, cohort=(2,))] == [(2,)]


def test_a_ledger_that_tells_no_clients_apart_is_charged_for_the_one_that_reveals_most():
    worst = fl_sgd_gaussian(learning_rate=1, **OWN).worst_case().trainer  # type: ignore[arg-type]
    assert (worst.sampling_rate, worst.noise_multiplier) == (0.9, 1.0)  # type: ignore[union-attr]


def test_clients_weigh_as_much_as_the_examples_they_are_expected_to_use():
    algorithm = fl_sgd_gaussian(learning_rate=1, sampling_rate=(0.5, 0.25), clip_norm=1, noise_multiplier=1)
    population = Population(examples=(100, 600))  # 50 and 150 expected: mean 100
    assert algorithm.weights(population) == (0.5, 1.5)
    assert algorithm.expected_cohort(population) == 2
    assert algorithm.expected_cohort(population, departed={1}) == 0.5
    assert pfl(learning_rate=1, clip_norm=1, sampling_rate=0.5).expected_cohort(population, departed={1}) == 1


def test_the_server_divides_by_the_weights_of_those_who_are_left():
    """Two clients whose updates are all 1: the mean is 1, no matter who has left."""
    algorithm = fl_sgd_gaussian(learning_rate=1, sampling_rate=(0.5, 0.25), clip_norm=1, noise_multiplier=1)
    population = Population(examples=(100, 600))
    state = algorithm.init({"w": torch.zeros(1)})
    broadcast = algorithm.broadcast(state, 0)
    noise = RunKey.from_seed(0).rows(0, b"", [-1], torch.device("cpu"))
    for left, weights in (((), 2.0), ((1,), 0.5), ((0,), 1.5)):
        total = {"w": torch.full((1,), weights)}
        moved = algorithm.server_step(state, broadcast, total, 2 - len(left), population, noise, left)
        assert moved.params["w"].item() == pytest.approx(1.0)


def test_bad_lists_are_refused():
    with pytest.raises(InvalidInput, match=r"sampling_rate must name one number for each of 3 clients, and got 2"):
        fl_sgd_gaussian(learning_rate=1, sampling_rate=(0.1, 0.2), clip_norm=1).for_population(HELD.population)
    with pytest.raises(InvalidInput, match=r"sampling_rate\.1: must be above 0 and at most 1, and got 2\.0"):
        fl_sgd_gaussian(learning_rate=1, sampling_rate=(0.1, 2), clip_norm=1)
    with pytest.raises(InvalidInput, match=r"sampling_rate: must be above 0 and at most 1, and got 2\.0"):
        fl_sgd_gaussian(learning_rate=1, sampling_rate=2, clip_norm=1)
    with pytest.raises(InvalidInput, match="sampling_rate: must not be empty"):
        fl_sgd_gaussian(learning_rate=1, sampling_rate=(), clip_norm=1)
    with pytest.raises(InvalidInput, match="different numbers of steps in an epoch"):
        pfl(learning_rate=1, clip_norm=1, sampling_rate=(0.1, 0.2), epochs=1)
    with pytest.raises(Unsupported, match="one noise on the sum serves all"):
        Gaussian(clip_norm=1).with_noise((1.0, 2.0))
    overlapping = Population(examples=(5, 5, 5), max_multiplicity=2)
    with pytest.raises(UnsoundCombination, match="they protect it differently"):
        fl_sgd_gaussian(learning_rate=1, **OWN).for_population(overlapping)  # type: ignore[arg-type]


def test_one_number_for_all_is_as_before():
    trainer = DpSgd(steps=1, sampling_rate=0.5, clip_norm=1.0, noise_multiplier=1.0, learning_rate=1.0)
    listed = replace(trainer, sampling_rate=(0.5,) * 3, clip_norm=(1.0,) * 3, noise_multiplier=(1.0,) * 3)
    broadcast = Broadcast(0, linear(), {})
    one, other = (simulation(Algorithm(trainer=each)).step(broadcast, [0, 1, 2]).rows for each in (trainer, listed))
    assert all(torch.allclose(one[name], other[name], rtol=1e-12, atol=0) for name in one)
    assert math.isclose(per_client.largest(listed.clip_norm), 1.0)
