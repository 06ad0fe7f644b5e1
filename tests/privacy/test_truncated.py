"""Truncated Poisson sampling: its tails and its pair, against enumerations of everything that can happen."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import Unsupported
from discreet.privacy import groups, pld, rdp, second_engine
from discreet.privacy.accountant import account, account_with_second_engine
from discreet.privacy.binomial_tail import binomial_tail
from discreet.privacy.events import (
    GaussianNoise,
    LaplaceNoise,
    Noise,
    PoissonSampled,
    Repeated,
    SkellamNoise,
    TruncatedPoissonSampled,
    steps,
)
from discreet.privacy.noise_pairs import Array
from discreet.privacy.release import Relation
from discreet.privacy.truncated_sampling import truncation_cases

RELATIONS: tuple[Relation, ...] = ("add_or_remove", "zero_out", "replace")
LINE = np.linspace(-14, 14, 2801)


def truncated_event(rate: float, most: int, population: int, noise: Noise | None = None) -> TruncatedPoissonSampled:
    noise = noise or GaussianNoise(noise_multiplier=1.0)
    return TruncatedPoissonSampled(sampling_rate=rate, max_batch_size=most, population=population, event=noise)


@given(st.integers(0, 12), st.integers(0, 12), st.integers(1, 16))
def test_a_binomial_tail_is_its_sum(least: int, trials: int, sixteenths: int) -> None:
    rate = Fraction(sixteenths, 16)
    terms = (math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(least, trials + 1))
    exact = float(sum(terms, Fraction(0)))
    assert exact <= binomial_tail(least, trials, float(rate)) <= exact * (1 + 3e-9) + 1e-300


@pytest.mark.parametrize(
    ("least", "trials", "rate"),
    [(1300, 10**6, 1e-3), (1010, 10**6, 1e-3), (10**8 + 60_000, 10**9, 0.1), (5, 10**12, 1e-12), (10**9, 10**12, 9e-4)],
)
def test_a_binomial_tail_of_many_coins_keeps_its_digits(least: int, trials: int, rate: float) -> None:
    """Against the first probability at 40 digits, times the sum of the ratios that follow."""
    total, ratio, k = 0.0, 1.0, least
    while ratio > 1e-18:
        total += ratio
        ratio *= (trials - k) / (k + 1) * rate / (1 - rate)
        k += 1
    with mpmath.workdps(40):
        coins = mpmath.loggamma(trials + 1) - mpmath.loggamma(least + 1) - mpmath.loggamma(trials - least + 1)
        sides = least * mpmath.log(mpmath.mpf(rate)) + (trials - least) * mpmath.log(1 - mpmath.mpf(rate))
        exact = float(mpmath.exp(coins + sides) * total)
    assert exact * (1 - 1e-10) <= binomial_tail(least, trials, rate) <= exact * (1 + 1e-8) + 1e-300


def batches(n: int, rate: float, most: int) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Every batch that may come out, with its probability."""
    for coins in product((0, 1), repeat=n):
        joined = [unit for unit, coin in enumerate(coins) if coin]
        chance = math.prod(rate if coin else 1 - rate for coin in coins)
        kept = list(combinations(joined, min(most, len(joined))))
        for batch in kept:
            yield chance / len(kept), batch


def density(updates: list[float], rate: float, most: int, laplace: bool) -> Array:
    """The density of the noisy sum of a truncated sample of units with these updates."""
    total = np.zeros_like(LINE)
    for chance, batch in batches(len(updates), rate, most):
        away = LINE - sum(updates[unit] for unit in batch)
        total += chance * (np.exp(-np.abs(away)) / 2 if laplace else np.exp(-(away**2) / 2) / math.sqrt(2 * math.pi))
    return total


def hockey_stick(p: Array, q: Array, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum() * (LINE[1] - LINE[0]))


def neighbours(relation: Relation, n: int) -> Iterator[tuple[list[float], list[float]]]:
    """Pairs of data sets of up to n units, on a line, whose updates are at the bound or blank."""
    for others in product((-1.0, 0.0, 1.0), repeat=n - 1):
        for unit in (1.0, -1.0):
            match relation:
                case "replace":
                    yield [unit, *others], [-unit, *others]
                case "zero_out":
                    yield [unit, *others], [0.0, *others]
                case "add_or_remove":
                    for size in range(n):
                        yield [unit, *others[:size]], list(others[:size])


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("laplace", [False, True], ids=["gaussian", "laplace"])
@pytest.mark.parametrize(("rate", "most"), [(0.5, 1), (0.2, 2), (1.0, 2)])
def test_no_neighbours_are_told_apart_better_than_the_pair(
    rate: float, most: int, laplace: bool, relation: Relation
) -> None:
    noise: Noise = LaplaceNoise(noise_multiplier=1.0) if laplace else GaussianNoise(noise_multiplier=1.0)
    event = truncated_event(rate, most, 3, noise)
    bounds = {epsilon: pld.delta(event, epsilon, relation) for epsilon in (0.0, 0.2, 0.8, 1.5)}
    for one, other in neighbours(relation, 3):
        p, q = density(one, rate, most, laplace), density(other, rate, most, laplace)
        for epsilon, bound in bounds.items():
            assert max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)) <= bound + 1e-5


def test_a_displaced_unit_costs_more_than_poisson_sampling_of_the_same_rate() -> None:
    """One unit of two is kept: the other moves out when this one comes in."""
    event, plain = (
        truncated_event(0.5, 1, 2),
        PoissonSampled(sampling_rate=0.5, event=GaussianNoise(noise_multiplier=1.0)),
    )
    p, q = density([1.0, -1.0], 0.5, 1, laplace=False), density([-1.0], 0.5, 1, laplace=False)
    assert pld.delta(plain, 2.0) < hockey_stick(p, q, 2.0) < pld.delta(event, 2.0)


def test_a_cap_that_nobody_can_exceed_is_no_cap() -> None:
    noise = GaussianNoise(noise_multiplier=1.0)
    assert steps(truncated_event(0.1, 50, 50)) == {PoissonSampled(sampling_rate=0.1, event=noise): 1}
    assert steps(truncated_event(1.0, 50, 50)) == {noise: 1}


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_cap_that_is_hardly_ever_reached_costs_next_to_nothing(relation: Relation) -> None:
    plain = Repeated(count=100, event=PoissonSampled(sampling_rate=0.01, event=GaussianNoise(noise_multiplier=1.0)))
    rare = Repeated(count=100, event=truncated_event(0.01, 200, 10_000))
    assert pld.epsilon(rare, 1e-5, relation) == pytest.approx(pld.epsilon(plain, 1e-5, relation), rel=1e-3)


def test_under_add_or_remove_more_units_cost_more_so_the_population_may_be_smaller() -> None:
    costs = [pld.epsilon(truncated_event(0.1, 10, n), 1e-5) for n in (10, 20, 60, 100, 200, 1000)]
    assert costs == sorted(costs)
    assert costs[0] < costs[-1]


def test_the_chance_to_displace_another_unit_is_that_of_an_enumeration() -> None:
    rate, most, n = 0.4, 2, 5
    (_, case) = truncation_cases(truncated_event(rate, most, n), "zero_out")
    reached = sum(math.comb(n - 1, k) * rate**k * (1 - rate) ** (n - 1 - k) for k in range(most, n))
    stays = sum(chance for chance, batch in batches(n, rate, most) if 0 in batch)
    unhindered = rate * (1 - reached)
    assert case.probability == pytest.approx(reached, rel=1e-8)
    assert case.step.sampling_rate == pytest.approx((stays - unhindered) / reached, rel=1e-7)


@pytest.mark.parametrize("relation", ["zero_out", "replace"])
@pytest.mark.parametrize(("most", "times"), [(60, 30), (45, 10)])
def test_dp_accounting_finds_the_same(relation: Relation, most: int, times: int) -> None:
    event = Repeated(count=times, event=truncated_event(0.05, most, 1000, GaussianNoise(noise_multiplier=2.0)))
    ours, theirs = account_with_second_engine(event, 1e-5, relation)
    assert theirs.same_method
    assert theirs.epsilon == pytest.approx(ours.epsilon, abs=theirs.tolerance + 5e-4)
    assert ours.certified_by == "pld"


def test_dp_accounting_is_not_asked_about_what_it_counts_for_one_size_only() -> None:
    assert "exact number of units" in second_engine.epsilon(truncated_event(0.05, 60, 1000), 1e-5).reason
    assert (
        "Gaussian" in second_engine.epsilon(truncated_event(0.1, 3, 9, LaplaceNoise(noise_multiplier=1.0)), 0.1).reason
    )


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("noise", [GaussianNoise(noise_multiplier=1.5), LaplaceNoise(noise_multiplier=2.0)])
def test_rdp_is_never_below_pld(noise: Noise, relation: Relation) -> None:
    event = Repeated(count=20, event=truncated_event(0.1, 12, 100, noise))
    assert pld.epsilon(event, 1e-5, relation) <= rdp.epsilon(event, 1e-5, relation) * (1 + 1e-9)


def test_integer_noise_on_vectors_has_a_renyi_bound_between_plain_and_displaced() -> None:
    noise = SkellamNoise(variance=400.0, l2_sensitivity=10.0, dimension=100)
    plain = PoissonSampled(sampling_rate=0.1, event=noise)
    event = truncated_event(0.1, 20, 100, noise)
    assert account(event, 1e-5, "zero_out").epsilon < rdp.epsilon(event, 1e-5, "zero_out")
    assert rdp.epsilon(plain, 1e-5, "zero_out") < rdp.epsilon(event, 1e-5, "zero_out")
    assert rdp.epsilon(event, 1e-5, "zero_out") <= rdp.epsilon(noise, 1e-5, "replace") * (1 + 1e-9)


def test_no_comparison_counts_a_displaced_unit_as_one_that_is_only_added() -> None:
    found = account(truncated_event(0.1, 5, 50), 1e-5, "zero_out")
    assert {"basic", "advanced", "moments"} <= found.notes.keys()


def test_a_group_is_refused() -> None:
    with pytest.raises(Unsupported, match="truncated Poisson sampling"):
        groups.group_event(truncated_event(0.1, 5, 50), 2)
