"""The accountant: several engines, which must agree."""

import math

import pytest

from discreet.errors import EnginesDisagree
from discreet.privacy import accountant, pld, rdp
from discreet.privacy.events import (
    NOTHING,
    Composed,
    DiscreteGaussianNoise,
    DistributedDiscreteGaussianNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    Noise,
    PoissonSampled,
    Repeated,
    SampledWithoutReplacement,
    SkellamNoise,
)
from discreet.privacy.release import Relation
from tests.privacy.recipes import fixed_size, gaussian, laplace

SKELLAM = SkellamNoise(variance=1e4, l2_sensitivity=100.0, dimension=1000)


def test_the_example_of_the_command() -> None:
    account = accountant.account(gaussian(1.0, rate=0.1, times=1000), 1e-5)
    assert account.epsilon == account.accountants["pld"] == pytest.approx(25.2046, abs=3e-4)
    assert account.certified_by == "pld"
    assert set(account.accountants) == {"pld", "rdp", "moments", "advanced", "basic"}
    assert account.accountants["pld"] < account.accountants["rdp"] < account.accountants["advanced"]


CONFIRMED: list[tuple[Event, Relation]] = [
    (gaussian(1.0, rate=0.1, times=10), "add_or_remove"),
    (gaussian(1.0, rate=0.1, times=10), "zero_out"),
    (gaussian(1.0, rate=0.1, times=10), "replace"),
    (gaussian(3.0, times=10), "replace"),
    (laplace(2.0, rate=0.2, times=20), "add_or_remove"),
    (laplace(2.0, times=5), "replace"),
    (Composed(events=(gaussian(1.0, rate=0.1, times=10), laplace(5.0, times=2), gaussian(3.0))), "add_or_remove"),
    (fixed_size(3.0, cohort=10, population=100, times=20), "replace"),
    (Repeated(count=3, event=DiscreteGaussianNoise(variance=25.0, l2_sensitivity=1.0)), "add_or_remove"),
    (NOTHING, "add_or_remove"),
]


@pytest.mark.parametrize(("event", "relation"), CONFIRMED, ids=str)
def test_an_engine_that_others_wrote_agrees(event: Event, relation: Relation) -> None:
    ours, theirs = accountant.account_with_second_engine(event, 1e-5, relation)
    assert theirs.epsilon is not None
    assert theirs.epsilon >= ours.epsilon * (1 - 5e-4)
    if theirs.same_method:
        assert theirs.epsilon <= ours.epsilon * (1 + 5e-4) + theirs.tolerance


def test_where_no_second_engine_exists_the_reason_is_given() -> None:
    too_little = SkellamNoise(variance=2.0, l2_sensitivity=3.0, dimension=9)  # for a dominating Gaussian
    _, theirs = accountant.account_with_second_engine(too_little, 1e-5)
    assert theirs.epsilon is None
    assert "no Skellam noise" in theirs.reason


def test_a_disagreement_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    event = gaussian(1.0, rate=0.1, times=7)
    tight = pld.epsilon(event, 1e-5)
    monkeypatch.setattr(rdp, "epsilon", lambda *_: tight * 0.99)
    with pytest.raises(EnginesDisagree, match="can't both be right"):
        accountant.account(event, 1e-5)


def test_an_engine_that_says_nan_is_a_disagreement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rdp, "epsilon", lambda *_: math.nan)
    with pytest.raises(EnginesDisagree):
        accountant.account(gaussian(1.0, rate=0.1), 1e-5)


def test_a_second_engine_that_is_far_off_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    event = gaussian(1.0, rate=0.1, times=9)
    monkeypatch.setattr(pld, "epsilon", lambda *_: 1.0)  # too small, as a bug of ours could make it
    with pytest.raises(EnginesDisagree, match="dp-accounting"):
        accountant.account_with_second_engine(event, 1e-5)


@pytest.mark.parametrize("relation", ["add_or_remove", "replace"])
def test_skellam_is_certified_by_a_dominating_gaussian(relation: Relation) -> None:
    account = accountant.account(Repeated(count=10, event=SKELLAM), 1e-5, relation)
    assert account.certified_by == "pld"
    assert account.epsilon == account.accountants["pld"] < account.accountants["rdp"]
    assert "dominates this noise" in account.notes["pld"]


@pytest.mark.parametrize("relation", ["add_or_remove", "replace"])
@pytest.mark.parametrize("rate", [1.0, 0.1])
def test_skellam_costs_a_little_more_than_gaussian_noise_of_its_variance(rate: float, relation: Relation) -> None:
    step = PoissonSampled(sampling_rate=rate, event=SKELLAM) if rate < 1 else SKELLAM
    same_variance = pld.epsilon(gaussian(1.0, rate=rate), 1e-5, relation)
    assert same_variance < accountant.account(step, 1e-5, relation).epsilon < 1.01 * same_variance


def test_the_second_engine_confirms_skellam_noise_by_the_same_gaussian() -> None:
    event = Repeated(count=100, event=PoissonSampled(sampling_rate=0.1, event=SKELLAM))
    ours, theirs = accountant.account_with_second_engine(event, 1e-5)
    assert theirs.epsilon == pytest.approx(ours.epsilon, rel=1e-3)


@pytest.mark.parametrize(
    ("noise", "by"),
    [
        (DiscreteGaussianNoise(variance=0.5, l2_sensitivity=1.0), "rdp"),  # 7.08 against 8.39
        (DiscreteGaussianNoise(variance=100.0, l2_sensitivity=10.0), "pld"),
        (SkellamNoise(variance=5.0, l2_sensitivity=1.0, dimension=9), "pld"),  # by its own pair: 1.40 against 1.93
    ],
)
def test_the_least_of_the_bounds_for_integer_noise_is_certified_everywhere(noise: Noise, by: str) -> None:
    account = accountant.account(noise, 1e-5)
    assert account.certified_by == by
    assert account.epsilon == min(account.accountants.values()) == accountant.epsilon(noise, 1e-5)
    assert accountant.holds(noise, account.epsilon, 1e-5)
    assert accountant.delta(noise, account.epsilon) == pytest.approx(1e-5, rel=0.01)
    rates = [each.true_positive_rate(noise, 0.1) for each in (pld, rdp)]
    assert accountant.true_positive_rate(noise, 0.1) == min(rates)


@pytest.mark.parametrize(
    "noise",
    [
        DiscreteGaussianNoise(variance=100.0, l2_sensitivity=10.0),
        DistributedDiscreteGaussianNoise(variance=10.0, shares=10, l2_sensitivity=10.0, dimension=1000),
    ],
)
def test_discrete_gaussians_are_certified_by_a_dominating_gaussian_too(noise: Noise) -> None:
    account = accountant.account(Repeated(count=10, event=PoissonSampled(sampling_rate=0.1, event=noise)), 1e-5)
    same_variance = pld.epsilon(gaussian(1.0, rate=0.1, times=10), 1e-5)
    assert account.certified_by == "pld"
    assert same_variance < account.epsilon < min(1.01 * same_variance, account.accountants["rdp"])


def test_too_little_skellam_noise_is_certified_by_its_published_bound() -> None:
    account = accountant.account(SkellamNoise(variance=2.0, l2_sensitivity=3.0, dimension=9), 1e-5)
    assert account.certified_by == "rdp"
    assert "no dominating pair is proven" in account.notes["pld"]


def test_noise_too_small_for_a_grid_is_counted_by_its_renyi_bound() -> None:
    account = accountant.account(gaussian(0.001, rate=0.5, times=10), 1e-5)
    assert account.certified_by == "rdp"
    assert account.epsilon > 1e6


@pytest.mark.parametrize(
    "event",
    [
        SkellamNoise(variance=1e18, l2_sensitivity=1e9, dimension=10**9),
        Repeated(count=10**6, event=PoissonSampled(sampling_rate=1e-6, event=SKELLAM)),
        SkellamNoise(variance=1.0, l2_sensitivity=1000.0, dimension=10**9),
        Repeated(
            count=10**6,
            event=SampledWithoutReplacement(cohort=1, population=10**6, event=LaplaceNoise(noise_multiplier=0.5)),
        ),
        GaussianNoise(noise_multiplier=500.0),
        GaussianNoise(noise_multiplier=0.2),
    ],
    ids=str,
)
@pytest.mark.parametrize("relation", ["add_or_remove", "replace"])
def test_extremes_are_answered(event: Event, relation: Relation) -> None:
    if "without" in repr(event) and relation != "replace":
        return
    account = accountant.account(event, 1e-12, relation)
    assert 0 <= account.epsilon < math.inf
    assert 0 <= accountant.delta(event, 0.01, relation) <= 1
    assert 0.001 <= accountant.true_positive_rate(event, 0.001, relation) <= 1
