"""Theorems 3 and 4 of docs/notes/local_steps.md, by numbers: densities integrated, and the worst example searched."""

import math
from statistics import NormalDist

import numpy as np
import pytest
import torch

from discreet.algorithms.training import LocalSgd, Shards
from discreet.privacy import accountant
from discreet.privacy.events import sampled_gaussian
from tests.algorithms.training.test_shards import update
from tests.federations import DOUBLE

RATE, LOCAL, SHARED = 0.2, 1.0, 4.0  # the sampling rate, and both noises in units of C
BOTH = 1 / math.sqrt(1 / LOCAL**2 + 1 / SHARED**2)  # Theorem 3's noise
EPSILONS = (0.1, 0.3, 0.6, 1.0)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_two_looks_at_one_sampled_gradient_are_one_at_the_combined_noise(epsilon: float):
    """δ(ε) of the pair (a, b) of Theorem 3's proof, as a double integral, both ways."""
    x = np.linspace(-9, 10, 1901) * LOCAL
    y = np.linspace(-9, 10, 1901) * SHARED
    area = (x[1] - x[0]) * (y[1] - y[0])

    def density(mean: float) -> np.ndarray:
        of_a = np.exp(-(((x - mean) / LOCAL) ** 2) / 2) / (LOCAL * math.sqrt(2 * math.pi))
        of_b = np.exp(-(((y - mean) / SHARED) ** 2) / 2) / (SHARED * math.sqrt(2 * math.pi))
        return np.outer(of_a, of_b)

    without = density(0.0)
    with_it = (1 - RATE) * without + RATE * density(1.0)
    ways = ((with_it, without), (without, with_it))
    exact = max(float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) * area for p, q in ways)
    stated = accountant.delta(sampled_gaussian(BOTH, RATE, 1), epsilon)
    assert exact <= stated * (1 + 1e-5)
    assert exact == pytest.approx(stated, rel=5e-3, abs=1e-9)


def released_delta(epsilon: float, copies: float, noise_on_state: float) -> float:
    """δ(ε) of what two steps release when the other examples' second gradient repeats the state `copies` times.

    The state after the first step holds g₁ + σ_L·ξ, and the others' gradients at it may be anything: here K times it.
    So the sum is (1 + K)·g₁ + g₂ + N(0, K²σ_L² + 2σ_Z²), where g₁ and g₂ are 1 if the example was drawn, else 0.
    """
    deviation = math.sqrt((copies * noise_on_state) ** 2 + 2 * SHARED**2)
    drawn = [(0.0, (1 - RATE) ** 2), (1.0, RATE * (1 - RATE)), (1 + copies, RATE * (1 - RATE)), (2 + copies, RATE**2)]
    x = np.linspace(-10 * deviation, 2 + copies + 10 * deviation, 200_001)
    normal = NormalDist(0, deviation)

    def density(mean: float) -> np.ndarray:
        return np.exp(-(((x - mean) / deviation) ** 2) / 2) * normal.pdf(0)

    without, with_it = density(0.0), sum(chance * density(mean) for mean, chance in drawn)
    step = x[1] - x[0]
    ways = ((with_it, without), (without, with_it))
    return max(float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) * step for p, q in ways)


@pytest.mark.parametrize("copies", [0.0, -1.0, 1.0, 10.0, 1e4])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_however_the_state_comes_back_two_steps_reveal_no_more_than_theorem_3_says(epsilon: float, copies: float):
    stated = accountant.delta(sampled_gaussian(BOTH, RATE, 2), epsilon)
    assert released_delta(epsilon, copies, LOCAL) <= stated


def test_the_shared_noise_alone_would_not_be_enough():
    """What the state's own noise hides, the shared noise doesn't: the check above can fail."""
    claimed = accountant.delta(sampled_gaussian(SHARED, RATE, 2), 0.3)
    assert released_delta(0.3, 1e4, LOCAL) > 100 * claimed
    assert released_delta(0.3, 1e4, LOCAL / 4) > accountant.delta(sampled_gaussian(BOTH, RATE, 2), 0.3)


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_the_worst_example_of_a_search_moves_the_mean_of_the_shards_by_nearly_2c_over_m_and_no_more(shards: int):
    """A random search for the example that moves the update most, from data that pull the other way."""
    clip = 0.01
    trainer = Shards(shards=shards, clip_norm=clip, local=LocalSgd(learning_rate=1.0, batch_size=8, epochs=1))
    draw = torch.Generator().manual_seed(shards)
    base = torch.randn(6, 2, generator=draw, dtype=DOUBLE)
    labels = (base[:, 0] > 0).long()
    most = 0.0
    for trial in range(60):
        scale = 10.0 ** (4 * float(torch.rand(1, generator=draw)))
        example = scale * torch.randn(1, 2, generator=draw, dtype=DOUBLE)
        target = torch.randint(2, (1,), generator=draw)
        whole = update(trainer, torch.cat([base, example]), torch.cat([labels, target]), seed=trial % 4)
        most = max(most, float((whole - update(trainer, base, labels, seed=trial % 4)).norm()))
    assert 1.5 * clip / shards < most <= 2 * clip / shards
