"""Several examples of one person under Poisson sampling: a binomial number of them joins each sum."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import Unsupported
from discreet.privacy import accountant, pld, rdp, second_engine, skellam
from discreet.privacy.events import (
    Composed,
    DiscreteGaussianNoise,
    DistributedDiscreteGaussianNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    Noise,
    PoissonSampled,
    PoissonSampledGroup,
    Repeated,
    SkellamNoise,
    steps,
)
from discreet.privacy.groups import LARGEST_GROUP, clients_event, group_event, person_event, whole_group_event
from discreet.privacy.release import Person
from tests.privacy.recipes import gaussian, laplace


def group(z: float, rate: float, size: int, times: int = 1) -> Event:
    step = PoissonSampledGroup(sampling_rate=rate, group_size=size, event=GaussianNoise(noise_multiplier=z))
    return Repeated(count=times, event=step)


def binomial(rate: float, size: int) -> list[float]:
    return [math.comb(size, j) * rate**j * (1 - rate) ** (size - j) for j in range(size + 1)]


def exact_delta(z: float, rate: float, size: int, epsilon: float) -> float:
    """δ of one step in both directions: the likelihood ratio grows with x, so both sets are half-lines."""
    chances, cdf = binomial(rate, size), NormalDist().cdf

    def loss(x: float) -> float:
        terms = [math.log(chance) + j * x / z - (j / z) ** 2 / 2 for j, chance in enumerate(chances) if chance > 0]
        return float(np.logaddexp.reduce(terms))

    def solve(target: float) -> float:
        low, high = -60.0, 60.0 + size / z
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if loss(middle) < target else (low, middle)
        return low

    above, below = solve(epsilon), solve(-epsilon)
    joined = [j / z for j in range(size + 1)]
    forward = sum(chance * cdf(mean - above) for chance, mean in zip(chances, joined, strict=True))
    backward = sum(chance * cdf(below - mean) for chance, mean in zip(chances, joined, strict=True))
    return max(forward - math.exp(epsilon) * cdf(-above), cdf(below) - math.exp(epsilon) * backward)


@settings(max_examples=40)
@given(z=st.floats(0.3, 30), rate=st.floats(1e-4, 0.999), size=st.integers(2, 12), epsilon=st.floats(1e-4, 8))
def test_one_step_is_its_closed_form_from_above(z: float, rate: float, size: int, epsilon: float) -> None:
    exact, found = exact_delta(z, rate, size, epsilon), pld.delta(group(z, rate, size), epsilon)
    if exact > 1e-9:  # below, the closed form cancels
        assert exact * (1 - 1e-6) <= found <= 1.02 * exact + 1e-9


@pytest.mark.parametrize(
    ("z", "rate", "times", "size", "epsilon"), [(1.0, 0.01, 1000, 5, 11.64), (1.0, 0.001, 5000, 10, 4.262)]
)
def test_values_of_the_mixture_of_gaussians(z: float, rate: float, times: int, size: int, epsilon: float) -> None:
    assert pld.epsilon(group(z, rate, size, times), 1e-5) == pytest.approx(epsilon, abs=0.003)


def test_dp_accounting_finds_the_same() -> None:
    event = group(1.0, 0.05, 3, 40)
    found = second_engine.epsilon(event, 1e-5)
    assert found.epsilon == pytest.approx(pld.epsilon(event, 1e-5), abs=found.tolerance + 2e-4)
    assert found.same_method


@given(z=st.floats(0.3, 10), rate=st.floats(1e-3, 0.99), times=st.integers(1, 300))
def test_a_group_of_one_is_a_single_example(z: float, rate: float, times: int) -> None:
    assert steps(group(z, rate, 1, times)) == steps(gaussian(z, rate=rate, times=times))


def test_a_group_of_which_all_join_moves_the_sum_by_all_of_it() -> None:
    assert steps(group(6.0, 1.0, 3, 4)) == {GaussianNoise(noise_multiplier=2.0): 4}


@settings(max_examples=15)
@given(z=st.floats(0.5, 10), rate=st.floats(1e-3, 0.9), times=st.integers(1, 200), size=st.integers(2, 8))
def test_a_group_costs_more_than_a_smaller_one_and_less_than_if_it_were_drawn_whole(
    z: float, rate: float, times: int, size: int
) -> None:
    any_member = 1 - (1 - rate) ** size
    whole = Repeated(
        count=times,
        event=PoissonSampled(sampling_rate=any_member, event=GaussianNoise(noise_multiplier=z / size)),
    )
    found = pld.epsilon(group(z, rate, size, times), 1e-5)
    smaller = pld.epsilon(group(z, rate, size - 1, times), 1e-5)
    assert smaller - 3e-4 <= found <= pld.epsilon(whole, 1e-5) * (1 + 1e-3) + 3e-4


@settings(max_examples=15)
@given(z=st.floats(0.3, 10), rate=st.floats(1e-3, 0.95), times=st.integers(1, 300), size=st.integers(2, 12))
def test_the_renyi_bound_is_never_below_the_loss_distribution(z: float, rate: float, times: int, size: int) -> None:
    event = group(z, rate, size, times)
    assert rdp.epsilon(event, 1e-5) >= pld.epsilon(event, 1e-5) * (1 - 1e-3) - 3e-4
    assert accountant.epsilon(event, 1e-5) <= rdp.epsilon(event, 1e-5)


def test_the_order_of_the_renyi_divergence_at_two_is_a_double_sum() -> None:
    z, rate, size = 1.5, 0.2, 4
    chances = binomial(rate, size)
    moment = sum(p * q * math.exp(i * j / z**2) for i, p in enumerate(chances) for j, q in enumerate(chances))
    found = float(rdp.curve(group(z, rate, size), np.array([2.0]))[0])
    assert math.log(moment) <= found <= math.log(moment) * (1 + 1e-6)


def test_replacing_a_group_is_not_counted() -> None:
    with pytest.raises(Unsupported, match="add_or_remove or zero_out"):
        pld.epsilon(group(1.0, 0.1, 3), 1e-5, "replace")


def test_a_group_is_a_mixture_under_sampling_and_moves_the_sum_as_one_without() -> None:
    assert steps(group_event(gaussian(2.0, rate=0.1, times=3), 5)) == steps(group(2.0, 0.1, 5, 3))
    (step,) = steps(group_event(laplace(2.0, rate=0.1), 5))
    assert isinstance(step, PoissonSampledGroup)
    assert steps(group_event(laplace(2.0), 5)) == {LaplaceNoise(noise_multiplier=0.4): 1}


def test_a_group_that_counts_as_drawn_whole_is_in_a_sample_as_soon_as_one_member_is() -> None:
    (step,) = steps(whole_group_event(laplace(2.0, rate=0.1), 5))
    assert isinstance(step, PoissonSampled)
    assert step.sampling_rate == pytest.approx(1 - 0.9**5)
    assert step.event == LaplaceNoise(noise_multiplier=0.4)
    assert whole_group_event(group(2.0, 0.1, 5), 3) == whole_group_event(gaussian(2.0, rate=0.1), 15)


def test_a_group_in_laplace_noise_on_a_line_is_below_its_bound() -> None:
    """All members push one coordinate. The densities are integrated over a fine grid."""
    x = np.linspace(-60, 80, 400_001)
    for b, rate, size in [(2.0, 0.1, 3), (5.0, 0.5, 4), (1.0, 0.01, 5)]:
        event = PoissonSampledGroup(sampling_rate=rate, group_size=size, event=LaplaceNoise(noise_multiplier=b))
        moved = np.array([np.exp(-np.abs(x - j) / b) for j in range(size + 1)])
        moved /= moved.sum(axis=1, keepdims=True)
        q, p = moved[0], np.array(binomial(rate, size)) @ moved
        for order in (2.0, 3.0, 7.0):
            exact = max((p**order * q ** (1 - order)).sum(), (q**order * p ** (1 - order)).sum())
            found = float(rdp.curve(event, np.array([order]))[0])
            assert math.log(exact) / (order - 1) * (1 - 1e-6) <= found <= 1.6 * math.log(exact) / (order - 1)


SKELLAM = SkellamNoise(variance=400.0, l2_sensitivity=10.0, dimension=1)
WITHOUT_PAIR = [
    SKELLAM,
    SkellamNoise(variance=1e6, l2_sensitivity=500.0, dimension=10_000),
    DiscreteGaussianNoise(variance=400.0, l2_sensitivity=10.0),
    DistributedDiscreteGaussianNoise(variance=40.0, shares=10, l2_sensitivity=10.0, dimension=100),
]


def line_divergences(noise: Noise, rate: float, size: int, order: int) -> tuple[float, float]:
    """Return the Rényi divergences of a group whose members all push one coordinate, in both directions."""
    x = np.arange(-800, 1000)
    moved = [int(noise.l2_sensitivity) * j for j in range(size + 1)]  # type: ignore[union-attr]
    log_q, *shifted = (_log_mass(noise, x - shift) for shift in moved)
    log_p = np.logaddexp.reduce(
        [math.log(chance) + each for chance, each in zip(binomial(rate, size), [log_q, *shifted], strict=True)]
    )
    forward = np.logaddexp.reduce(order * log_p + (1 - order) * log_q) / (order - 1)
    backward = np.logaddexp.reduce(order * log_q + (1 - order) * log_p) / (order - 1)
    return float(forward), float(backward)


def _log_mass(noise: Noise, x: np.ndarray) -> np.ndarray:
    if isinstance(noise, SkellamNoise):
        return skellam.log_pmf(x, noise.variance)
    assert isinstance(noise, DiscreteGaussianNoise)
    logs = -(x.astype(float) ** 2) / (2 * noise.variance)
    return logs - np.logaddexp.reduce(-(np.arange(-4000.0, 4001.0) ** 2) / (2 * noise.variance))


@pytest.mark.parametrize("noise", [WITHOUT_PAIR[0], WITHOUT_PAIR[2]], ids=["skellam", "discrete gaussian"])
@pytest.mark.parametrize(("rate", "size"), [(0.01, 5), (0.1, 3), (0.5, 2), (0.9, 4), (0.001, 6)])
def test_in_integer_noise_the_bound_of_a_group_is_above_its_exact_divergence_and_not_far(
    noise: Noise, rate: float, size: int
) -> None:
    event = PoissonSampledGroup(sampling_rate=rate, group_size=size, event=noise)
    for order in (2, 3, 5, 8):
        exact = max(line_divergences(noise, rate, size, order))
        found = float(rdp.curve(event, np.array([float(order)]))[0])
        assert exact <= found <= 1.9 * exact


@pytest.mark.parametrize("noise", WITHOUT_PAIR)
@pytest.mark.parametrize(("rate", "size"), [(0.01, 5), (0.3, 3), (0.001, 40)])
def test_in_integer_noise_a_group_costs_more_than_a_member_and_less_than_if_it_were_drawn_whole(
    noise: Noise, rate: float, size: int
) -> None:
    alone = PoissonSampled(sampling_rate=rate, event=noise)
    one, all_of_them, whole = (
        rdp.curve(event, rdp.ORDERS) for event in (alone, group_event(alone, size), whole_group_event(alone, size))
    )
    finite = np.isfinite(whole)
    assert (one <= all_of_them * (1 + 1e-9) + 1e-12).all()
    assert (all_of_them[finite] <= whole[finite] * (1 + 1e-9) + 1e-12).all()


def test_with_much_integer_noise_a_group_costs_what_it_costs_in_gaussian_noise() -> None:
    fine = SkellamNoise(variance=1e10, l2_sensitivity=1e5, dimension=100)
    found = accountant.epsilon(Repeated(count=1000, event=group_event(sample(fine, 0.01), 5)), 1e-5)
    exact = pld.epsilon(group(1.0, 0.01, 5, 1000), 1e-5)
    assert exact <= found <= 1.001 * exact


def sample(noise: Noise, rate: float) -> PoissonSampled:
    return PoissonSampled(sampling_rate=rate, event=noise)


@pytest.mark.parametrize("noise", WITHOUT_PAIR)
def test_groups_in_noise_without_a_pair_for_them_are_never_replaced(noise: Noise) -> None:
    event = group_event(sample(noise, 0.1), 3)
    assert accountant.account(event, 1e-5).epsilon <= rdp.epsilon(event, 1e-5)
    with pytest.raises(Unsupported, match="add_or_remove or zero_out"):
        rdp.epsilon(event, 1e-5, "replace")


def test_a_very_large_group_counts_as_drawn_whole() -> None:
    (step,) = steps(group_event(gaussian(2.0, rate=1e-6), LARGEST_GROUP + 1))
    assert isinstance(step, PoissonSampled)


@settings(max_examples=20)
@given(
    z=st.floats(0.5, 10),
    rate=st.floats(1e-3, 0.95),
    times=st.integers(1, 100),
    first=st.integers(1, 6),
    second=st.integers(1, 6),
)
def test_rows_in_two_uploads_reveal_no_more_than_all_of_them_in_one(
    z: float, rate: float, times: int, first: int, second: int
) -> None:
    """Two uploads are one sum in which the rows of one client push in another direction than those of the other."""
    apart = Composed(events=(group(z, rate, first, times), group(z, rate, second, times)))
    together = pld.epsilon(group(z, rate, first + second, times), 1e-5)
    assert pld.epsilon(apart, 1e-5) <= together * (1 + 1e-3) + 3e-4


def plane_delta(z: float, rate: float, rows: tuple[int, int], epsilon: float) -> float:
    """δ of one person in the uploads of two clients, summed over a grid of the plane of both uploads."""
    x = np.linspace(-9, 9 + max(rows) / z, 1500)
    first, second = (
        np.sum([p * np.exp(j * x / z - (j / z) ** 2 / 2) for j, p in enumerate(binomial(rate, size))], axis=0)
        for size in rows
    )
    ratio, normal = np.outer(first, second), np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    weight = np.outer(normal, normal) * (x[1] - x[0]) ** 2
    forward = (weight * np.maximum(ratio - math.exp(epsilon), 0)).sum()
    backward = (weight * np.maximum(1 - math.exp(epsilon) * ratio, 0)).sum()
    return float(max(forward, backward))


@pytest.mark.parametrize(("z", "rate", "most"), [(1.0, 0.1, 2), (2.0, 0.5, 3), (0.8, 0.01, 1)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5])
def test_a_person_in_two_uploads_is_priced_at_the_most_rows_in_each(
    z: float, rate: float, most: int, epsilon: float
) -> None:
    person = Person(column="patient", at_most=most, clients_at_most=2)
    found = pld.delta(person_event(gaussian(z, rate=rate), person, separate=True), epsilon)
    assert found == pytest.approx(plane_delta(z, rate, (most, most), epsilon), rel=5e-3, abs=1e-9)
    splits = [(a, b) for a in range(most + 1) for b in range(most + 1)]
    assert max(plane_delta(z, rate, split, epsilon) for split in splits) <= found * (1 + 5e-3) + 1e-9


def test_in_one_sum_a_persons_rows_of_all_clients_are_one_group() -> None:
    person = Person(column="patient", at_most=3, clients_at_most=2)
    assert steps(person_event(gaussian(2.0, rate=0.1), person, separate=False)) == steps(group(2.0, 0.1, 6))
    apart = person_event(gaussian(2.0, rate=0.1), person, separate=True)
    assert steps(apart) == steps(group(2.0, 0.1, 3, 2))


def replaced_clients_delta(z: float, rate: float, clients: int, epsilon: float) -> float:
    """δ of replacing the updates of several clients: those drawn move the sum from +1 to −1 each, in one direction."""
    x = np.linspace(-10 - clients / z, 10 + clients / z, 200_001)
    before, after = (
        sum(p * np.exp(-((x - sign * j / z) ** 2) / 2) for j, p in enumerate(binomial(rate, clients)))
        for sign in (1, -1)
    )
    return float(np.maximum(before - math.exp(epsilon) * after, 0).sum() * (x[1] - x[0]) / math.sqrt(2 * math.pi))


@pytest.mark.parametrize(("z", "rate"), [(1.0, 1.0), (2.0, 1.0), (1.0, 0.2), (3.0, 0.5)])
@pytest.mark.parametrize("clients", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_a_change_in_several_clients_of_a_sum_costs_what_moving_all_of_them_costs(
    z: float, rate: float, clients: int, epsilon: float
) -> None:
    event = clients_event(gaussian(z, rate=rate), clients, separate=False)
    found, exact = pld.delta(event, epsilon, "replace"), replaced_clients_delta(z, rate, clients, epsilon)
    assert found >= exact * (1 - 1e-6)
    if rate == 1 or clients == 1:
        assert found <= exact * 1.01 + 1e-9


def test_a_change_in_several_separate_updates_is_composed() -> None:
    assert clients_event(GaussianNoise(noise_multiplier=2.0), 3, separate=True) == Repeated(
        count=3, event=GaussianNoise(noise_multiplier=2.0)
    )


@pytest.mark.parametrize(
    ("z", "rate", "size"), [(50.0, 0.5, 200), (0.05, 1e-6, 4), (300.0, 1e-4, 1000), (1.0, 0.999, 20)]
)
def test_extremes_have_an_answer(z: float, rate: float, size: int) -> None:
    event = group(z, rate, size, 10)
    assert 0 <= pld.epsilon(event, 1e-5) <= rdp.epsilon(event, 1e-5) * (1 + 1e-3) + 3e-4
