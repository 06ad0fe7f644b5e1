"""The PLD accountant: properties of any correct answer, and answers computed in another way."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.privacy import gaussian as analytic
from discreet.privacy import pld, rdp
from discreet.privacy.events import Composed, Event, GaussianNoise, LaplaceNoise, PoissonSampled, Repeated, SkellamNoise
from discreet.privacy.release import Relation
from tests.privacy.recipes import fixed_size, gaussian, laplace

ALMOST_NOTHING = LaplaceNoise(noise_multiplier=1e9)  # keeps an event from being all-Gaussian, at a price of 1e-9

noises = st.floats(0.3, 20)
rates = st.floats(1e-4, 0.9)
counts = st.integers(1, 500)
deltas = st.floats(-12, -2).map(lambda power: 10**power)
relations = st.sampled_from(["add_or_remove", "replace"])


@settings(max_examples=40)
@given(z=noises, times=counts, delta=deltas)
def test_without_sampling_the_grid_finds_the_analytic_gaussian(z: float, times: int, delta: float) -> None:
    exact = analytic.epsilon(math.sqrt(times) / z, delta)
    found = pld.epsilon(Composed(events=(gaussian(z, times=times), ALMOST_NOTHING)), delta)
    assert exact * (1 - 1e-9) - 1e-9 <= found <= exact + 2e-4 * max(exact, 0.05)


@settings(max_examples=30)
@given(z=noises, rate=rates, times=st.integers(1, 12), delta=deltas, relation=relations)
def test_n_at_once_is_n_times_once(z: float, rate: float, times: int, delta: float, relation: Relation) -> None:
    for make in (gaussian, laplace):
        at_once = pld.epsilon(make(z, rate=rate, times=times), delta, relation)
        one_by_one = pld.epsilon(Composed(events=(make(z, rate=rate),) * times), delta, relation)
        # the same, with each factor of the transform computed separately
        apart = Composed(events=tuple(make(z * (1 + i * 1e-13), rate=rate) for i in range(times)))
        assert one_by_one == at_once
        assert pld.epsilon(apart, delta, relation) == pytest.approx(at_once, rel=1e-3, abs=1e-6)


@settings(max_examples=30)
@given(z=noises, rate=rates, times=counts, delta=deltas, factor=st.floats(1.05, 3))
def test_more_noise_less_sampling_fewer_steps_or_a_larger_delta_never_cost_more(
    z: float, rate: float, times: int, delta: float, factor: float
) -> None:
    for make in (gaussian, laplace):
        most = pld.epsilon(make(z, rate=rate, times=times), delta)
        slack = 2e-4 * min(1.0, most) + 1e-9
        assert pld.epsilon(make(z * factor, rate=rate, times=times), delta) <= most + slack
        assert pld.epsilon(make(z, rate=rate / factor, times=times), delta) <= most + slack
        assert pld.epsilon(make(z, rate=rate, times=max(1, int(times / factor))), delta) <= most + slack
        assert pld.epsilon(make(z, rate=rate, times=times), min(0.1, delta * factor)) <= most + slack


@settings(max_examples=30)
@given(z=noises, rate=rates, times=counts, delta=deltas)
def test_replacing_is_doubling_without_sampling_and_no_more_with_it(
    z: float, rate: float, times: int, delta: float
) -> None:
    for make in (gaussian, laplace):
        doubled = pld.epsilon(make(z / 2, times=times), delta)
        assert pld.epsilon(make(z, times=times), delta, "replace") == pytest.approx(doubled, rel=1e-9)
    sampled = pld.epsilon(gaussian(z, rate=rate, times=times), delta, "replace")
    assert sampled <= pld.epsilon(gaussian(z / 2, rate=rate, times=times), delta) * (1 + 2e-4) + 1e-9


@settings(max_examples=30)
@given(z=noises, rate=rates, times=counts, delta=deltas, relation=relations)
def test_delta_inverts_epsilon(z: float, rate: float, times: int, delta: float, relation: Relation) -> None:
    for make in (gaussian, laplace):
        event = make(z, rate=rate, times=times)
        epsilon = pld.epsilon(event, delta, relation)
        if epsilon > 1e-3:
            back = pld.delta(event, epsilon, relation)
            nearby = pld.delta(event, epsilon * (1 - 1e-3) - 1e-4 * min(1.0, epsilon), relation)
            assert back <= delta * (1 + 1e-3) or back <= nearby
            assert nearby >= delta * (1 - 3e-3)  # one step at a small rate is looser than many: 0.16 % was seen


def test_two_sampled_steps_are_a_double_integral() -> None:
    rate, z, epsilon = 0.2, 1.0, 0.8
    x = np.linspace(-10, 12, 4401)
    weight = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    ratio = 1 - rate + rate * np.exp(x / z - 1 / (2 * z * z))
    joint = np.outer(ratio, ratio)
    masses = np.outer(weight, weight)
    exact = float((masses * np.maximum(0, joint - math.exp(epsilon))).sum())
    assert pld.delta(gaussian(z, rate=rate, times=2), epsilon) == pytest.approx(exact, rel=2e-3)


def test_one_laplace_step_is_its_closed_form() -> None:
    for epsilon in (0.0, 0.3, 0.9, 0.999):
        exact = 1 - math.exp((epsilon - 1) / 2)
        assert exact * (1 - 1e-9) <= pld.delta(laplace(1.0), epsilon) <= exact * 1.004
    assert pld.delta(laplace(1.0), 1.0) == 0.0
    assert pld.epsilon(laplace(1.0), 1e-300) == pytest.approx(1.0)


def test_one_skellam_step_is_its_sum() -> None:
    from scipy.special import ive

    variance, shift = 9.0, 2
    k = np.arange(-200, 201)
    q, p = ive(np.abs(k), variance), ive(np.abs(k - shift), variance)
    event = SkellamNoise(variance=variance, l2_sensitivity=shift, dimension=1)
    for epsilon in (0.1, 1.0, 2.0):
        exact = float(np.maximum(0, p - math.exp(epsilon) * q).sum())
        assert exact <= pld.delta(event, epsilon) * (1 + 1e-9) <= exact * 1.02


def test_the_direction_that_removes_is_not_always_taken_for_granted() -> None:
    """Both directions are counted: at small δ and a high rate each is close to the unsampled one."""
    event = gaussian(1.0, rate=0.99, times=3)
    assert pld.epsilon(event, 1e-5) < analytic.epsilon(math.sqrt(3), 1e-5)


@pytest.mark.parametrize("loss", [0.2, 0.5, 1.0])
def test_the_worse_of_both_directions_is_counted(loss: float) -> None:
    """One step at q = 0.3 and z = 1. Removing a unit costs q·δ(log((e^ε − 1 + q)/q)) of the unsampled step; adding one
    costs (1 − e^ε(1 − q))·δ(log(e^ε·q/(1 − e^ε(1 − q)))) where that is positive, which is less.
    """
    q, rest = 0.3, 1 - math.exp(loss) * 0.7
    removed = q * analytic.delta(1.0, math.log((math.exp(loss) - 1 + q) / q))
    added = rest * analytic.delta(1.0, math.log(math.exp(loss) * q / rest)) if rest > 0 else 0.0
    assert added < 0.9 * removed
    assert pld.delta(gaussian(1.0, rate=q), loss) == pytest.approx(removed, rel=1e-3)


def test_unlike_steps_compose() -> None:
    parts = (gaussian(1.0, rate=0.1, times=10), laplace(5.0, times=2), gaussian(3.0))
    together = pld.epsilon(Composed(events=parts), 1e-5)
    assert (
        max(pld.epsilon(part, 1e-5) for part in parts) < together < sum(pld.epsilon(part, 1e-5 / 3) for part in parts)
    )


@pytest.mark.parametrize("event", [gaussian(1.0, rate=0.1, times=10), laplace(1.0, rate=0.1, times=10), gaussian(2.0)])
@pytest.mark.parametrize("false_alarms", [1e-6, 1e-3, 0.1])
def test_the_best_attack_touches_every_epsilon_delta_line(event: Event, false_alarms: float) -> None:
    """TPR = min over ε of δ(ε) + e^ε·FPR."""
    found = pld.true_positive_rate(event, false_alarms)
    lines = [pld.delta(event, e) + math.exp(e) * false_alarms for e in np.linspace(0, 6, 121)]
    assert found <= min(lines) * (1 + 1e-4)
    assert found >= min(lines) * (1 - 5e-3)
    assert found >= false_alarms


def test_nothing_released_costs_nothing() -> None:
    nothing = Composed(events=())
    assert pld.epsilon(nothing, 1e-5) == 0
    assert pld.delta(nothing, 0.0) == 0
    assert pld.true_positive_rate(nothing, 0.01) == pytest.approx(0.01)


@pytest.mark.parametrize("relation", ["add_or_remove", "zero_out", "replace"])
@pytest.mark.parametrize(
    ("z", "rate", "times", "delta"),
    [
        (1.0, 0.1, 10**6, 1e-5),
        (1.0, 1e-6, 10**6, 1e-12),
        (0.2, 1e-6, 10**6, 1e-12),
        (0.2, 0.5, 10**6, 1e-12),
        (500.0, 1.0, 1, 1e-12),
        (500.0, 1e-6, 10**6, 1e-5),
        (500.0, 0.01, 10, 0.4),
        (0.02, 0.1, 100, 1e-5),
        (1e12, 1e-9, 10, 1e-9),
        (0.02, 1.0, 1, 1e-5),
        (1.0, 0.999999, 1000, 1e-12),
        (1.0, 1e-12, 1, 1e-300),
    ],
)
def test_extremes_have_an_answer(z: float, rate: float, times: int, delta: float, relation: Relation) -> None:
    for make in (gaussian, laplace):
        event = make(z, rate=rate, times=times)
        epsilon = pld.epsilon(event, delta, relation)
        assert 0 <= epsilon < math.inf
        assert 0 <= pld.delta(event, 0.01, relation) <= 1
        assert 0.001 <= pld.true_positive_rate(event, 0.001, relation) <= 1


def test_fixed_size_samples_are_counted_under_replace_only() -> None:
    event = fixed_size(2.0, cohort=50, population=500, times=10)
    assert pld.supports(event, "replace")
    assert not pld.supports(event, "add_or_remove")
    poisson = Repeated(count=10, event=PoissonSampled(sampling_rate=0.1, event=GaussianNoise(noise_multiplier=2.0)))
    assert pld.epsilon(event, 1e-5, "replace") >= pld.epsilon(poisson, 1e-5, "replace")


def exact_delta(z: float, rate: float, epsilon: float) -> float:
    """One Poisson-sampled Gaussian step, both directions, in closed form."""
    forward = rate * analytic_delta(1 / z, math.log1p(math.expm1(epsilon) / rate))
    inner = 1 - (1 - rate) * math.exp(epsilon)
    if inner <= 0:
        return forward
    # backward: Q against (1−q)Q + qP at ε; the set is {x below a threshold}
    threshold = (math.log((math.exp(-epsilon) - (1 - rate)) / rate) + 0.5 / z**2) * z
    cdf = NormalDist().cdf
    backward = cdf(threshold) * inner - rate * math.exp(epsilon) * cdf(threshold - 1 / z)
    return max(forward, backward)


def analytic_delta(mu: float, epsilon: float) -> float:
    return (
        analytic.delta(mu, epsilon)
        if epsilon >= 0
        else 1 - math.exp(epsilon) + math.exp(epsilon) * analytic.delta(mu, -epsilon)
    )


@settings(max_examples=150)
@given(
    z=st.floats(0.05, 30),
    rate=st.one_of(st.floats(1e-5, 0.999), st.floats(1e-9, 1e-3).map(lambda gap: 1 - gap)),
    epsilon=st.floats(1e-5, 30),
)
def test_one_sampled_step_is_never_below_its_closed_form(z: float, rate: float, epsilon: float) -> None:
    exact = exact_delta(z, rate, epsilon)
    if exact > 1e-9:  # below, the closed form of the backward direction cancels
        assert pld.delta(gaussian(z, rate=rate), epsilon) >= exact * (1 - 1e-9)


def test_the_mass_next_to_a_ceiling_is_counted() -> None:
    """In these cases it once was not counted: both answers were too small by 1e-7."""
    event = gaussian(0.6861887621237467, rate=0.9999999376383353)
    assert pld.delta(event, 1.8251769167972866e-05) >= 0.5337875584
    assert pld.true_positive_rate(gaussian(0.24264, rate=1.912e-4), 0.01975) >= 0.0199336791


@pytest.mark.parametrize(("rate", "times"), [(1e-5, 10**10), (1e-6, 10**12)])
def test_more_steps_than_any_grid_holds_cost_no_more_than_their_renyi_bound(rate: float, times: int) -> None:
    event = gaussian(1.0, rate=rate, times=times)
    assert pld.epsilon(event, 1e-5) <= rdp.epsilon(event, 1e-5) * (1 + 1e-3)
