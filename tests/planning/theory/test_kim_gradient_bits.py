"""Bits of a noisy gradient: Kim, Günlü & Schaefer's bound in its own setting, and which bounds hold."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from discreet.planning.theory import kim_gradient_bits
from discreet.planning.theory.kim_noise_bounds import noise_bound
from tests.planning.theory.test_kim_noise_bounds import EPSILONS, PAPER

PRINTED = (11578, 3153, -1877, -8276, -13378, -16996, -22072, -25497, -25497, -25497)  # of Theorem 1's max(σ², 1)
NOISE_ALONE = (57545, 49121, 44091, 37691, 32590, 28972, 23895, 20471, 20471, 20471)


@pytest.mark.parametrize(("epsilon", "printed", "alone"), list(zip(EPSILONS, PRINTED, NOISE_ALONE, strict=True)))
def test_the_rate_is_the_known_one(epsilon: float, printed: int, alone: int) -> None:
    found = kim_gradient_bits.gradient_bits(
        10_000, noise_bound("theorem1", PAPER.with_epsilon(epsilon)).applied_variance
    )
    assert found.printed == pytest.approx(printed, abs=0.5)
    assert found.noise_alone == pytest.approx(alone, abs=0.5)
    assert found.noise_alone < found.corrected < found.noise_alone + 1  # 1/d of it is signal
    assert not found.printed_holds


@given(st.integers(1, 10**6), st.floats(1e-3, 1e3), st.floats(0.1, 10))
def test_what_is_printed_is_below_the_noise_alone_from_17_coordinates_on(d: int, variance: float, clip: float) -> None:
    found = kim_gradient_bits.gradient_bits(d, variance, clip_norm=clip)
    assert found.noise_alone <= found.corrected
    if abs(d / (2 * math.pi * math.e * clip**2) - 1) > 1e-9:
        assert (found.printed < found.noise_alone) == (d > 2 * math.pi * math.e * clip**2)


@given(st.integers(1, 10**4), st.floats(1e-3, 1e3), st.floats(0.1, 10))
def test_half_the_step_or_twice_the_unit_takes_a_bit_more_a_coordinate(d: int, variance: float, clip: float) -> None:
    one, half = (kim_gradient_bits.gradient_bits(d, variance, clip_norm=clip, step=step) for step in (1.0, 0.5))
    assert [b - a for a, b in zip(one, half, strict=True)] == pytest.approx([d] * 3)
    twice = kim_gradient_bits.gradient_bits(d, variance, clip_norm=2 * clip)
    gained = [b - a for a, b in zip(one, twice, strict=True)]
    assert gained == pytest.approx([2 * d, d, d])  # printed has C², of which one belongs to the noise


@pytest.mark.parametrize("deviation", [0.2, 0.5, 2.0])
def test_the_entropy_of_a_clipped_coordinate_with_noise_lies_between(deviation: float) -> None:
    """d = 1 and a gradient of ±C: a mixture of two Gaussians, whose entropy an integral gives."""

    def density(x: float) -> float:
        return float(stats.norm.pdf(x, -1, deviation) + stats.norm.pdf(x, 1, deviation)) / 2

    far = 1 + 12 * deviation
    entropy = -integrate.quad(lambda x: density(x) * math.log2(max(density(x), 1e-300)), -far, far, limit=200)[0]
    found = kim_gradient_bits.gradient_bits(1, deviation**2)
    assert found.noise_alone < entropy < found.corrected


def test_a_batch_of_four_at_one_half_has_a_quarter_more_of_squared_norm() -> None:
    """E|J|² = (0·1 + 1·4 + 4·6 + 9·4 + 16·1)/16 = 5, over (qn)² = 4."""
    assert kim_gradient_bits.batch_second_moment(0.5, 4) == pytest.approx(1.25)
    assert kim_gradient_bits.batch_second_moment(1.0, 4) == 1.0


def test_endless_noise_has_endless_bits() -> None:
    assert kim_gradient_bits.gradient_bits(10, math.inf) == (math.inf, math.inf, math.inf)
