"""What trainers of Poisson batches share: the fields that follow from the client sizes, memory and weights."""

from dataclasses import replace
from typing import Protocol, Self

from discreet.algorithms.population import Population
from discreet.algorithms.training import poisson_batches
from discreet.algorithms.training.trainer import LocalTrainer


class PoissonTrainer(LocalTrainer, Protocol):
    """A trainer with `steps` or `epochs`, with `sampling_rate` or `batch_size`, and with a `piece`."""

    def __post_init__(self) -> None:
        poisson_batches.check_fields(self)

    def for_population(self, population: Population) -> Self:
        return replace(self, **poisson_batches.derive_fields(self, population))  # type: ignore[type-var]

    def with_two_steps(self) -> Self:
        return replace(self, steps=(2,), epochs=None)  # type: ignore[type-var]

    def with_local_work(self, amount: int) -> Self:
        return replace(self, steps=(amount,), epochs=None)  # type: ignore[type-var]

    def with_example_rate(self, rate: float) -> Self:
        return replace(self, sampling_rate=rate, batch_size=None)  # type: ignore[type-var]

    def example_clip(self) -> float | tuple[float, ...] | None:
        return poisson_batches.example_clip(self)

    def model_copies(self, population: Population) -> float:
        return poisson_batches.model_copies(self, population)

    def examples_per_step(self, population: Population) -> tuple[float, ...]:
        rate = poisson_batches.derive_fields(self, population)["sampling_rate"]
        return poisson_batches.expected_batch_sizes(rate, population)


class PoissonSumTrainer(PoissonTrainer, Protocol):
    """A Poisson trainer without noise of its own, whose sums are all divided by one `expected_batch`."""

    def for_population(self, population: Population) -> Self:
        return replace(self, **poisson_batches.derive_sum_fields(self, population))  # type: ignore[type-var]

    def longest_update(self, population: Population) -> float | None:
        return poisson_batches.longest_update(self)
