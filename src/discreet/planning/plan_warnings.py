"""What a person should be warned of before a run: promises that say little, and protection that isn't there."""

import math
from collections.abc import Iterator, Sequence
from typing import Protocol

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.algorithms.training import Shards
from discreet.engines.engine import MIN_SECURE_CLIENTS
from discreet.privacy.release import Person, Unit, View
from discreet.privacy.wording import compact, round_up, unit_name

LARGE = 10.0  # beyond which an ε is worth little


class Said(Protocol):
    """What is promised, as a guarantee has it."""

    @property
    def unit(self) -> Unit: ...
    @property
    def view(self) -> View: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def delta(self) -> float: ...


def warnings(
    algorithm: Algorithm, population: Population, cards: Sequence[Said], distinct: int | None
) -> Iterator[str]:
    """A sentence or two each. `distinct` examples are there when each is counted once, as far as that is known."""
    if cards:
        yield from _delta(population, cards[0], distinct)
        yield from _epsilon(cards)
        yield from _amplification(algorithm, population, cards[0])
    yield from _secure_sums(algorithm, population)
    yield from _shards(algorithm, population)


def _shards(algorithm: Algorithm, population: Population) -> Iterator[str]:
    trainer, most = algorithm.trainer, max(population.examples)
    if isinstance(trainer, Shards) and trainer.shards > most:
        yield (
            f"There are {trainer.shards:,} shards and at most {most:,} examples to a client: shards that are empty "
            "send nothing, and only shrink the update beside its noise. Choose fewer."
        )


def _delta(population: Population, card: Said, distinct: int | None) -> Iterator[str]:
    """δ is the chance that ε doesn't hold: at one in as many as there are, someone's data may well be shown whole."""
    number = _units(population, card, distinct)
    if card.delta * number >= 1:
        kind, more = unit_name(card.unit), "" if _exactly(card, distinct) else "at least "
        yield (
            f"delta = {compact(card.delta)} is no less than 1/{number:,}, and there are {more}{number:,} "
            f"{'people' if kind == 'person' else f'{kind}s'}: showing one of them whole would keep this promise. "
            f"Choose delta well below {compact(1 / number, 2)}."
        )


def _units(population: Population, card: Said, distinct: int | None) -> int:
    """How many there are of whom the promise protects; at least, where only the data's owner could count them."""
    if card.unit == "client":
        return population.clients
    examples = sum(population.examples)
    found = distinct if distinct is not None else math.ceil(examples / population.max_multiplicity)
    return math.ceil(found / card.unit.max_examples) if isinstance(card.unit, Person) else found


def _exactly(card: Said, distinct: int | None) -> bool:
    return card.unit == "client" or (card.unit == "example" and distinct is not None)


def _epsilon(cards: Sequence[Said]) -> Iterator[str]:
    first = cards[0]
    most = max(each.epsilon for each in cards if (each.unit, each.view) == (first.unit, first.view))
    if most > LARGE:
        yield (
            f"epsilon = {round_up(most)} is above {LARGE:g}: it bounds the odds by a factor of about "
            f"{_factor(most)}, which says little. Look at which attacks it still excludes, if any."
        )


def _factor(epsilon: float) -> str:
    return f"{math.exp(epsilon):,.0f}" if epsilon < 16 else f"e^{compact(epsilon, 3)}"


def _amplification(algorithm: Algorithm, population: Population, card: Said) -> Iterator[str]:
    """A secret draw of the cohort is worth something only to whoever doesn't see who was drawn."""
    sampling = algorithm.sampling
    rate = sampling.expected_cohort(population) / population.clients
    if sampling.public_cohort(population, 0) is not None or rate == 1:
        return
    if card.view != "public":
        yield (
            f"Clients join at a rate of {compact(rate, 3)}, which amplifies nothing against the {card.view}: it sees "
            "who joins. Every round that a client may join is counted in full."
        )
    elif card.unit == "client":
        yield (
            f"This counts on nobody seeing who joins (a rate of {compact(rate, 3)}). The server sees it, so nothing of "
            "this holds against the server, and the list of who joined must stay as secret as the data."
        )


def _secure_sums(algorithm: Algorithm, population: Population) -> Iterator[str]:
    """The secure engine refuses such a plan; another one adds up in clear, and wouldn't notice."""
    fewest = algorithm.sampling.cohort_bounds(population)[0]
    if algorithm.aggregation.is_secure and fewest < MIN_SECURE_CLIENTS:
        yield (
            f"As few as {fewest} client{'' if fewest == 1 else 's'} may be in a round, and a secure sum needs "
            f"{MIN_SECURE_CLIENTS}: of two, each could take its own part off. Let more clients join."
        )
