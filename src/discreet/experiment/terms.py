"""The terms of an experiment: all that its guarantee, its noise and its cost follow from, without data and model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from discreet.experiment.promise import run_spending
from discreet.experiment.promise.promise_warnings import StatedPromise, promise_warnings

if TYPE_CHECKING:
    from discreet.algorithms.algorithm import Algorithm
    from discreet.algorithms.message_sizes import MessageBits
    from discreet.algorithms.population import Population
    from discreet.data.data_facts import DataFacts
    from discreet.experiment.configuration.run_settings import RunSettings
    from discreet.experiment.promise.promise import Privacy
    from discreet.experiment.promise.released_rounds import ReleasedRound


@dataclass(frozen=True)
class DeploymentFacts:
    """What a run on real clients says about its deployment.

    Attributes:
        resume_command: The command that resumes the run.
        is_rehearsal: Whether one machine plays the server and every client.
        other_runs: Lists the deployment's other runs on the same data that have begun by now.
        client_code: Lists the stamps of the code that the clients say they run, each once.
        agreement: A digest of what the clients agreed to, and of their keys. Under another one they would answer a
            repeated round with fresh noise, which is a further release.
    """

    resume_command: str
    is_rehearsal: bool
    other_runs: Callable[[], Sequence[str]]
    client_code: Callable[[], Sequence[str]]
    agreement: str


@dataclass(frozen=True)
class ModelSize:
    """The number of trained parameters, and the bits of a round's messages."""

    parameters: int
    bits: "MessageBits"


@dataclass(frozen=True)
class Terms:
    """All that a guarantee, its noise and its cost follow from.

    Attributes:
        settings: The settings of the run.
        algorithm: The algorithm with all its noise.
        privacy: The promise. None for a run without privacy.
        population: The public client sizes.
        data: What is said about the data.
        is_seeded: Whether all randomness comes from a seed.
        size: The model's size. None if the model is code of the user's own that was not run.
        metric_names: The names of the metrics on test examples. None if a metric of the user's own was not run.
        unknown: What the terms leave open, and why, in sentences.
        deployment: What the run says about its deployment.
        isolation_note: What was verified about a model of the user's own.
        part_trials: What was tried of parts of the user's own, in sentences.
    """

    settings: "RunSettings"
    algorithm: "Algorithm"
    privacy: "Privacy | None"
    population: "Population"
    data: "DataFacts"
    is_seeded: bool
    size: ModelSize | None
    metric_names: tuple[str, ...] | None
    unknown: tuple[str, ...] = ()
    deployment: DeploymentFacts | None = None
    isolation_note: str | None = None
    part_trials: tuple[str, ...] = ()

    @property
    def rounds(self) -> int:
        return self.settings.rounds

    @property
    def parameters(self) -> int | None:
        """The number of trained parameters, if it is known."""
        return None if self.size is None else self.size.parameters

    def promise_warnings(self) -> list[str]:
        """Return warnings of a promise that says little (a large δ or ε), which every way to start a run shows."""
        if (asked := self.privacy) is None:
            return []
        stated = StatedPromise(asked.unit, asked.against, asked.largest_epsilon, asked.delta)
        return list(promise_warnings(self.population, [stated], self.data.distinct_examples))

    def spent_epsilon(self, completed: int, released: "Sequence[ReleasedRound] | None" = None) -> float | None:
        """Return the ε of the client that has spent most after `completed` rounds.

        Args:
            released: The rounds that took place. None counts every round as planned.
        """
        return run_spending.spent_epsilon(
            self.algorithm, self.privacy, completed, self.population, self.round_limits, released
        )

    @cached_property
    def round_limits(self) -> dict[int, int]:
        """The clients whose budget is spent before the last round, and the number of rounds that each can pay for."""
        return run_spending.round_limits(self.algorithm, self.privacy, self.rounds, self.population)
