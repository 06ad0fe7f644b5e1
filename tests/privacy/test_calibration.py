"""Calibration: its result was accounted for, meets the target, and wastes little of it."""

import math
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidInput
from discreet.privacy import accountant
from discreet.privacy.calibration import (
    LEAST,
    MOST,
    PRECISION,
    AttackTarget,
    EpsilonTarget,
    _find_least,
    affordable_rounds,
    calibrate_noise,
    calibrate_sampling_rate,
    log_excess,
)
from discreet.privacy.events import Composed, Event, GaussianNoise, Noise, PoissonSampled, Repeated, SkellamNoise
from discreet.privacy.release import Relation
from tests.privacy.recipes import fixed_size, gaussian, laplace

relations = st.sampled_from(["add_or_remove", "replace"])


@settings(max_examples=40)
@given(
    epsilon=st.floats(0.05, 20),
    rate=st.floats(1e-4, 1),
    times=st.integers(1, 300),
    power=st.floats(-12, -2),
    relation=relations,
)
def test_the_noise_found_keeps_to_the_promise_and_a_little_less_would_not(
    epsilon: float, rate: float, times: int, power: float, relation: Relation
) -> None:
    target = EpsilonTarget(epsilon=epsilon, delta=10**power)
    for make in (gaussian, laplace):
        found = calibrate_noise(partial(make, rate=rate, times=times), target, relation)
        assert accountant.epsilon(make(found, rate=rate, times=times), target.delta, relation) <= epsilon
        if found > 1.001 * LEAST:
            less = accountant.epsilon(make(found * 0.999, rate=rate, times=times), target.delta, relation)
            assert less > epsilon * (1 - 1.5e-3)


def test_the_noise_for_an_attack_target_holds_attacks_to_it() -> None:
    target = AttackTarget(true_positive_rate=0.05, false_positive_rate=0.01)
    found = calibrate_noise(lambda z: gaussian(z, rate=0.1, times=100), target)
    reached = accountant.true_positive_rate(gaussian(found, rate=0.1, times=100), 0.01)
    assert 0.0499 <= reached <= 0.05


def test_no_attack_target_below_guessing() -> None:
    with pytest.raises(InvalidInput, match="guessing finds that much"):
        AttackTarget(true_positive_rate=0.01, false_positive_rate=0.01)


@pytest.mark.parametrize(
    "step", [gaussian(0.95, rate=0.1), laplace(3.0), gaussian(20.0), fixed_size(3, cohort=1, population=9)]
)
def test_one_more_round_would_be_too_many(step: Event) -> None:
    relation: Relation = "replace" if "without" in repr(step) else "add_or_remove"
    target = EpsilonTarget(epsilon=6, delta=1e-4)
    most = affordable_rounds(step, target, relation)
    assert most > 1
    assert accountant.epsilon(Repeated(count=most, event=step), 1e-4, relation) <= 6
    assert accountant.epsilon(Repeated(count=most + 1, event=step), 1e-4, relation) > 6


def test_no_round_at_all_is_an_answer() -> None:
    assert affordable_rounds(gaussian(0.3), EpsilonTarget(epsilon=1, delta=1e-5)) == 0


def test_a_rate_for_the_promise() -> None:
    target = EpsilonTarget(epsilon=1, delta=1e-6)
    found = calibrate_sampling_rate(lambda q: gaussian(1.0, rate=q, times=1000), target)
    assert accountant.epsilon(gaussian(1.0, rate=found, times=1000), 1e-6) <= 1
    assert accountant.epsilon(gaussian(1.0, rate=found * 1.001, times=1000), 1e-6) > 0.999
    assert calibrate_sampling_rate(lambda q: gaussian(50.0, rate=q), target) == 1.0


def test_unlike_clients_share_one_factor_and_the_worst_decides() -> None:
    def clients(factor: float) -> list[Event]:
        return [gaussian(factor * z, rate=q, times=50) for z, q in ((1.0, 0.1), (0.5, 0.02), (2.0, 0.4))]

    target = EpsilonTarget(epsilon=2, delta=1e-5)
    found = calibrate_noise(clients, target)
    spent = [accountant.epsilon(event, 1e-5) for event in clients(found)]
    assert max(spent) <= 2
    assert max(spent) == pytest.approx(2, rel=1e-3)


def test_unlike_steps_are_calibrated_together() -> None:
    def event(z: float) -> Event:
        return Composed(events=(gaussian(z, rate=0.1, times=100), gaussian(10 * z)))

    found = calibrate_noise(event, EpsilonTarget(epsilon=1.5, delta=1e-5))
    assert 1.499 <= accountant.epsilon(event(found), 1e-5) <= 1.5


def test_noise_on_the_lattice_by_its_deviation() -> None:
    def event(deviation: float) -> Event:
        noise_: Noise = SkellamNoise(variance=deviation**2, l2_sensitivity=1e6, dimension=10**9)
        return Repeated(count=1000, event=PoissonSampled(sampling_rate=0.01, event=noise_))

    found = calibrate_noise(event, EpsilonTarget(epsilon=0.01, delta=1e-5))
    assert found == pytest.approx(7.7147e7, rel=1e-3)  # 77.1 sensitivities, as a Gaussian needs
    assert log_excess(event(found), EpsilonTarget(epsilon=0.01, delta=1e-5), "add_or_remove") <= 0


def test_a_promise_that_any_noise_keeps_gets_the_least_there_is() -> None:
    assert calibrate_noise(lambda z: GaussianNoise(noise_multiplier=z), EpsilonTarget(epsilon=1e9, delta=1e-5)) == LEAST


def test_a_promise_that_no_noise_keeps_is_refused() -> None:
    with pytest.raises(InvalidInput, match="No noise meets this target"):
        calibrate_noise(lambda z: GaussianNoise(noise_multiplier=z), EpsilonTarget(epsilon=1e-15, delta=1e-100))


class CallLog:
    """Records the calls, to check that a search ends and returns only a value that was found to be enough."""

    def __init__(self, excess_at: Callable[[float], float]) -> None:
        self.excess_at = excess_at
        self.known: dict[float, float] = {}
        self.asked = 0

    def __call__(self, x: float) -> float:
        self.asked += 1
        assert self.asked < 200
        self.known[x] = self.excess_at(x)
        return self.known[x]


@given(
    edge=st.floats(1.5 * LEAST, 1e11),
    above=st.one_of(st.just(math.inf), st.floats(1e-9, 50)),
    below=st.one_of(st.just(math.inf), st.floats(0.01, 50)),
    near=st.floats(LEAST, 1e6),
)
def test_where_an_accountant_jumps_the_edge_is_found(edge: float, above: float, below: float, near: float) -> None:
    step = CallLog(lambda x: -below if x >= edge else above)
    found = _find_least(step, LEAST, near)
    assert edge <= found <= edge * (1 + 2 * PRECISION)
    assert step.known[found] <= 0


@given(edge=st.floats(0.02, 10), jump=st.floats(0, 5), slope=st.floats(0.1, 3), near=st.floats(LEAST, 100))
def test_a_jump_on_a_slope_is_found_too(edge: float, jump: float, slope: float, near: float) -> None:
    step = CallLog(lambda x: slope * math.log(edge / x) - 0.01 + (jump if x < edge else 0.0))
    found = _find_least(step, LEAST, near)
    assert step.known[found] <= 0
    least = edge * math.exp(-0.01 / slope) if jump <= 0.01 else edge
    assert found >= least * (1 - 1e-12)
    if jump > 0.02:
        assert found <= edge * (1 + 2 * PRECISION)


def test_a_jump_just_above_the_least_there_is() -> None:
    step = CallLog(lambda x: -3.0 if x > LEAST else 10.0)
    assert LEAST < _find_least(step, LEAST) <= LEAST * (1 + 2 * PRECISION)


@pytest.mark.parametrize("near", [LEAST, 0.3, 20.0, MOST])
def test_a_guess_saves_time_and_changes_nothing(near: float) -> None:
    target = EpsilonTarget(epsilon=1, delta=1e-5)
    found = calibrate_noise(lambda z: GaussianNoise(noise_multiplier=z), target, near=near)
    assert found == pytest.approx(
        calibrate_noise(lambda z: GaussianNoise(noise_multiplier=z), target), rel=2 * PRECISION
    )


def test_no_sampling_rate_meets_a_target_that_the_rest_of_the_event_exceeds() -> None:
    spent = gaussian(0.1)
    with pytest.raises(InvalidInput, match="No sampling rate meets this target"):
        calibrate_sampling_rate(
            lambda rate: Composed(events=(spent, gaussian(1.0, rate=rate))), EpsilonTarget(epsilon=1.0, delta=1e-5)
        )


def test_rounds_are_counted_up_to_a_trillion() -> None:
    """At z = 1e12 a trillion rounds are one at 1e6, which spends next to nothing."""
    assert 10**12 / 4 < affordable_rounds(gaussian(1e12), EpsilonTarget(epsilon=1.0, delta=1e-5)) <= 10**12
