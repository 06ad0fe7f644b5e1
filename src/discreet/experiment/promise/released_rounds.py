"""Which rounds of a run released something, and what those rounds reveal together."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.privacy.events import NOTHING, Composed, Event, Repeated
from discreet.privacy.release import Release


class ReleasedRound(NamedTuple):
    """A round whose sum was released.

    Attributes:
        round: Its number, starting at 0.
        noise_shares: Clients that contributed noise. None if unknown: then the planned minimum is assumed.
    """

    round: int
    noise_shares: int | None


def parse_round(line: Mapping[str, Any]) -> ReleasedRound | None:
    """Read one line of rounds.jsonl. None if the round was lost before anything was revealed."""
    if "lost" not in line:
        return ReleasedRound(line["round"] - 1, line["clients"])
    return ReleasedRound(line["round"] - 1, None) if line.get("revealed") else None


def parse_rounds(lines: Iterable[Mapping[str, Any]], completed: int) -> list[ReleasedRound]:
    """Read the first `completed` rounds. A round without a line counts as planned."""
    parsed = {line["round"] - 1: parse_round(line) for line in lines}
    rounds = (parsed.get(round, ReleasedRound(round, None)) for round in range(completed))
    return [released for released in rounds if released is not None]


def compose_rounds(
    algorithm: Algorithm, rounds: int, population: Population, released: Sequence[ReleasedRound] | None = None
) -> list[Release]:
    """Compose what `rounds` rounds reveal about the client who joins most often.

    Args:
        released: The rounds that took place. None composes the plan.

    Guarantee: never less than what was released. If no client joins every round, the most expensive rounds are counted,
    those with the fewest noise shares. If a planned release is missing in a round, the plan is counted.
    """
    planned = algorithm.planned_releases(rounds, population)
    if released is None:
        return planned
    rounds_joined = algorithm.sampling.rounds_joined(population, rounds)
    most_expensive = sorted(released, key=partial(_by_cost, algorithm))[:rounds_joined]
    actual = _count_releases(algorithm, population, most_expensive)
    as_planned = [ReleasedRound(record.round, None) for record in most_expensive]
    if len(most_expensive) == rounds_joined and actual == _count_releases(algorithm, population, as_planned):
        return planned
    return [replace(release, event=_compose_event(release, actual)) for release in planned]


def _by_cost(algorithm: Algorithm, released: ReleasedRound) -> tuple[bool, bool, int]:
    """Order rounds by their noise, unknown numbers first. A first round that includes all clients' moments is first."""
    has_moments = algorithm.standardisation is not None and released.round == 0
    return not has_moments, released.noise_shares is not None, released.noise_shares or 0


def _count_releases(
    algorithm: Algorithm, population: Population, released: Iterable[ReleasedRound]
) -> Counter[tuple[Release, ...]]:
    """Count the releases of single rounds. Rounds that are alike are computed once."""
    is_changing, has_moments = algorithm.has_uneven_rounds(population), algorithm.standardisation is not None
    distinct = Counter(
        record if is_changing else ReleasedRound(min(record.round, 1) if has_moments else 0, record.noise_shares)
        for record in released
    )
    counts: Counter[tuple[Release, ...]] = Counter()
    for (round, noise_shares), count in distinct.items():
        counts[tuple(algorithm.releases(population, round, contributors=noise_shares))] += count
    return counts


def _compose_event(planned: Release, actual: Mapping[tuple[Release, ...], int]) -> Event:
    """Compose what the rounds released of one planned kind. The plan is counted where a round has not exactly one."""
    events = []
    for releases, count in actual.items():
        matching = [release.event for release in releases if _release_kind(release) == _release_kind(planned)]
        if len(matching) != 1:
            return planned.event
        events.append(Repeated(count=count, event=matching[0]))
    if not events:
        return NOTHING
    return events[0] if len(events) == 1 else Composed(events=tuple(events))


def _release_kind(release: Release) -> tuple[Any, ...]:
    return release.unit, release.relation, release.view, release.clients, release.separate
