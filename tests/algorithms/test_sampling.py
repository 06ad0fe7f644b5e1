"""Sampling: the draw, the denominator and the price come from one object."""

import math

import pytest
import torch

from discreet.algorithms.population import Population
from discreet.algorithms.sampling import Everyone, FixedSize, Poisson, RoundRobin, Sampling
from discreet.errors import InvalidInput
from discreet.privacy.events import GaussianNoise, PoissonSampled, SampledWithoutReplacement
from discreet.testing import check_sampler

TEN = Population(examples=(1,) * 10)
NOISE = GaussianNoise(noise_multiplier=1.0)
ALL: list[Sampling] = [Everyone(), Poisson(rate=0.3), FixedSize(cohort=3), RoundRobin(cohort=3)]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("sampling", [*ALL, Poisson(rate=0.01), Poisson(rate=1.0), FixedSize(cohort=20)], ids=str)
def test_it_keeps_the_contract(sampling: Sampling) -> None:
    assert check_sampler(sampling)


@pytest.mark.parametrize("sampling", ALL, ids=lambda s: s.kind)
def test_a_cohort_is_sorted_distinct_clients_and_repeats_by_seed(sampling: Sampling) -> None:
    for round in range(20):
        cohort = sampling.sample(TEN, round, generator(round))
        assert cohort == sorted(set(cohort))
        assert all(0 <= client < 10 for client in cohort)
        assert cohort == sampling.sample(TEN, round, generator(round))
        known = sampling.public_cohort(TEN, round)
        assert known is None or list(known) == cohort


@pytest.mark.parametrize("sampling", ALL, ids=lambda s: s.kind)
def test_the_expected_cohort_is_the_mean_cohort(sampling: Sampling) -> None:
    """z-test on a fixed seed; |z| < 5 has a false-alarm rate of 6e-7."""
    trials = 5000
    source = generator(11)
    mean = sum(len(sampling.sample(TEN, t, source)) for t in range(trials)) / trials
    deviation = math.sqrt(10 * 0.3 * 0.7 / trials)
    assert abs(mean - sampling.expected_cohort(TEN)) < 5 * deviation


def test_only_a_secret_draw_amplifies() -> None:
    assert Everyone().amplify(NOISE, TEN) == NOISE
    assert RoundRobin(cohort=3).amplify(NOISE, TEN) == NOISE
    assert Poisson(rate=0.3).amplify(NOISE, TEN) == PoissonSampled(sampling_rate=0.3, event=NOISE)
    assert FixedSize(cohort=3).amplify(NOISE, TEN) == SampledWithoutReplacement(cohort=3, population=10, event=NOISE)
    assert FixedSize(cohort=3).relation == "replace"


@pytest.mark.parametrize("rounds", [1, 3, 4, 7, 10, 33])
def test_in_a_round_robin_nobody_joins_more_often_than_it_says(rounds: int) -> None:
    sampling = RoundRobin(cohort=3)
    joined = [sum(client in sampling.sample(TEN, t, generator()) for t in range(rounds)) for client in range(10)]
    assert max(joined) <= sampling.rounds_joined(TEN, rounds) <= max(joined) + 1


def test_a_cohort_larger_than_the_population_is_refused() -> None:
    with pytest.raises(InvalidInput, match="A cohort of 11 can't be drawn from 10 clients"):
        FixedSize(cohort=11).sample(TEN, 0, generator())


def test_poisson_draws_each_client_independently_of_the_others() -> None:
    """Coins of rate 0.3 give cohorts of variance 10·0.3·0.7 = 2.1, and a fixed size gives 0.

    Over 5,000 draws the variance is 2.1 to within 0.042 (its deviation), so five of those have a rate of 6e-7.
    """
    source = generator(5)
    sizes = torch.tensor([len(Poisson(rate=0.3).sample(TEN, t, source)) for t in range(5000)], dtype=torch.float64)
    assert abs(float(sizes.var()) - 2.1) < 5 * 0.042
