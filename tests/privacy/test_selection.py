"""The price of the best of a random number of trials: closed forms, dp-accounting, and exact enumeration."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet.errors import UnsoundCombination, Unsupported
from discreet.privacy import accountant, pld, rdp, second_engine
from discreet.privacy.events import (
    BestOf,
    Composed,
    DiscreteGaussianNoise,
    GaussianNoise,
    LaplaceNoise,
    Repeated,
    has_sampling,
    noisy_steps,
    sampled_gaussian,
)
from discreet.privacy.groups import group_event
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger.charges import charges
from discreet.privacy.ledger.entries import Budget
from discreet.privacy.release import Person, Release
from discreet.privacy.selection import best_of_curve
from discreet.privacy.trial_count import PoissonTrials, TruncatedNegativeBinomial, count_with_mean

ORDERS = np.array([1.05, 1.2, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 32.0, 64.0, np.inf])
GEOMETRIC = count_with_mean(10.0, 1.0)
SCORE = DiscreteGaussianNoise(variance=100.0, l2_sensitivity=1.0)


def divergence(p, q, order):
    """The Rényi divergence of two lists of probabilities, none of which is zero."""
    if math.isinf(order):
        return float(np.log(p / q).max())
    return float(np.logaddexp.reduce(order * np.log(p) + (1 - order) * np.log(q)) / (order - 1))


def hockey_stick(p, q, epsilon):
    return float(np.maximum(0.0, p - math.exp(epsilon) * q).sum())


def selection_of(masses, count):
    """The distribution of the best of K outputs, where the last output is the best; and first that of no output."""
    cumulative, before = np.cumsum(masses), np.concatenate([[0.0], np.cumsum(masses)[:-1]])
    result = np.zeros(len(masses) + 1)
    for k, chance in enumerate(count.probabilities()):
        if k == 0:
            result[0] = chance
            continue
        result[1:] += chance * (cumulative**k - before**k)
        if chance < 1e-17 and k > count.mean:
            break
    return result


def brute_force_bound(count, p, q):
    both = [(p, q), (q, p)]
    trial = np.array([max(divergence(a, b, order) for a, b in both) for order in ORDERS])
    bound = best_of_curve(count, ORDERS, trial, lambda epsilon: max(hockey_stick(a, b, epsilon) for a, b in both))
    a, b = selection_of(p, count), selection_of(q, count)
    if a[0] == 0:
        a, b = a[1:], b[1:]
    true = np.array([max(divergence(a, b, order), divergence(b, a, order)) for order in ORDERS])
    return true, bound


PAIRS = st.integers(2, 5).flatmap(
    lambda size: st.tuples(*[st.lists(st.floats(0.01, 1.0), min_size=size, max_size=size)] * 2)
)
COUNTS = st.one_of(
    st.builds(
        TruncatedNegativeBinomial,
        shape=st.sampled_from([-0.9, -0.5, 0.0, 0.3, 1.0, 4.0]),
        stop_probability=st.floats(0.05, 0.9),
    ),
    st.builds(PoissonTrials, mean=st.floats(0.2, 12.0)),
)


@settings(max_examples=150, deadline=None)
@given(PAIRS, COUNTS)
@example(([0.99, 0.01], [0.01, 0.99]), TruncatedNegativeBinomial(shape=1.0, stop_probability=0.05))
@example(([0.999, 0.001], [0.998, 0.002]), TruncatedNegativeBinomial(shape=1.0, stop_probability=0.001))
@example(([0.999, 0.001], [0.998, 0.002]), TruncatedNegativeBinomial(shape=4.0, stop_probability=0.01))
@example(([0.99, 0.01], [0.96, 0.04]), PoissonTrials(mean=20.0))
@example(([0.5, 0.5], [2.0, 1.0]), PoissonTrials(mean=0.5))  # needs the chance of no trial
def test_the_bound_covers_every_selection_that_can_be_enumerated(pair, count):
    p, q = (np.array(masses) / sum(masses) for masses in pair)
    true, bound = brute_force_bound(count, p, q)
    assert np.all(true <= bound + 1e-9)


def test_the_bound_is_nearly_reached_by_a_rare_better_output():
    """With pure ε = 1 and a geometric number of trials, the bound is 3ε, and two outputs alone show nearly ε."""
    p, q = np.array([1 - 1e-4, 1e-4]), np.array([1 - 1e-4 * math.e, 1e-4 * math.e])
    count = TruncatedNegativeBinomial(shape=1.0, stop_probability=1e-3)
    true, bound = brute_force_bound(count, p, q)
    assert true[-1] > 0.8
    assert true[-1] <= bound[-1] <= 3


@given(st.sampled_from([-0.5, 0.0, 0.7, 1.0, 2.0]), st.floats(0.01, 0.9), st.floats(0.3, 30))
def test_theorem_2_holds_with_equality_for_gaussian_curves(shape, stop, multiplier):
    """With ρ = 1/(2z²): λρ + (1+η)·min over λ' of ((1 − 1/λ')·λ'ρ + log(1/γ)/λ') + log E[K]/(λ − 1)."""
    count = TruncatedNegativeBinomial(shape=shape, stop_probability=stop)
    orders = np.unique(1 + np.geomspace(1e-4, 1e5, 5000))
    rho = 1 / (2 * multiplier**2)
    at = min(max(math.sqrt(count.log_stop / rho), 1.0), 1e5)
    fixed = (at - 1) * rho + count.log_stop / at
    found = best_of_curve(count, orders, rho * orders, lambda epsilon: 1.0)
    plain = rho * orders + (1 + shape) * fixed + math.log(count.mean) / (orders - 1)
    assert found.min() == pytest.approx(plain.min(), rel=1e-5)
    assert found[-1] == pytest.approx(plain[-1], rel=1e-5)


def test_theorem_6_holds_with_equality():
    orders, trial = np.array([2.0, 4.0]), np.array([0.1, 0.2])
    deltas = {math.log(2.0): 0.01, math.log(4 / 3): 0.05}

    def trial_delta(epsilon):
        return next(delta for at, delta in deltas.items() if math.isclose(at, epsilon))

    found = best_of_curve(PoissonTrials(mean=8.0), orders, trial, trial_delta)
    first = math.log(math.exp(-8) + 8 * math.exp(0.1 + 8 * 0.01))
    second = math.log(math.exp(-8) + 8 * math.exp(3 * (0.2 + 8 * 0.05))) / 3
    assert found == pytest.approx([min(first, second), second], rel=1e-9)


def test_pure_privacy_costs_two_plus_shape_times_as_much():
    for shape in (0.0, 1.0, 2.5):
        event = BestOf(count=count_with_mean(20.0, shape), trials=(LaplaceNoise(noise_multiplier=2.0),))
        assert rdp.curve(event, np.array([np.inf]))[0] == pytest.approx((2 + shape) * 0.5, rel=1e-9)


@pytest.mark.parametrize("mean", [1.5, 10.0, 300.0])
@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, math.inf])
def test_dp_accounting_gives_the_same_curve_to_nine_digits(shape, mean):
    from dp_accounting.rdp.rdp_privacy_accountant import _compute_rdp_repeat_and_select, compute_delta

    orders = np.array([1.1, 1.5, 2.0, 3.0, 5.0, 8.0, 16.0, 40.0, 100.0])
    trial = rdp.curve(sampled_gaussian(1.0, 0.02, 100), orders)
    theirs = _compute_rdp_repeat_and_select(orders, trial, mean, shape)
    count = PoissonTrials(mean=mean) if math.isinf(shape) else count_with_mean(mean, shape)
    ours = best_of_curve(count, orders, trial, lambda epsilon: compute_delta(orders, trial, epsilon)[0])
    if math.isinf(shape):  # it leaves out that divergences never fall with the order, and the chance of no trial
        theirs = np.minimum.accumulate(np.asarray(theirs)[::-1])[::-1]
        assert np.all(theirs <= ours)
        assert np.all(ours <= theirs + math.exp(-mean) / mean / (orders - 1) + 1e-9 * ours)
    else:
        assert ours == pytest.approx(theirs, rel=1e-9 if shape == 1 else 1e-8)


@pytest.mark.parametrize("count", [GEOMETRIC, count_with_mean(10.0, 0.0), PoissonTrials(mean=10.0)], ids=repr)
def test_the_second_engine_agrees_on_a_whole_search(count):
    trial = Composed(events=(sampled_gaussian(1.2, 0.01, 500), SCORE))
    event = BestOf(count=count, trials=(trial,))
    ours, theirs = accountant.account_with_second_engine(event, 1e-5, "zero_out")
    assert ours.certified_by == "rdp"
    assert theirs.epsilon is not None
    assert ours.epsilon <= theirs.epsilon <= ours.epsilon * 1.03


def test_the_second_engine_doubles_the_sensitivity_inside_trials():
    event = BestOf(count=GEOMETRIC, trials=(Composed(events=(GaussianNoise(noise_multiplier=8.0), SCORE)),))
    ours, theirs = accountant.account_with_second_engine(event, 1e-5, "replace")
    halved = DiscreteGaussianNoise(variance=25.0, l2_sensitivity=1.0)
    same = BestOf(count=GEOMETRIC, trials=(Composed(events=(GaussianNoise(noise_multiplier=4.0), halved)),))
    assert ours.epsilon == pytest.approx(accountant.epsilon(same, 1e-5), rel=1e-9)
    assert theirs.epsilon is not None
    assert ours.epsilon <= theirs.epsilon <= ours.epsilon * 1.05


def test_the_second_engine_says_what_it_has_not():
    one, other = GaussianNoise(noise_multiplier=4.0), GaussianNoise(noise_multiplier=5.0)
    sampled = sampled_gaussian(1.0, 0.1, 10)
    negative = TruncatedNegativeBinomial(shape=-0.5, stop_probability=0.1)
    for event, relation, words in (
        (BestOf(count=GEOMETRIC, trials=(one, other)), "zero_out", "equal noise"),
        (BestOf(count=negative, trials=(one,)), "zero_out", "negative shape"),
        (BestOf(count=GEOMETRIC, trials=(sampled,)), "replace", "this relation"),
    ):
        assert words in second_engine.epsilon(event, 1e-5, relation).reason


def test_a_trial_that_draws_its_settings_costs_as_much_as_the_worst_of_them():
    small, large = GaussianNoise(noise_multiplier=4.0), Repeated(count=9, event=LaplaceNoise(noise_multiplier=40.0))
    both = BestOf(count=GEOMETRIC, trials=(small, large))
    alone = [BestOf(count=GEOMETRIC, trials=(event,)) for event in (small, large)]
    orders = rdp.ORDERS
    assert np.all(rdp.curve(both, orders) >= np.maximum(*(rdp.curve(event, orders) for event in alone)) * (1 - 1e-9))
    twice = BestOf(count=GEOMETRIC, trials=(small, small))
    assert rdp.curve(twice, orders) == pytest.approx(rdp.curve(alone[0], orders))


def test_the_best_of_some_trials_costs_more_than_one_and_less_than_all():
    trial = sampled_gaussian(1.0, 0.01, 1000)
    event = BestOf(count=GEOMETRIC, trials=(trial,))
    one, ten = (rdp.epsilon(Repeated(count=n, event=trial), 1e-5) for n in (1, 10))
    assert one < rdp.epsilon(event, 1e-5) < ten
    assert not pld.supports(event, "zero_out")


@pytest.mark.parametrize("view", ["server", "client"])
def test_who_sees_every_trial_gets_no_guarantee_from_the_selection(view):
    event = BestOf(count=GEOMETRIC, trials=(GaussianNoise(noise_multiplier=4.0),))
    with pytest.raises(UnsoundCombination, match="every trial"):
        Release(unit="example", relation="zero_out", view=view, event=event)
    public = Release(unit="example", relation="zero_out", view="public", event=event)
    budget = Budget(unit="example", relation="zero_out", view=view, epsilon=9.0, delta=1e-5)
    with pytest.raises(Unsupported):
        charges(budget, [public])


def test_sampling_and_noise_inside_trials_are_seen():
    event = BestOf(count=GEOMETRIC, trials=(sampled_gaussian(1.0, 0.1, 10), SCORE))
    assert has_sampling(event)
    assert len(list(noisy_steps(event))) == 2


def test_a_group_is_priced_inside_each_trial():
    event = BestOf(count=GEOMETRIC, trials=(sampled_gaussian(1.0, 0.01, 10),))
    person = Person(column="patient", at_most=3)
    release = Release(unit="example", relation="zero_out", view="public", event=event)
    budget = Budget(unit=person, relation="zero_out", view="public", epsilon=9.0, delta=1e-5)
    (charge,) = charges(budget, [release])
    assert charge.event == group_event(event, 3)
    assert accountant.epsilon(charge.event, 1e-5, charge.relation) > accountant.epsilon(event, 1e-5)


def test_one_who_is_in_several_clients_is_not_counted_around_a_selection():
    event = BestOf(count=GEOMETRIC, trials=(sampled_gaussian(1.0, 0.01, 10),))
    for separate in (True, False):
        release = Release(unit="example", relation="zero_out", view="public", event=event, separate=separate)
        person = Person(column="patient", at_most=3, clients_at_most=2)
        budget = Budget(unit=person, relation="zero_out", view="public", epsilon=9.0, delta=1e-5)
        with pytest.raises(Unsupported, match="several clients"):
            charges(budget, [release])


def test_the_card_says_that_the_number_of_trials_and_the_time_stay_secret():
    event = BestOf(count=GEOMETRIC, trials=(GaussianNoise(noise_multiplier=8.0),))
    card = Guarantee.certify(Release(unit="example", relation="zero_out", view="public", event=event), 1e-5)
    assert any("number of trials" in sentence and "time" in sentence for sentence in card.assumptions)
    assert "best of a secret number of trials" in card.as_text().replace("\n", " ").replace("  ", " ")
    assert not any(sentence.startswith("Tuning") and "outside" not in sentence for sentence in card.not_covered)
