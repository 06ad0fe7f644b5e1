"""Which clients join a round, and how much a secret draw amplifies privacy."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Annotated, Literal, Protocol, Self, TypeAlias

from pydantic import Field

from discreet.algorithms.population import Population
from discreet.contract import contract
from discreet.errors import InvalidInput
from discreet.lazy_torch import torch
from discreet.own_part import OwnPart
from discreet.part import Count, Rate, part
from discreet.privacy.events import Event, Noise, PoissonSampled, SampledWithoutReplacement
from discreet.privacy.release import Relation


@contract("sampler", defaults=["amplify", "public_cohort", "cohort_bounds", "rounds_joined"], relation="replace")
class Sampling(Protocol):
    """The contract of a sampling: it draws the cohort and prices the draw, so that the two can't differ.

    The draw, its relation and the divisor are for each sampling to state. The other members default to what costs most:
    a draw that amplifies nothing, any number of clients in a round, and each client in all of them.
    """

    @property
    @abstractmethod
    def relation(self) -> Relation:
        """The neighbouring relation that `amplify` counts."""

    @abstractmethod
    def sample(self, population: Population, round: int, generator: torch.Generator) -> list[int]:
        """Draw the clients of a round, in ascending order."""

    @abstractmethod
    def expected_cohort(self, population: Population) -> float:
        """Return the expected cohort size, which divides the sum: the actual size is not public."""

    def cohort_bounds(self, population: Population) -> tuple[int, int]:
        """Return the fewest and the most clients that may join a round; by default none and all.

        With none, noise that clients bring through a secure sum is refused: there may be nobody to bring it.
        """
        return 0, population.clients

    def amplify(self, noise: Noise, population: Population) -> Event:
        """Return the event of a client-level release with this noise, for an observer who doesn't see who joined.

        By default the draw amplifies nothing.
        """
        return noise

    def public_cohort(self, population: Population, round: int) -> tuple[int, ...] | None:
        """Return the cohort if it is public, and so amplifies nothing; None if it is drawn in secret.

        None costs no less: before a secret draw every client is charged.
        """
        return None

    def rounds_joined(self, population: Population, rounds: int) -> int:
        """Return the most of `rounds` rounds that one client takes part in; by default all."""
        return rounds

    def with_rate(self, rate: float, clients: int) -> Self | None:
        """Return a copy in which this share of the clients joins a round, for plans.

        None if it can't be changed, as by default.
        """
        return None


@part
class Everyone(Sampling):
    """All clients join every round."""

    kind: Literal["everyone"] = "everyone"

    relation = "add_or_remove"

    def sample(self, population: Population, round: int, generator: torch.Generator) -> list[int]:
        return list(self.public_cohort(population, round))

    def expected_cohort(self, population: Population) -> float:
        return float(population.clients)

    def cohort_bounds(self, population: Population) -> tuple[int, int]:
        return population.clients, population.clients

    def public_cohort(self, population: Population, round: int) -> tuple[int, ...]:
        return tuple(range(population.clients))


@part
class Poisson(Sampling):
    """Each client joins with probability `rate`, independently and in secret."""

    kind: Literal["poisson"] = "poisson"
    rate: Rate

    relation = "add_or_remove"

    def sample(self, population: Population, round: int, generator: torch.Generator) -> list[int]:
        coins = torch.rand(population.clients, generator=generator, dtype=torch.float64)
        return torch.nonzero(coins < self.rate).flatten().tolist()

    def expected_cohort(self, population: Population) -> float:
        return self.rate * population.clients

    def with_rate(self, rate: float, clients: int) -> Self:
        return replace(self, rate=rate)

    def amplify(self, noise: Noise, population: Population) -> Event:
        return PoissonSampled(sampling_rate=self.rate, event=noise)


@part
class FixedSize(Sampling):
    """Exactly `cohort` clients join, drawn in secret without replacement."""

    kind: Literal["fixed_size"] = "fixed_size"
    cohort: Count

    relation = "replace"

    def sample(self, population: Population, round: int, generator: torch.Generator) -> list[int]:
        self._check(population)
        return sorted(torch.randperm(population.clients, generator=generator)[: self.cohort].tolist())

    def expected_cohort(self, population: Population) -> float:
        self._check(population)
        return float(self.cohort)

    def cohort_bounds(self, population: Population) -> tuple[int, int]:
        self._check(population)
        return self.cohort, self.cohort

    def with_rate(self, rate: float, clients: int) -> Self:
        return replace(self, cohort=max(1, round(rate * clients)))

    def amplify(self, noise: Noise, population: Population) -> Event:
        self._check(population)
        return SampledWithoutReplacement(cohort=self.cohort, population=population.clients, event=noise)

    def _check(self, population: Population) -> None:
        if self.cohort > population.clients:
            raise InvalidInput(
                f"A cohort of {self.cohort} can't be drawn from {population.clients} clients.",
                fix="Lower the cohort, or bring more clients.",
            )


@part
class RoundRobin(Sampling):
    """`cohort` clients join at a time, in a fixed public order, which amplifies nothing."""

    kind: Literal["round_robin"] = "round_robin"
    cohort: Count

    relation = "add_or_remove"

    def sample(self, population: Population, round: int, generator: torch.Generator) -> list[int]:
        return list(self.public_cohort(population, round))

    def expected_cohort(self, population: Population) -> float:
        return float(min(self.cohort, population.clients))

    def cohort_bounds(self, population: Population) -> tuple[int, int]:
        return min(self.cohort, population.clients), min(self.cohort, population.clients)

    def with_rate(self, rate: float, clients: int) -> Self:
        return replace(self, cohort=max(1, round(rate * clients)))

    def public_cohort(self, population: Population, round: int) -> tuple[int, ...]:
        first = round * self.cohort
        return tuple(sorted({(first + i) % population.clients for i in range(self.cohort)}))

    def rounds_joined(self, population: Population, rounds: int) -> int:
        return min(rounds, -(-rounds * self.cohort // population.clients))


AnySampling: TypeAlias = Annotated[
    Everyone | Poisson | FixedSize | RoundRobin, Field(discriminator="kind"), OwnPart(Sampling)
]
