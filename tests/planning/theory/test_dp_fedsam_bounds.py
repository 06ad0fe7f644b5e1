"""DP-FedSAM's theorems: by hand, and against simulated clients."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidInput
from discreet.planning.theory import dp_fedsam_bounds
from discreet.planning.theory.dp_fedsam_bounds import LossConstants, SamRun

CIFAR = SamRun(
    clients=500,
    cohort=50,
    rounds=300,
    local_steps=60,
    radius=0.5,
    clip_norm=0.2,
    noise_multiplier=0.95,
    dimension=11_173_962,
)
ONES = LossConstants()


@pytest.mark.parametrize(("rounds", "delta", "epsilon"), [(200, 2e-3, 7.301), (300, 2e-3, 9.373), (300, 5e-3, 8.482)])
def test_the_certified_epsilon_is_that_of_another_accountant(rounds: int, delta: float, epsilon: float) -> None:
    assert dp_fedsam_bounds.certified_epsilon(replace(CIFAR, rounds=rounds), delta) == pytest.approx(epsilon, abs=1e-3)


@given(st.floats(0, 10), st.integers(1, 10**9), st.integers(1, 1000), st.floats(1e-3, 1e3))
def test_neither_radius_nor_size_nor_local_work_nor_clip_bears_on_privacy(
    radius: float, dimension: int, local_steps: int, clip_norm: float
) -> None:
    run = replace(CIFAR, radius=radius, dimension=dimension, local_steps=local_steps, clip_norm=clip_norm)
    assert dp_fedsam_bounds.event(run) == dp_fedsam_bounds.event(CIFAR)
    assert dp_fedsam_bounds.certified_round_epsilon(run, 1e-5) == dp_fedsam_bounds.certified_round_epsilon(CIFAR, 1e-5)


def test_the_sensitivities_of_theorem_1_by_hand() -> None:
    """η = 0.1, K = 4, L = 2, σ_l = 3, ρ = ½: SGD 6·0.01·9·4/(1 − 0.48), SAM 6·0.01·¼·4·4·(12·16·4·0.01 + 10)/0.68."""
    run, landscape = replace(CIFAR, local_steps=4), LossConstants(smoothness=2.0, local_deviation=3.0)
    assert dp_fedsam_bounds.sgd_sensitivity(run, landscape, 0.1).value == pytest.approx(2.16 / 0.52)
    assert dp_fedsam_bounds.sam_sensitivity(run, landscape, 0.1).value == pytest.approx(0.24 * 17.68 / 0.68)
    assert dp_fedsam_bounds.mean_sensitivity(run) == pytest.approx(0.004)


def test_where_a_denominator_turns_negative_there_is_no_number() -> None:
    """The paper's runs have a rate of 0.1 and 60 steps: with L = 1 both denominators, 1 − 1.8 and 1 − 1.2, are."""
    for formula, least in ((dp_fedsam_bounds.sgd_sensitivity, -0.8), (dp_fedsam_bounds.sam_sensitivity, -0.2)):
        found = formula(CIFAR, ONES, 0.1)
        assert found.value == math.inf
        assert not found.valid
        assert f"its denominator is {least:.4g}" in found.reason
        assert formula(CIFAR, ONES, found.below * (1 - 1e-9)).value < math.inf
        assert formula(CIFAR, ONES, found.below * (1 + 1e-9)).value == math.inf


def test_at_the_papers_own_radius_the_bound_of_sam_is_not_the_smaller_one() -> None:
    """Remark 1 says that it is. For small rates their ratio is 10ρ²L²/σ_l²: 2.5 at ρ = ½, and below 1 from 0.316 on."""
    rate = dp_fedsam_bounds.theorem_learning_rate(CIFAR, ONES) / 1000
    sgd = dp_fedsam_bounds.sgd_sensitivity(CIFAR, ONES, rate).value
    assert dp_fedsam_bounds.sam_sensitivity(CIFAR, ONES, rate).value / sgd == pytest.approx(2.5, rel=1e-3)
    assert dp_fedsam_bounds.sam_sensitivity(replace(CIFAR, radius=0.3), ONES, rate).value < sgd


def train_distance(gradient_of: dict[str, float], radius: float, steps: int, rate: float) -> float:
    """Return how far local training moves from 0 on ½·curvature·w² − example·w by SAM, which at radius 0 is SGD."""
    w = 0.0
    for _ in range(steps):
        gradient = gradient_of["curvature"] * w - gradient_of["example"]
        looked = w + radius * float(np.sign(gradient))
        w -= rate * (gradient_of["curvature"] * looked - gradient_of["example"])
    return w


@pytest.mark.parametrize("radius", [0.0, 0.5])
def test_a_client_with_one_example_is_more_sensitive_than_theorem_1_says(radius: float) -> None:
    """One example, 5 or −5, of a loss of curvature 1: gradients have no variance, so SGD's number is 0; SAM's is 0.155
    at ρ = ½ and 0 at ρ = 0. The updates of one step at a rate of 0.1 differ by 1 or more.
    """
    run, landscape = replace(CIFAR, local_steps=1, radius=radius), LossConstants(local_deviation=0.0)
    one, other = (train_distance({"curvature": 1.0, "example": each}, radius, 1, 0.1) for each in (5.0, -5.0))
    squared = (one - other) ** 2
    sam = dp_fedsam_bounds.sam_sensitivity(run, landscape, 0.1)
    assert squared >= 1 - 1e-12 > 6 * sam.value
    assert dp_fedsam_bounds.sgd_sensitivity(run, landscape, 0.1).value == 0.0
    assert not sam.valid
    assert sam.reason == dp_fedsam_bounds.THEOREM_1_ERROR


def test_the_terms_of_theorem_3_by_hand() -> None:
    """T = 4, K = 9, m = 2, σC = 3, p·d = ½·8, L = 2, f − f* = 5, σ_l = 3, σ_g = 4, ᾱ = ½, α̃ = ¼."""
    run = SamRun(
        clients=10,
        cohort=2,
        rounds=4,
        local_steps=9,
        radius=1.0,
        clip_norm=1.5,
        noise_multiplier=2.0,
        dimension=8,
        fraction=0.5,
    )
    landscape = LossConstants(
        smoothness=2.0, local_deviation=3.0, global_deviation=4.0, gap=5.0, clipped=0.5, unlike=0.25
    )
    found = dp_fedsam_bounds.convergence_terms(run, landscape)
    assert found.optimisation == pytest.approx(2 * 2 * 5 / 6)
    assert found.variance == pytest.approx(36 / (9 * 16))
    assert found.clipping == pytest.approx((0.5 * 16 + 0.25 * 4) / 4)
    assert found.noise == pytest.approx(4 * 2 * 9 * 4 / (4 * 3))
    assert found.total == pytest.approx(sum(found))


def test_the_noise_of_theorem_3_grows_as_the_root_of_rounds_and_swamps_the_rest_in_the_papers_setting() -> None:
    once, often = (dp_fedsam_bounds.convergence_terms(replace(CIFAR, rounds=rounds), ONES) for rounds in (300, 1200))
    assert often.noise == pytest.approx(2 * once.noise)
    assert once.noise == pytest.approx(360.8, abs=0.05)
    assert once.noise > 1e4 * (once.optimisation + once.clipping)
    assert dp_fedsam_bounds.best_rounds(CIFAR, ONES) == 1


@given(st.integers(1, 3000), st.floats(0.1, 10), st.integers(1, 20))
def test_the_best_number_of_rounds_is_better_than_its_neighbours(dimension: int, gap: float, steps: int) -> None:
    run, landscape = replace(CIFAR, dimension=dimension, local_steps=steps), LossConstants(gap=gap)
    best = dp_fedsam_bounds.best_rounds(run, landscape)
    least = dp_fedsam_bounds.convergence_terms(replace(run, rounds=best), landscape).total
    for rounds in {max(1, best // 2), max(1, best - 1), best + 1, 2 * best}:
        assert least <= dp_fedsam_bounds.convergence_terms(replace(run, rounds=rounds), landscape).total


def test_theorem_4_as_its_proof_ends() -> None:
    """L = 3, ρ = 2, σC = 1.5, d = 4, m/N = 1/5, δ = e^−2: Lρ/(σCd) = 1, so ln(0.8 + 0.2·e^(2 + 2))."""
    run = SamRun(
        clients=10,
        cohort=2,
        rounds=1,
        local_steps=1,
        radius=2.0,
        clip_norm=1.0,
        noise_multiplier=1.5,
        dimension=4,
    )
    found = dp_fedsam_bounds.printed_round_epsilon(run, LossConstants(smoothness=3.0), math.exp(-2))
    assert found == pytest.approx(math.log(0.8 + 0.2 * math.exp(4)))
    assert dp_fedsam_bounds.printed_round_epsilon(replace(run, radius=0.0), ONES, 0.1) == 0.0


def test_theorem_4_promises_more_the_larger_the_model_is_and_a_million_times_too_much() -> None:
    assert dp_fedsam_bounds.printed_round_epsilon(CIFAR, ONES, 2e-3) == pytest.approx(8.303e-8, rel=1e-3)
    larger = dp_fedsam_bounds.printed_round_epsilon(replace(CIFAR, dimension=10 * CIFAR.dimension), ONES, 2e-3)
    assert larger == pytest.approx(8.303e-9, rel=1e-3)
    assert dp_fedsam_bounds.certified_round_epsilon(CIFAR, 2e-3) == pytest.approx(0.5751, abs=5e-5)


@given(st.floats(1e-6, 2), st.integers(1, 1000), st.floats(1e-10, 0.1))
def test_rounds_compose_as_theorem_5_prints_it(epsilon: float, rounds: int, delta: float) -> None:
    whole, _ = dp_fedsam_bounds.compose_rounds(epsilon, delta, rounds, 0.1)
    drift = rounds * epsilon * (math.exp(epsilon) - 1) / (math.exp(epsilon) + 1)
    assert whole == pytest.approx(math.sqrt(2 * rounds * math.log(1 / delta) * epsilon**2) + drift)


@pytest.mark.parametrize(("epsilon", "rounds"), [(0.1, 50), (0.5, 20), (0.02, 1000)])
def test_what_is_composed_covers_randomised_response(epsilon: float, rounds: int) -> None:
    """It reveals the most of all ε-private mechanisms; its δ at ε' is a binomial sum."""
    whole, delta = dp_fedsam_bounds.compose_rounds(epsilon, 1e-4, rounds, 0.1)
    truth = 1 / (1 + math.exp(-epsilon))
    exact = sum(
        math.comb(rounds, k)
        * max(0.0, truth**k * (1 - truth) ** (rounds - k) - math.exp(whole) * (1 - truth) ** k * truth ** (rounds - k))
        for k in range(rounds + 1)
    )
    assert exact <= 1e-4 <= delta <= 1e-4 + rounds * 1e-5


def test_theorem_5_by_hand_and_where_it_says_nothing() -> None:
    """ε' = 0.1, δ' = 1e-4: within 0.4, except for 2·e^−0.17·1e-3·ln 20 = 0.00505."""
    found = dp_fedsam_bounds.generalisation_bound(0.1, 1e-4)
    assert (found.gap, found.valid, found.reason) == (pytest.approx(0.4), True, "")
    assert found.chance == pytest.approx(1 - 2e-3 * math.exp(-0.17) * math.log(20))
    wide = dp_fedsam_bounds.generalisation_bound(0.25, 1e-4)
    assert (wide.gap, wide.valid, wide.reason) == (1.0, False, "losses differ by at most 1 anyway")
    unlikely = dp_fedsam_bounds.generalisation_bound(1e-5, 1e-3)
    assert unlikely.chance < 0
    assert not unlikely.valid
    assert not dp_fedsam_bounds.generalisation_bound(0.0, 1e-3).valid


def test_a_cohort_larger_than_all_clients_is_refused() -> None:
    with pytest.raises(InvalidInput, match="A cohort of 501 can't be drawn from 500 clients"):
        replace(CIFAR, cohort=501)
