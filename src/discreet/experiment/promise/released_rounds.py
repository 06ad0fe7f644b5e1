"""What the rounds of a run really released, as one release for each that was planned."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.privacy.events import NOTHING, Composed, Event, Repeated
from discreet.privacy.release import Release


class ReleasedRound(NamedTuple):
    """A round of which something was released, and how many brought their noise; None: as few as were planned for."""

    round: int
    noise_shares: int | None


def parse_round(line: Mapping[str, Any]) -> ReleasedRound | None:
    """What a round's line in rounds.jsonl says; None of one that was lost before anybody revealed anything."""
    if "lost" not in line:
        return ReleasedRound(line["round"] - 1, line["clients"])
    return ReleasedRound(line["round"] - 1, None) if line.get("revealed") else None


def parse_rounds(lines: Iterable[Mapping[str, Any]], completed: int) -> list[ReleasedRound]:
    """The same of the first `completed` rounds; one whose line is missing counts as it was planned."""
    told = {line["round"] - 1: parse_round(line) for line in lines}
    found = (told.get(round, ReleasedRound(round, None)) for round in range(completed))
    return [each for each in found if each is not None]


def compose_rounds(
    algorithm: Algorithm, rounds: int, population: Population, released: Sequence[ReleasedRound] | None = None
) -> list[Release]:
    """What so many rounds reveal of the one who joins most often: as planned, or of those that were `released`.

    Guarantee: never less than was released. Where nobody joins every round, the dearest rounds count, those with the
    fewest shares of noise; and where a round lacks something that was planned, the plan stands.
    """
    planned = algorithm.planned_releases(rounds, population)
    if released is None:
        return planned
    most = algorithm.sampling.rounds_joined(population, rounds)
    dearest = sorted(released, key=lambda each: (each.noise_shares is not None, each.noise_shares or 0))[:most]
    happened = _count_releases(algorithm, population, dearest)
    if len(dearest) == most and happened == _count_releases(
        algorithm, population, [ReleasedRound(each.round, None) for each in dearest]
    ):
        return planned
    return [replace(each, event=_compose_event(each, happened)) for each in planned]


def _count_releases(
    algorithm: Algorithm, population: Population, released: Iterable[ReleasedRound]
) -> Counter[tuple[Release, ...]]:
    """The releases of single rounds, and how often each: rounds that are alike are asked for once."""
    changes = algorithm.trainer.has_uneven_rounds
    alike = Counter(each if changes else ReleasedRound(0, each.noise_shares) for each in released)
    found: Counter[tuple[Release, ...]] = Counter()
    for (round, joined), count in alike.items():
        found[tuple(algorithm.releases(population, round, contributors=joined))] += count
    return found


def _compose_event(planned: Release, happened: Mapping[tuple[Release, ...], int]) -> Event:
    """What the rounds made of one release; of its kind a round has one, or else the plan stands."""
    events = []
    for releases, count in happened.items():
        same = [each.event for each in releases if _release_kind(each) == _release_kind(planned)]
        if len(same) != 1:
            return planned.event
        events.append(Repeated(count=count, event=same[0]))
    if not events:
        return NOTHING
    return events[0] if len(events) == 1 else Composed(events=tuple(events))


def _release_kind(release: Release) -> tuple[Any, ...]:
    return release.unit, release.relation, release.view, release.clients
