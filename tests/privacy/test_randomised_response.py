"""Randomised response and zCDP: closed forms, enumerations, and what they cost together with other events."""

import math
from itertools import product

import numpy as np
import pytest

from discreet.errors import InvalidInput, Unsupported
from discreet.privacy import groups, pld, rdp
from discreet.privacy.accountant import account, account_with_second_engine
from discreet.privacy.events import (
    Composed,
    DiscreteGaussianNoise,
    GaussianNoise,
    PoissonSampled,
    PoissonSampledGroup,
    RandomisedResponse,
    Repeated,
    ZeroConcentrated,
    scale_sensitivity,
    steps,
)
from discreet.privacy.release import Relation

NOISE = GaussianNoise(noise_multiplier=3.0)


def response(categories: int, share: float) -> RandomisedResponse:
    return RandomisedResponse(categories=categories, random_share=share)


def answers(categories: int, share: float, truth: int) -> list[float]:
    """The probability of each answer."""
    return [share / categories + (1 - share) * (answer == truth) for answer in range(categories)]


def enumerated_delta(categories: int, share: float, times: int, epsilon: float) -> float:
    """δ of several answers about one category against another, over every sequence of answers."""
    p, q = answers(categories, share, 0), answers(categories, share, 1)
    sequences = product(range(categories), repeat=times)
    differences = (
        math.prod(p[answer] for answer in answered) - math.exp(epsilon) * math.prod(q[answer] for answer in answered)
        for answered in sequences
    )
    return sum(max(difference, 0.0) for difference in differences)


@pytest.mark.parametrize(("categories", "share", "times"), [(2, 0.5, 1), (2, 0.3, 5), (3, 0.5, 4), (5, 0.8, 4)])
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.5])
def test_delta_is_that_of_every_sequence_of_answers(categories: int, share: float, times: int, epsilon: float) -> None:
    event = Repeated(count=times, event=response(categories, share))
    exact = enumerated_delta(categories, share, times, epsilon)
    assert exact * (1 - 1e-9) <= pld.delta(event, epsilon, "replace") <= exact * (1 + 1e-3) + 1e-12


@pytest.mark.parametrize(("categories", "share"), [(2, 0.5), (10, 0.9), (1000, 0.01)])
def test_one_answer_has_the_pure_epsilon_of_the_odds_of_the_truth(categories: int, share: float) -> None:
    truth, lie = answers(categories, share, 0)[:2]
    pure = math.log(truth / lie)
    assert response(categories, share).epsilon == pytest.approx(pure, rel=1e-12)
    assert pure <= rdp.epsilon(response(categories, share), 1e-300, "replace") <= pure * (1 + 1e-9)
    assert pld.epsilon(response(categories, share), 1e-9, "replace") <= pure * (1 + 1e-9)


@pytest.mark.parametrize("order", [1.5, 2.0, 7.0])
def test_its_renyi_divergence_is_the_sum_over_answers(order: float) -> None:
    p, q = answers(4, 0.6, 0), answers(4, 0.6, 1)
    exact = math.log(sum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))) / (order - 1)
    assert rdp.curve(response(4, 0.6), np.array([order]), "replace")[0] == pytest.approx(exact, rel=1e-8)


def test_an_answer_that_is_always_random_says_nothing() -> None:
    assert steps(response(7, 1.0)) == {}
    assert pld.epsilon(response(7, 1.0), 1e-9, "replace") == 0.0


def test_a_missing_answer_shows_so_only_replacing_is_counted() -> None:
    for compute in (pld.epsilon, rdp.epsilon):
        for relation in ("add_or_remove", "zero_out"):
            with pytest.raises(Unsupported, match="replace only"):
                compute(response(3, 0.5), 1e-5, relation)


def test_one_category_is_no_question() -> None:
    with pytest.raises(InvalidInput, match="at least 2"):
        response(1, 0.5)


def test_several_units_send_several_answers() -> None:
    with pytest.raises(Unsupported, match="one answer of one unit"):
        groups.group_event(response(3, 0.5), 2)


@pytest.mark.parametrize("times", [1, 7, 40])
def test_dp_accounting_finds_the_same_for_answers_and_gaussian_sums_together(times: int) -> None:
    event = Composed(
        events=(
            Repeated(count=times, event=response(5, 0.7)),
            Repeated(count=10, event=PoissonSampled(sampling_rate=0.1, event=NOISE)),
            NOISE,
        )
    )
    ours, theirs = account_with_second_engine(event, 1e-5, "replace")
    assert theirs.same_method
    assert theirs.epsilon == pytest.approx(ours.epsilon, abs=theirs.tolerance + 5e-4 * max(1, ours.epsilon))


def test_zcdp_costs_its_rho_times_the_order_and_four_times_that_for_a_replaced_unit() -> None:
    orders = np.array([1.5, 2.0, 32.0, np.inf])
    assert rdp.curve(ZeroConcentrated(rho=0.3), orders).tolist() == (0.3 * orders).tolist()
    assert rdp.curve(ZeroConcentrated(rho=0.3), orders, "replace").tolist() == (1.2 * orders).tolist()
    assert scale_sensitivity(ZeroConcentrated(rho=0.3), 2.5) == ZeroConcentrated(rho=0.3 * 9)


def test_zcdp_has_the_renyi_bound_of_gaussian_noise_and_not_its_loss_distribution() -> None:
    stated, noise = ZeroConcentrated(rho=1 / 18), NOISE  # ρ = 1/(2z²)
    found = account(stated, 1e-5)
    assert found.certified_by == "rdp"
    assert found.epsilon == pytest.approx(rdp.epsilon(noise, 1e-5))
    assert found.epsilon > pld.epsilon(noise, 1e-5)
    assert not pld.supports(stated, "add_or_remove")


def test_sampling_amplifies_zcdp_as_it_does_discrete_gaussian_noise_of_the_same_curve() -> None:
    stated, discrete = ZeroConcentrated(rho=0.5), DiscreteGaussianNoise(variance=1.0, l2_sensitivity=1.0)
    for relation in ("add_or_remove", "replace"):
        one = PoissonSampled(sampling_rate=0.1, event=stated)
        other = PoissonSampled(sampling_rate=0.1, event=discrete)
        assert rdp.epsilon(one, 1e-5, relation) == pytest.approx(rdp.epsilon(other, 1e-5, relation))
    group = PoissonSampledGroup(sampling_rate=0.1, group_size=3, event=stated)
    same = PoissonSampledGroup(sampling_rate=0.1, group_size=3, event=discrete)
    assert rdp.epsilon(group, 1e-5) == pytest.approx(rdp.epsilon(same, 1e-5))


@pytest.mark.parametrize("relation", ["add_or_remove", "replace"])
def test_dp_accounting_confirms_zcdp_by_rdp(relation: Relation) -> None:
    event = Composed(events=(Repeated(count=3, event=ZeroConcentrated(rho=0.02)), NOISE))
    ours, theirs = account_with_second_engine(event, 1e-6, relation)
    assert theirs.epsilon == pytest.approx(ours.epsilon, rel=0.01)
