"""The planner's start: the experiment, and the sliders at its own numbers."""

from collections.abc import Iterator
from dataclasses import dataclass

from discreet.algorithms import per_client
from discreet.algorithms.algorithm import Algorithm
from discreet.errors import InvalidInput
from discreet.experiment.configuration.experiment_file import Source
from discreet.experiment.promise import run_spending
from discreet.experiment.terms import Terms
from discreet.planning.local_work import recommend_local_work
from discreet.planning.other_promises import open_noise
from discreet.planning.planner.slider_question import LARGEST_DELTA, MOST, Question
from discreet.privacy.wording import compact


@dataclass(frozen=True, eq=False)
class StartPosition:
    """Where the sliders start, and the experiment that they change.

    Attributes:
        terms: The terms of the experiment, from which `discreet plan` computes its numbers.
        open_algorithm: The experiment's algorithm with noise that a promise decides. None if there is none, or more
            than one.
        question: The sliders at the numbers of the experiment, as the page shows them.
        is_noise_given: Whether the experiment gives its noise, and doesn't leave it to the promise.
        beyond: The names of the numbers for which the page's limits are too narrow. The sliders start at those limits.
    """

    terms: Terms
    open_algorithm: Algorithm | None
    question: Question
    is_noise_given: bool = False
    beyond: frozenset[str] = frozenset()

    def keeps(self, question: Question, *names: str) -> bool:
        """Return whether these sliders stand where the experiment does."""
        return not self.beyond.intersection(names) and all(
            getattr(question, name) == getattr(self.question, name) for name in names
        )

    def keeps_all(self, question: Question) -> bool:
        """Return whether all sliders stand where the experiment does."""
        return not self.beyond and question == self.question

    def notes(self) -> Iterator[str]:
        """Yield what a reader of the page should know about the experiment, in sentences."""
        population = self.terms.population
        fewest, most = min(population.examples), max(population.examples)
        sizes = f"{fewest:,}" if fewest == most else f"from {fewest:,} to {most:,}"
        yield (
            f"The experiment has {population.clients:,} clients with {sum(population.examples):,} examples ({sizes} "
            "each); more or fewer of them are divided in the same proportions."
        )
        if self.is_noise_given:
            yield (
                "The experiment gives its noise. Once a slider is moved, the page shows the least noise that keeps the "
                "promise instead."
            )
        for name in sorted(self.beyond):
            yield (
                f"The page starts with {name} at {getattr(self.question, name):,}, its limit; `discreet plan` without "
                "--interactive has the experiment's own numbers."
            )


def start_position(source: Source, terms: Terms) -> StartPosition:
    """Put the sliders where the experiment stands.

    Args:
        source: The experiment, whose algorithm has the noise as its file gives it.
        terms: Its terms.

    Raises:
        InvalidInput: The model's size is not known.
    """
    if terms.parameters is None:
        raise InvalidInput(f"The page needs the model's size. {terms.unknown[0]}")
    privacy, population = terms.privacy, terms.population
    numbers = {
        "epsilon": 2.0 if privacy is None else privacy.largest_epsilon,
        "delta": run_spending.DEFAULT_DELTA if privacy is None else privacy.delta,
        "clients": population.clients,
        "sampling_rate": example_rate(terms) or client_rate(terms),
        "rounds": terms.rounds,
        "local_steps": recommend_local_work(terms).now,
        "dimension": terms.parameters,
        "examples": max(1, round(mean_size(terms))),
    }
    most = {"delta": LARGEST_DELTA, **MOST}
    beyond = {name for name in most if numbers[name] > most[name]}
    shown = {name: most[name] if name in beyond else round_as_page(number) for name, number in numbers.items()}
    question = Question(mechanism="experiment", view="server" if privacy is None else privacy.against, **shown)  # type: ignore[arg-type]
    algorithm = source.experiment.algorithm
    open_algorithm = open_noise(algorithm)
    is_given = open_algorithm is not None and open_algorithm != algorithm
    return StartPosition(terms, open_algorithm, question, is_given, frozenset(beyond))


def example_rate(terms: Terms) -> float | None:
    """Return the share of a client's examples in a step, where it decides the noise; else None."""
    mechanism, trainer = terms.algorithm.mechanism, per_client.worst_case(terms.algorithm.trainer)
    is_for_examples = not mechanism.is_local and (not mechanism.is_private or mechanism.unit == "example")
    rate = getattr(trainer, "sampling_rate", None)
    return rate if is_for_examples and isinstance(rate, float) else None


def client_rate(terms: Terms) -> float:
    """Return the share of the clients that join a round, on average."""
    return terms.algorithm.sampling.expected_cohort(terms.population) / terms.population.clients


def mean_size(terms: Terms) -> float:
    """Return the number of examples of a client, on average."""
    return sum(terms.population.examples) / terms.population.clients


def round_as_page(number: float) -> float:
    """Return the number with the digits that the page shows, which it sends back."""
    return number if isinstance(number, int) else float(compact(number))
