"""Noise to signal, computed from the parts, equals that of a round whose updates are all at the clip and equal."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.mechanisms import AdaptiveGaussian, Gaussian
from discreet.algorithms.noise_to_signal import noise_to_signal
from discreet.algorithms.population import Population
from discreet.algorithms.recipes.ddp_fedavg import ddp_fedavg, ddp_fedavg_client
from discreet.algorithms.recipes.dp_fedavg import dp_fedavg
from discreet.algorithms.recipes.fedavg import fedavg
from discreet.algorithms.recipes.fl_sgd_gaussian import fl_sgd_gaussian
from discreet.algorithms.recipes.ldp_fedavg import ldp_fedavg
from discreet.algorithms.recipes.linear_models import convex_local, proximal_local
from discreet.algorithms.recipes.local_schemes import denoised_release, shards
from discreet.algorithms.recipes.pfl import pfl
from discreet.algorithms.sampling import Poisson, RoundRobin
from discreet.algorithms.sparsifiers import PublishedTopK, RandomK
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import Simulation
from discreet.params import Params
from discreet.randomness.streams import RunKey
from tests.federations import federation

HELD = federation(4, 9, 6, 7)
DIMENSION = 4000
LOCAL: dict[str, Any] = {"learning_rate": 0.1, "batch_size": 4, "clip_norm": 0.5}
STEPS: dict[str, Any] = {"learning_rate": 0.5, "clip_norm": 0.7, "sampling_rate": 1.0, "local_steps": 3}
CENTRAL = dp_fedavg(noise_multiplier=2.0, **LOCAL)
EVERY = {
    "central": CENTRAL,
    "adaptive": replace(CENTRAL, mechanism=AdaptiveGaussian(clip_norm=0.5, noise_multiplier=2.0, flag=0.3)),
    "masked": replace(CENTRAL, sparsifier=RandomK(fraction=0.5)),
    "shares of whole clients": ddp_fedavg_client(noise_multiplier=2.0, noise="gaussian", **LOCAL),
    "Skellam shares of whole clients": ddp_fedavg_client(noise_multiplier=2.0, dropouts=1, **LOCAL),
    "local Laplace": ldp_fedavg(learning_rate=0.1, gradient_bound=1.0, local_iterations=3, noise_multiplier=2.0),
    "local Gaussian, each its own": ldp_fedavg(
        learning_rate=0.1, gradient_bound=1.0, noise="gaussian", noise_multiplier=(1.0, 2.0, 3.0, 4.0)
    ),
    "DP-SGD": pfl(noise_multiplier=2.0, **STEPS),
    "DP-SGD with momentum": pfl(noise_multiplier=2.0, momentum=0.9, **STEPS),
    "DP-SGD, each its own": fl_sgd_gaussian(
        learning_rate=0.5, sampling_rate=1.0, clip_norm=(0.5, 1.0, 2.0, 1.0), noise_multiplier=(1.0, 2.0, 3.0, 4.0)
    ),
    "minibatches": fl_sgd_gaussian(
        learning_rate=0.5, sampling_rate=1.0, clip_norm=0.7, clipping="minibatch", noise_multiplier=2.0
    ),
    "shares of examples": ddp_fedavg(noise_multiplier=2.0, noise="gaussian", **STEPS),
    "Skellam shares of examples": ddp_fedavg(noise_multiplier=2.0, **STEPS),
    "denoised": denoised_release(noise_multiplier=2.0, **STEPS),
    "shards": shards(shards=1, noise_multiplier=2.0, **LOCAL),
}


def move_model(algorithm: Algorithm, steepness: float) -> Tensor:
    """Return how a round moves a model if every example has the same gradient of this norm along one coordinate."""
    wide = {"weight": torch.zeros(800, 5, dtype=torch.float64)}

    def slope(params: Params, inputs: Tensor, targets: Tensor) -> Tensor:
        return steepness * params["weight"].flatten()[0] * torch.ones(len(inputs), dtype=torch.float64)

    sim = Simulation(algorithm, HELD, slope, RunKey.from_seed(2))
    state = algorithm.init(wide)
    broadcast = algorithm.broadcast(state, 0)
    total = EmbeddedEngine(sim).gather(broadcast, [0, 1, 2, 3]).total
    after = algorithm.server_step(state, broadcast, total, 4, HELD.population, sim.rows(broadcast, [-1]))
    return after.params["weight"]


@pytest.mark.parametrize("name", EVERY)
def test_noise_to_signal_is_what_a_round_at_the_clip_has(name: str):
    """A norm of noise in 2,000 coordinates or more has a deviation of 2 %, and is 10 % off in one run of 1e6."""
    algorithm = EVERY[name].for_population(HELD.population, DIMENSION)
    noise = move_model(algorithm, 0.0)
    signal = move_model(algorithm, 1000.0) - noise  # the streams are the same, so that only the signal is left
    found = noise_to_signal(algorithm, HELD.population, DIMENSION)
    assert found == pytest.approx(float(noise.norm() / signal.norm()), rel=0.1)


def test_by_hand():
    ten = Population(examples=(100,) * 10)
    assert noise_to_signal(dp_fedavg(noise_multiplier=2.0, **LOCAL), ten, 100) == pytest.approx(10 * 2 / 10)
    own = ldp_fedavg(learning_rate=0.1, gradient_bound=1.0, noise="gaussian", noise_multiplier=2.0)
    assert noise_to_signal(own, ten, 100) == pytest.approx(10 * 2 / math.sqrt(10))
    steps = pfl(learning_rate=1.0, clip_norm=0.3, sampling_rate=0.5, local_steps=4, noise_multiplier=2.0)
    assert noise_to_signal(steps, ten, 100) == pytest.approx(10 * 2 / (50 * math.sqrt(4 * 10)))
    whole = convex_local(learning_rate=2.0, clip_norm=0.5, feature_bound=3.0, batch_size=4, noise_multiplier=2.0)
    assert noise_to_signal(whole.for_population(ten), ten, 100) == pytest.approx(10 * 2 / (10 * 100))


def test_fewer_clients_a_round_are_fewer_to_drown_the_noise():
    ten = Population(examples=(100,) * 10)
    drawn = replace(CENTRAL, sampling=Poisson(rate=0.5))
    assert noise_to_signal(drawn, ten, 100) == pytest.approx(10 * 2 / 5)
    turns = replace(EVERY["DP-SGD"], sampling=RoundRobin(cohort=5))
    everyone = noise_to_signal(EVERY["DP-SGD"], ten, 100)
    assert everyone is not None
    assert noise_to_signal(turns, ten, 100) == pytest.approx(everyone * math.sqrt(2))


def test_a_pull_back_shortens_what_passes_add_up_to():
    ten = Population(examples=(100,) * 10)
    common: dict[str, Any] = {"learning_rate": 1.0, "clip_norm": 0.5, "feature_bound": 2.0, "batch_size": 50}
    pulled = proximal_local(passes=2, strength=0.1, noise_multiplier=2.0, **common).for_population(ten)
    longest = 0.25 * (1 + 0.9 + 0.9**2 + 0.9**3)  # two passes of two steps of γC/F, each of which keeps 1 − γλ
    reach = 0.25 / 50 * (1 + 0.9**2)
    assert noise_to_signal(pulled, ten, 100) == pytest.approx(10 * 2 * reach / (10 * longest))


def test_shards_that_are_empty_add_nothing_to_the_signal():
    """400 shards of 100 examples: at most a quarter of them send anything, and an example moves the mean by 2C/400."""
    ten = Population(examples=(100,) * 10)
    many = shards(shards=400, noise_multiplier=2.0, **LOCAL).for_population(ten)
    assert noise_to_signal(many, ten, 100) == pytest.approx(10 * 2 * (2 / 400) / (10 * 100 / 400))


def test_without_one_noise_there_is_no_one_number():
    ten = Population(examples=(100,) * 10)
    assert noise_to_signal(fedavg(learning_rate=0.1, batch_size=4), ten, 100) is None
    both = replace(EVERY["DP-SGD"], mechanism=Gaussian(clip_norm=1.0, noise_multiplier=1.0))
    assert noise_to_signal(both, ten, 100) is None
    thinned = replace(EVERY["shares of whole clients"], sparsifier=PublishedTopK(fraction=0.4), as_published=True)
    assert noise_to_signal(thinned.for_population(ten), ten, 100) is None
