"""Kim, Günlü & Schaefer's utility in its own setting, what its recursion proves, and where it is false."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidInput
from discreet.planning.theory import kim_utility
from discreet.planning.theory.kim_noise_bounds import noise_bound
from discreet.planning.theory.kim_utility import Learning
from tests.planning.theory.test_kim_noise_bounds import EPSILONS, PAPER, digits

SETTING = Learning(rounds=70_000, dimension=10_000)
KNOWN = {  # at max(σ², 1), by 100 clients who are alike; computed apart from this code
    "theorem1": "0.1641 0.5274 1.0591 2.5704 5.2087 8.5903 17.3104 27.7228 27.7228 27.7228",
    "moments": "0.0539 0.2146 0.4802 1.3194 2.9282 5.1346 11.2382 19.4326 27.7228 27.7228",
    "ac2": "0.0181 0.0657 0.1403 0.3665 0.7870 1.3551 2.9188 5.0345 10.8596 27.7228",
}
CELLS = [
    (name, epsilon, printed)
    for name, row in KNOWN.items()
    for epsilon, printed in zip(EPSILONS, row.split(), strict=True)
]
learnings = st.builds(
    Learning,
    rounds=st.integers(1, 2000),
    dimension=st.integers(1, 10**4),
    clip_norm=st.floats(5, 50),
    gradient_bound=st.floats(0.1, 5),
    smoothness=st.floats(1, 10),
    convexity=st.floats(0.1, 1),
)


@pytest.mark.parametrize(("name", "epsilon", "printed"), CELLS)
def test_the_utility_is_the_known_one(name: str, epsilon: float, printed: str) -> None:
    variance = noise_bound(name, PAPER.with_epsilon(epsilon)).applied_variance
    assert variance is not None
    noise = kim_utility.average_variance([1.0], [variance], [100])
    assert kim_utility.printed_utility(noise, SETTING) == pytest.approx(float(printed), abs=digits(printed))


def test_where_noise_is_small_half_of_the_scale_is_all_there_is() -> None:
    assert kim_utility.printed_utility(0.0, SETTING) == pytest.approx(2800 / 2)


def test_clients_who_are_alike_divide_the_variance_by_their_number() -> None:
    assert kim_utility.average_variance([600.0], [3.0], [100]) == pytest.approx(0.03)
    assert kim_utility.average_variance([600.0, 600.0], [3.0, 3.0], [40, 60]) == pytest.approx(0.03)


def test_clients_who_differ_weigh_by_their_expected_batches() -> None:
    """Two with batches of 1 and one with 3: (2·1²·4 + 3²·1)/(2·1 + 3)² = 17/25."""
    assert kim_utility.average_variance([1.0, 3.0], [4.0, 1.0], [2, 1]) == pytest.approx(17 / 25)


@given(learnings, st.floats(0, 10), st.floats(1, 2))
def test_what_is_proved_is_no_more_than_the_recursion_gives(learning: Learning, noise: float, moment: float) -> None:
    """a_{t+1} ≤ (1 − 2/t)·a_t + (mG² + dC²σ²)/(λ²t²), whose first factor is negative at t = 1 and a_1 ≥ 0 there."""
    square = moment * learning.gradient_bound**2 + learning.dimension * learning.clip_norm**2 * noise
    distance = 4 * (learning.gradient_bound / learning.convexity) ** 2
    for t in range(1, learning.rounds):
        distance = max(0.0, 1 - 2 / t) * distance + square / (learning.convexity * t) ** 2
    loss = learning.smoothness * distance / 2
    assert loss * kim_utility.proved_utility(noise, learning, moment) <= 1 + 1e-9


def test_where_the_clip_is_the_gradients_bound_both_say_the_same() -> None:
    learning = Learning(rounds=1000, dimension=50, clip_norm=2.0, gradient_bound=2.0, smoothness=3.0, convexity=0.5)
    for noise in (0.0, 0.001, 1.0):
        found = kim_utility.utility(noise, learning)
        assert (found.valid, found.reason) == (True, "")
        assert found.printed_bound == pytest.approx(found.proved_bound)


def test_a_clip_below_the_gradients_bound_proves_nothing_and_one_above_needs_other_steps() -> None:
    below = kim_utility.utility(0.01, SETTING)
    assert (below.valid, below.proved_bound) == (False, 0.0)
    assert "C = 1 is below G = 5" in below.reason
    above = kim_utility.utility(1.0, Learning(rounds=1000, dimension=10, clip_norm=10.0))
    assert not above.valid
    assert 0 < above.proved_bound < above.printed_bound
    assert "too short for the proof" in above.reason


def test_clipped_stochastic_gradients_miss_the_utility_that_is_printed() -> None:
    """Examples 0, 0, 0 and 4, ½(w − x)² each, one drawn a round, no noise: the best w is 1, where G = 4 on [0, 4].

    With C = 1, E clip(w − x) = ¾w − ¼ vanishes at w = 1/3, where the loss is 2/9 too high: U = 4.5, for ever. Printed
    is U ≥ T/32. At T = 2000 a run's w has a standard deviation below 0.1, so the mean of 1,000 is in no danger.
    """
    rounds, generator = 2000, np.random.default_rng(1)
    weights = np.full(1000, 2.0)
    for t in range(1, rounds + 1):
        drawn = np.where(generator.random(1000) < 0.25, 4.0, 0.0)
        weights = np.clip(weights - 4 / t * np.clip(weights - drawn, -1, 1), 0.0, 4.0)
    measured = 1 / float(np.mean((weights - 1) ** 2 / 2))
    learning = Learning(rounds=rounds, dimension=1, clip_norm=1.0, gradient_bound=4.0)
    assert measured == pytest.approx(4.5, rel=0.05)
    assert kim_utility.printed_utility(0.0, learning) == rounds / 32 > 10 * measured
    assert kim_utility.proved_utility(0.0, learning) == 0


def test_endless_noise_leaves_no_utility() -> None:
    assert kim_utility.printed_utility(math.inf, SETTING) == 0.0


def test_a_loss_can_not_be_more_convex_than_smooth() -> None:
    with pytest.raises(InvalidInput, match="No loss is 2-strongly convex and only 1-smooth"):
        Learning(rounds=1, dimension=1, convexity=2.0)
