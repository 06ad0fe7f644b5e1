"""A sampler that breaks its contract is refused, with a sentence that says how."""

from typing import Any

import pytest
import torch

from discreet.privacy.events import PoissonSampled, Repeated, SampledWithoutReplacement
from discreet.testing import PartFailed, check_sampler

RATE = 0.3


class Coins:
    """A sound Poisson sampler, as a user would write it."""

    relation = "add_or_remove"

    def sample(self, population: Any, round: int, generator: Any) -> list[int]:
        return (torch.rand(population.clients, generator=generator) < RATE).nonzero().flatten().tolist()

    def expected_cohort(self, population: Any) -> float:
        return RATE * population.clients

    def amplify(self, noise: Any, population: Any) -> Any:
        return PoissonSampled(sampling_rate=RATE, event=noise)


class Six(Coins):
    """A sound sampler of exactly six clients."""

    relation = "replace"

    def sample(self, population: Any, round: int, generator: Any) -> list[int]:
        return sorted(torch.randperm(population.clients, generator=generator)[:6].tolist())

    def amplify(self, noise: Any, population: Any) -> Any:
        return SampledWithoutReplacement(cohort=6, population=population.clients, event=noise)


@pytest.mark.parametrize("sound", [Coins(), Six()], ids=lambda each: type(each).__name__)
def test_a_sound_sampler_of_a_users_own_passes(sound: Any) -> None:
    drawn, priced = check_sampler(sound)
    assert drawn.startswith("Drew 2,000 cohorts of 20 clients")
    assert priced.startswith("No client joined more often than the declared rate of 0.3 allows (the most frequent: 0.3")


class FirstAlways(Coins):
    def sample(self, *given: Any) -> list[int]:
        return sorted({0, *super().sample(*given)})


class SlightlyTooOften(Coins):
    def sample(self, population: Any, round: int, generator: Any) -> list[int]:
        coins = torch.rand(population.clients, generator=generator)
        coins[7] -= 0.1
        return (coins < RATE).nonzero().flatten().tolist()


class OneCoinForAll(Coins):
    def sample(self, population: Any, round: int, generator: Any) -> list[int]:
        return list(range(population.clients)) if float(torch.rand(1, generator=generator)) < RATE else []


class SixForCoins(Six):
    relation = "add_or_remove"

    def amplify(self, noise: Any, population: Any) -> Any:
        return PoissonSampled(sampling_rate=RATE, event=noise)


class EveryCohortTwice(Coins):
    """At the right rate in each round, and the same cohort in the next."""

    def __init__(self) -> None:
        self.cohort: list[int] = []

    def sample(self, population: Any, round: int, generator: Any) -> list[int]:
        if round % 2 == 0:
            self.cohort = super().sample(population, round, generator)
        return self.cohort


class OwnSeed(Coins):
    def sample(self, population: Any, round: int, generator: Any) -> list[int]:
        return super().sample(population, round, torch.Generator().manual_seed(round))


class GlobalGenerator(Coins):
    def sample(self, population: Any, round: int, generator: Any) -> list[int]:
        return super().sample(population, round, None)


class FromTheLast(Coins):
    def sample(self, *given: Any) -> list[int]:
        return super().sample(*given)[::-1]


class Twice(Coins):
    def sample(self, *given: Any) -> list[int]:
        return sorted(super().sample(*given) * 2)


class BeyondTheLast(Coins):
    def sample(self, population: Any, *given: Any) -> list[int]:
        return [*super().sample(population, *given), population.clients]


class WrongMean(Coins):
    def expected_cohort(self, population: Any) -> float:
        return RATE * population.clients * 1.1


class WrongBounds(Coins):
    def cohort_bounds(self, population: Any) -> tuple[int, int]:
        return 3, 10


class WrongPublic(Coins):
    def public_cohort(self, population: Any, round: int) -> tuple[int, ...]:
        return (0, 1)


class RarelyJoined(Coins):
    def rounds_joined(self, population: Any, rounds: int) -> int:
        return rounds // 3


class WrongSize(Six):
    def amplify(self, noise: Any, population: Any) -> Any:
        return SampledWithoutReplacement(cohort=5, population=population.clients, event=noise)


class WrongRelation(Six):
    relation = "add_or_remove"


class OtherEvent(Coins):
    def amplify(self, noise: Any, population: Any) -> Any:
        return Repeated(count=1, event=noise)


class MoreNoise(Coins):
    def amplify(self, noise: Any, population: Any) -> Any:
        return PoissonSampled(sampling_rate=RATE, event=type(noise)(noise_multiplier=2.0))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (FirstAlways, r"A cohort has 6.\d+ clients on average, and `expected_cohort` says 6"),
        (SlightlyTooOften, r"Client 7 joined (7|8)\d\d of 2,000 rounds, and the draw is priced at a rate of 0.3"),
        (OneCoinForAll, r"Cohort sizes have a variance of 8\d.\d+, and independent draws .* would have 4.2"),
        (SixForCoins, r"Cohort sizes have a variance of 0, and independent draws .* would have 4.2"),
        (EveryCohortTwice, r"Two successive cohorts share 5.\d+ clients on average, and fresh draws would share 1.8"),
        (OwnSeed, r"Two runs with different keys draw the same cohorts"),
        (GlobalGenerator, r"The same generator gave two cohorts in one round"),
        (FromTheLast, r"A cohort must list clients 0 to 19 in ascending order, and got \["),
        (Twice, r"A cohort must list clients 0 to 19 in ascending order"),
        (BeyondTheLast, r"A cohort must list clients 0 to 19 in ascending order"),
        (WrongMean, r"A cohort has (5.9|6)\S* clients on average, and `expected_cohort` says 6.6"),
        (WrongBounds, r"Cohorts had \d+ to \d+ clients, and `cohort_bounds` says 3 to 10"),
        (WrongPublic, r"`public_cohort` says \(0, 1\) for round 0, and `sample` drew"),
        (RarelyJoined, r"A client joined \d+ of \d+ rounds, and `rounds_joined` says at most"),
        (WrongSize, r"priced as exactly 5 of 20 clients, and had 6 to 6 of 20"),
        (WrongRelation, r"A draw of a fixed size hides a replaced client, not add_or_remove"),
        (OtherEvent, r"`amplify` must return the noise itself or a sampled event of it, and got repeated"),
        (MoreNoise, r"`amplify` must return an event with the noise that it was asked for"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_sampler_that_breaks_its_contract_is_refused(wrong: Any, sentence: str) -> None:
    with pytest.raises(PartFailed, match=sentence):
        check_sampler(wrong())


def test_a_client_that_always_joins_is_found_where_the_mean_hides_it() -> None:
    class WrongMeanToo(FirstAlways):
        def expected_cohort(self, population: Any) -> float:
            return super().expected_cohort(population) + 0.7

    with pytest.raises(
        PartFailed, match=r"Client 0 joined 2,000 of 2,000 rounds, and the draw is priced at a rate of 0.3"
    ):
        check_sampler(WrongMeanToo())
