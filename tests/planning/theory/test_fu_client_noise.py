"""A client's own noise: what the theorems of Fu et al. need, what their corollaries say, and the true cost."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidInput
from discreet.planning.theory import fu_client_noise
from discreet.planning.theory.fu_client_noise import ClientNoise
from discreet.privacy import gaussian

LAPLACE = ClientNoise(kind="laplace", epsilon=3.0)
GAUSSIAN = ClientNoise(kind="gaussian", epsilon=10.0)


# Exact composition at δ = 1e-4, known from another program: c_2, and the multiplier of five uploads.
@pytest.mark.parametrize(
    ("epsilon", "c2", "five"),
    [
        (1.0, 1.050, 7.123),
        (3.0, 1.209, 2.735),
        (5.0, 1.311, 1.780),
        (10.0, 1.500, 1.018),
        (20.0, 1.776, 0.603),
        (30.0, 1.993, 0.451),
    ],
)
def test_c2_is_what_exact_composition_makes_it(epsilon: float, c2: float, five: float) -> None:
    noise = ClientNoise(kind="gaussian", epsilon=epsilon)
    assert noise.c2 == pytest.approx(c2, abs=5e-4)
    assert noise.multiplier(5) == pytest.approx(five, abs=5e-4)


@given(st.floats(0.1, 30), st.integers(1, 10_000))
def test_c2_is_the_same_for_every_number_of_uploads(epsilon: float, turns: int) -> None:
    noise = ClientNoise(kind="gaussian", epsilon=epsilon, delta=1e-5)
    assert noise.c2 is not None
    assert noise.multiplier(turns) == pytest.approx(
        noise.c2 * math.sqrt(turns * math.log(1e5)) / epsilon, rel=3e-5
    )  # each is computed to within 1e-5
    assert gaussian.delta(math.sqrt(turns) / noise.multiplier(turns), epsilon) <= 1e-5


def test_c2_comes_to_the_root_of_two_as_delta_vanishes() -> None:
    assert ClientNoise(kind="gaussian", epsilon=0.01, delta=1e-300).c2 == pytest.approx(math.sqrt(2), rel=0.02)
    assert LAPLACE.c2 is None


def test_laplace_noise_is_corollary_1_1() -> None:
    """2pb·T_g²/(N²ε²) with p = 11, b = 500, N = 5000, T_g = 100 and ε = 3, where T_l = 10."""
    assert LAPLACE.multiplier(10) == pytest.approx(10 / 3)
    for form in ("printed", "corrected"):
        assert LAPLACE.energy(10, 500, 11, form) == pytest.approx(2 * 11 * 500 * 100**2 / (5000**2 * 9))


def test_gaussian_noise_is_half_of_corollary_2_1() -> None:
    """2p·c_2²·N·log(1/δ)·T_g/(N²ε²) with p = 214590, b = 350, N = 3500, T_g = 50 and ε = 10, where T_l = 5."""
    assert GAUSSIAN.c2 is not None
    printed = 2 * 214_590 * GAUSSIAN.c2**2 * math.log(1e4) * 50 / (3500 * 100)
    assert GAUSSIAN.energy(5, 350, 214_590, "printed") == pytest.approx(printed, rel=1e-4)
    assert GAUSSIAN.energy(5, 350, 214_590) == pytest.approx(printed / 2, rel=1e-4)


def test_averages_that_are_drawn_have_the_corrected_energy() -> None:
    """E‖w‖² over 40,000 averages of 5 uploads in 3 coordinates.

    One ‖w‖² of Gaussian noise has a relative deviation of √(2/3), of Laplace noise at most √(5/3): six standard errors
    are 0.039 at most, a false alarm of 2e-9.
    """
    drawn = np.random.default_rng(7)
    uploads = {
        "laplace": drawn.laplace(scale=LAPLACE.multiplier(4), size=(40_000, 5, 3)),
        "gaussian": drawn.normal(scale=GAUSSIAN.multiplier(4), size=(40_000, 5, 3)),
    }
    for noise in (LAPLACE, GAUSSIAN):
        found = float(np.square(uploads[noise.kind].mean(axis=1)).sum(axis=1).mean())
        assert found == pytest.approx(noise.energy(4, 5, 3), rel=0.039)


def test_unlike_clients_make_an_average_noisier() -> None:
    """Sizes 1 and 3: N·Σn²/n² = 2·10/16."""
    assert fu_client_noise.size_imbalance([80, 80, 80]) == pytest.approx(1)
    assert fu_client_noise.size_imbalance([1, 3]) == pytest.approx(1.25)
    assert LAPLACE.energy(1, 2, 1, imbalance=1.25) == pytest.approx(1.25 * LAPLACE.energy(1, 2, 1))


def test_two_updates_lie_twice_as_far_apart_as_the_paper_has_it() -> None:
    """Five iterations at a rate of 0.1 with ζ = 3: a norm of 1.5; one of ten examples moves the first a tenth."""
    found = fu_client_noise.update_sensitivity(0.1, 5, 3.0, examples=10)
    assert found == pytest.approx((1.5, 3.0, 2 * 0.1 * 3 * (0.1 + 4)))
    assert fu_client_noise.update_sensitivity(0.1, 1, 3.0).example_distance is None


@given(st.floats(0.1, 10), st.integers(1, 100), st.sampled_from(["laplace", "gaussian"]))
def test_the_printed_noise_costs_what_was_asked_as_the_paper_counts_and_more_truly(
    epsilon: float, turns: int, kind: fu_client_noise.Kind
) -> None:
    noise = ClientNoise(kind=kind, epsilon=epsilon)
    assert fu_client_noise.claimed_epsilon(kind, noise.multiplier(turns), turns, 1e-4) == pytest.approx(
        epsilon, rel=1e-4
    )
    assert noise.certified_epsilon(turns) >= 2 * epsilon * (1 - 1e-4)  # Gaussian noise loses more than twice
    if kind == "laplace":
        assert noise.certified_epsilon(turns) == pytest.approx(2 * epsilon)


def test_what_no_noise_can_be_for_is_refused() -> None:
    for epsilon in (0.0, 1e-300, 1e300):
        with pytest.raises(InvalidInput, match="epsilon: must be between 1e-6 and 1e12"):
            ClientNoise(kind="laplace", epsilon=epsilon)
