"""Who joins a round, and what that randomness is worth."""

from typing import Annotated, Literal, Protocol, TypeAlias

import torch
from pydantic import Field

from discreet.algorithms.population import Population
from discreet.errors import InvalidInput
from discreet.part import Count, Rate, part
from discreet.privacy.events import Event, Noise, PoissonSampled, SampledWithoutReplacement
from discreet.privacy.release import Relation


class Sampling(Protocol):
    """Draws the cohort, says how large it is expected to be, and prices the draw: one object, so they can't differ."""

    def sample(self, population: Population, round: int, generator: torch.Generator) -> list[int]: ...

    @property
    def relation(self) -> Relation:
        """Which neighbours the price is for."""

    def expected_cohort(self, population: Population) -> float:
        """The fixed denominator: the actual number who joined is not public."""

    def cohort_bounds(self, population: Population) -> tuple[int, int]:
        """The fewest and the most clients that may join a round."""

    def amplify(self, noise: Noise, population: Population) -> Event:
        """What a client-level release with this noise is to someone who doesn't see who joined."""

    def public_cohort(self, population: Population, round: int) -> tuple[int, ...] | None:
        """Who joins, where that is no secret and so amplifies nothing; None where it is drawn."""

    def rounds_joined(self, population: Population, rounds: int) -> int:
        """In how many of so many rounds one client takes part, at most."""


@part
class Everyone:
    """All clients, every round."""

    kind: Literal["everyone"] = "everyone"

    @property
    def relation(self) -> Relation:
        return "add_or_remove"

    def sample(self, population: Population, round: int, generator: torch.Generator) -> list[int]:
        return list(self.public_cohort(population, round))

    def expected_cohort(self, population: Population) -> float:
        return float(population.clients)

    def cohort_bounds(self, population: Population) -> tuple[int, int]:
        return population.clients, population.clients

    def amplify(self, noise: Noise, population: Population) -> Event:
        return noise

    def public_cohort(self, population: Population, round: int) -> tuple[int, ...]:
        return tuple(range(population.clients))

    def rounds_joined(self, population: Population, rounds: int) -> int:
        return rounds


@part
class Poisson:
    """Each client by its own secret coin."""

    kind: Literal["poisson"] = "poisson"
    rate: Rate

    @property
    def relation(self) -> Relation:
        return "add_or_remove"

    def sample(self, population: Population, round: int, generator: torch.Generator) -> list[int]:
        coins = torch.rand(population.clients, generator=generator, dtype=torch.float64)
        return torch.nonzero(coins < self.rate).flatten().tolist()

    def expected_cohort(self, population: Population) -> float:
        return self.rate * population.clients

    def cohort_bounds(self, population: Population) -> tuple[int, int]:
        return 0, population.clients

    def amplify(self, noise: Noise, population: Population) -> Event:
        return PoissonSampled(sampling_rate=self.rate, event=noise)

    def public_cohort(self, population: Population, round: int) -> tuple[int, ...] | None:
        return None

    def rounds_joined(self, population: Population, rounds: int) -> int:
        return rounds


@part
class FixedSize:
    """A secret subset of exactly `cohort` clients."""

    kind: Literal["fixed_size"] = "fixed_size"
    cohort: Count

    @property
    def relation(self) -> Relation:
        return "replace"

    def sample(self, population: Population, round: int, generator: torch.Generator) -> list[int]:
        self._check(population)
        return sorted(torch.randperm(population.clients, generator=generator)[: self.cohort].tolist())

    def expected_cohort(self, population: Population) -> float:
        self._check(population)
        return float(self.cohort)

    def cohort_bounds(self, population: Population) -> tuple[int, int]:
        self._check(population)
        return self.cohort, self.cohort

    def amplify(self, noise: Noise, population: Population) -> Event:
        self._check(population)
        return SampledWithoutReplacement(cohort=self.cohort, population=population.clients, event=noise)

    def public_cohort(self, population: Population, round: int) -> tuple[int, ...] | None:
        return None

    def rounds_joined(self, population: Population, rounds: int) -> int:
        return rounds

    def _check(self, population: Population) -> None:
        if self.cohort > population.clients:
            raise InvalidInput(
                f"A cohort of {self.cohort} can't be drawn from {population.clients} clients.",
                fix="Lower the cohort, or bring more clients.",
            )


@part
class RoundRobin:
    """`cohort` clients after one another, in a fixed public order: nothing is hidden, so nothing is amplified."""

    kind: Literal["round_robin"] = "round_robin"
    cohort: Count

    @property
    def relation(self) -> Relation:
        return "add_or_remove"

    def sample(self, population: Population, round: int, generator: torch.Generator) -> list[int]:
        return list(self.public_cohort(population, round))

    def expected_cohort(self, population: Population) -> float:
        return float(min(self.cohort, population.clients))

    def cohort_bounds(self, population: Population) -> tuple[int, int]:
        return min(self.cohort, population.clients), min(self.cohort, population.clients)

    def amplify(self, noise: Noise, population: Population) -> Event:
        return noise

    def public_cohort(self, population: Population, round: int) -> tuple[int, ...]:
        first = round * self.cohort
        return tuple(sorted({(first + i) % population.clients for i in range(self.cohort)}))

    def rounds_joined(self, population: Population, rounds: int) -> int:
        return min(rounds, -(-rounds * self.cohort // population.clients))


AnySampling: TypeAlias = Annotated[Everyone | Poisson | FixedSize | RoundRobin, Field(discriminator="kind")]
