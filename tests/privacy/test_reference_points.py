"""The reported ε beside an inversion of the loss's moment generating function, at random points."""

import math

import pytest

from discreet.privacy import gaussian as analytic
from discreet.privacy import pld
from discreet.privacy.classical import amplify
from discreet.privacy.events import Event
from tests.privacy import laplace_reference
from tests.privacy.recipes import fixed_size, gaussian, laplace
from tests.privacy.reference_points import Point, measure, random_points, reference

PARTS = 20
POINTS = 50  # in each part


@pytest.mark.parametrize(("z", "times", "delta"), [(1.0, 1, 1e-5), (20.0, 1000, 1e-10), (0.5, 3, 0.1)])
def test_the_inversion_finds_the_analytic_gaussian(z: float, times: int, delta: float) -> None:
    exact = analytic.epsilon(math.sqrt(times) / z, delta)
    found = reference(Point("gaussian", gaussian(z, times=times), delta, "add_or_remove"), 1.1 * exact)
    assert found.epsilon == pytest.approx(exact, rel=1e-7)
    assert found.uncertainty <= 1e-7 * exact


@pytest.mark.parametrize(("z", "rate", "delta"), [(1.0, 0.1, 1e-5), (0.5837, 1.39e-4, 2.87e-5), (1.2, 6e-6, 4e-12)])
def test_the_inversion_finds_one_sampled_step(z: float, rate: float, delta: float) -> None:
    exact = amplify(analytic.epsilon(1 / z, delta / rate), rate)
    found = reference(Point("tiny", gaussian(z, rate=rate), delta, "add_or_remove"), 1.2 * exact)
    assert abs(found.epsilon - exact) <= found.uncertainty <= 1e-3 * exact


def test_the_inversion_finds_one_step_with_laplace_noise() -> None:
    exact = float(laplace_reference.exact_epsilon(2.0, 0.1, 1e-4, "add_or_remove"))
    found = reference(Point("laplace", laplace(2.0, rate=0.1), 1e-4, "add_or_remove"), exact)
    assert abs(found.epsilon - exact) <= found.uncertainty <= 1e-3 * exact


def test_one_step_at_a_tiny_rate_is_within_a_thousandth_of_its_closed_form() -> None:
    """It was four times as large: the grid followed a rough bound that is 320 times too large."""
    z, rate, delta = 0.5837, 1.39e-4, 2.87e-5
    exact = amplify(analytic.epsilon(1 / z, delta / rate), rate)
    assert exact <= pld.epsilon(gaussian(z, rate=rate), delta) <= exact * 1.001


@pytest.mark.parametrize(
    ("event", "delta", "relation"),
    [
        (gaussian(0.8283, rate=1.441e-4, times=349), 1.516e-11, "add_or_remove"),
        (gaussian(1.664, rate=1.062e-7, times=9), 5.725e-8, "add_or_remove"),
        (gaussian(4.847, rate=0.03456, times=2), 3.347e-3, "add_or_remove"),
        (fixed_size(7.564, cohort=12, population=200_000, times=10**8), 3e-8, "replace"),
        (gaussian(2.0, rate=1e-5, times=10**9), 1e-8, "add_or_remove"),
        (gaussian(1.0, rate=1e-6, times=10**12), 1e-5, "add_or_remove"),
    ],
    ids=str,
)
def test_rare_losses_and_many_steps_are_within_a_thousandth(event: Event, delta: float, relation: str) -> None:
    found = measure(Point("gaussian", event, delta, relation))  # type: ignore[arg-type]
    assert not found.is_low
    assert found.reference.uncertainty <= 1e-4 * found.reported
    assert found.excess <= 1e-3


def test_a_few_random_points_are_not_low() -> None:
    for found in map(measure, random_points(7, seed=3)):
        assert not found.is_low, found


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(PARTS))
def test_random_points_are_not_low_and_nearly_all_are_within_a_thousandth(part: int) -> None:
    found = [measure(point) for point in random_points(POINTS, seed=100 + part)]
    assert not [each for each in found if each.is_low]
    assert sum(each.is_certain for each in found) >= 0.96 * POINTS
    assert sum(each.excess <= 1e-3 for each in found) >= 0.94 * POINTS
