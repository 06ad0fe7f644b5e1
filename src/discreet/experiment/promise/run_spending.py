"""What a run spends of its promise: the ε of its rounds, the rounds that clients can pay for, and the run's budgets."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.errors import Unsupported
from discreet.experiment.promise.promise import ClientGroup, Privacy, client_groups, promise_event
from discreet.experiment.promise.released_rounds import ReleasedRound, compose_rounds
from discreet.privacy import accountant
from discreet.privacy.ledger import Budget
from discreet.privacy.release import Release, View

LEAST_EPSILON = 1e-9  # the least epsilon of a budget: a run may have so much noise that it spends nothing
DEFAULT_DELTA = 1e-5  # for guarantees of a run that promises nothing


def spent_epsilon(
    algorithm: Algorithm,
    privacy: Privacy | None,
    rounds: int,
    population: Population,
    round_limits: Mapping[int, int] = MappingProxyType({}),
    released: Sequence[ReleasedRound] | None = None,
) -> float | None:
    """Return the ε spent by the first `rounds` rounds, in the promise's terms. None for a run without privacy.

    Where groups of clients differ, it is the largest. Without a promise, it is the ε of the first release.

    Args:
        round_limits: Clients that leave early, and the number of rounds each one takes part in.
        released: The rounds that took place. None counts every round as planned.
    """
    spent = []
    for group in client_groups(algorithm, privacy, population):
        joined = rounds_joined(group, rounds, round_limits)
        spent.append(group_epsilon(group, joined, population, first_rounds(released, joined)))
    return max((epsilon for epsilon in spent if epsilon is not None), default=None)


def group_epsilon(
    group: ClientGroup, rounds: int, population: Population, released: Sequence[ReleasedRound] | None = None
) -> float | None:
    """Return the ε that `rounds` rounds cost these clients. None if nothing is released."""
    if rounds == 0:
        return 0.0
    if group.privacy is not None:
        about = promise_event(group.privacy, group.algorithm, rounds, population, released)
        return accountant.epsilon(about.event, group.privacy.delta, about.relation)
    releases = compose_rounds(group.algorithm, rounds, population, released)
    return accountant.epsilon(releases[0].event, DEFAULT_DELTA, releases[0].relation) if releases else None


def affordable_rounds(group: ClientGroup, rounds: int, population: Population) -> int:
    """Return how many of the rounds the promise to these clients pays for."""
    assert group.privacy is not None
    budget = group.privacy.largest_epsilon

    def is_affordable(count: int) -> bool:
        spent = group_epsilon(group, count, population)
        return spent is not None and spent <= budget

    return most_rounds(rounds, is_affordable)


def most_rounds(rounds: int, is_affordable: Callable[[int], bool]) -> int:
    """Return the most of these rounds that are affordable, by bisection: fewer never cost more."""
    if is_affordable(rounds):
        return rounds
    low, high = 0, rounds
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_affordable(middle) else (low, middle)
    return low


def round_limits(algorithm: Algorithm, privacy: Privacy | None, rounds: int, population: Population) -> dict[int, int]:
    """Return the clients whose budget is spent before the last round, and how many rounds each can pay for.

    Both follow from public numbers alone, so that leaving reveals nothing.
    """
    if privacy is None:
        return {}
    limits: dict[int, int] = {}
    groups = client_groups(algorithm, privacy, population)
    for group in groups if len(groups) > 1 else ():
        if group.clients and (affordable := affordable_rounds(group, rounds, population)) < rounds:
            limits |= dict.fromkeys(group.clients, affordable)
    return limits


def rounds_joined(group: ClientGroup, rounds: int, round_limits: Mapping[int, int]) -> int:
    """Return in how many of the first `rounds` rounds these clients take part."""
    return min(rounds, round_limits.get(group.clients[0], rounds)) if group.clients else rounds


def first_rounds(released: Sequence[ReleasedRound] | None, rounds: int) -> list[ReleasedRound] | None:
    """Return those of the released rounds that are among the first `rounds`. None stays None."""
    return None if released is None else [record for record in released if record.round < rounds]


def run_budgets(algorithm: Algorithm, privacy: Privacy | None, rounds: int, population: Population) -> list[Budget]:
    """Return what the run's own ledger allows: the promise, or exactly what is planned if nothing is promised."""
    if privacy is not None:
        budgets = [
            replace(promise_event(group.privacy, group.algorithm, rounds, population).budget, clients=group.clients)
            for group in client_groups(algorithm, privacy, population)
            if group.privacy is not None
        ]
        are_equal = len({replace(budget, clients=None) for budget in budgets}) == 1
        return [replace(budgets[0], clients=None)] if are_equal else budgets
    return [
        Budget(
            unit=release.unit,
            relation=release.relation,
            view=release.view,
            epsilon=max(LEAST_EPSILON, accountant.epsilon(release.event, DEFAULT_DELTA, release.relation)),
            delta=DEFAULT_DELTA,
            clients=release.clients,
        )
        for release in algorithm.planned_releases(rounds, population)
    ]


def certifiable_releases(
    group: ClientGroup, rounds: int, population: Population, released: Sequence[ReleasedRound] | None = None
) -> list[Release]:
    """Return every release that can be certified for these clients after `rounds` rounds, the promised one first.

    A client-level release also protects one example: any change to the example replaces the client's update by another
    of at most the same norm, so it is priced as a replacement. Where rows are left out to bound those of a person,
    leaving out one example or client may bring other rows in, so nothing is certified for those units, and the person
    is certified against every onlooker that the algorithm protects from.
    """
    if rounds == 0:
        return []
    composed = compose_rounds(group.algorithm, rounds, population, released)
    covered = {(release.unit, release.view) for release in composed}
    examples = [
        replace(release, unit="example", relation="replace")
        for release in composed
        if release.unit == "client"
        and not {("example", release.view), ("example", "server")} & covered
        and population.max_multiplicity == 1
    ]
    releases = [replace(release, clients=group.clients) for release in [*composed, *examples]]
    if group.privacy is None:
        return releases
    promised = (group.privacy.unit, group.privacy.against)
    if not any((release.unit, release.view) == promised for release in releases):
        releases.append(_release_about(group.privacy, group, rounds, population, released))
    if group.privacy.person is not None:
        releases = [release for release in releases if release.unit == group.privacy.unit]
        releases += _releases_about_person(group, rounds, population, released, {each.view for each in releases})
    return sorted(releases, key=lambda release: (release.unit, release.view) != promised)


def _release_about(
    privacy: Privacy,
    group: ClientGroup,
    rounds: int,
    population: Population,
    released: Sequence[ReleasedRound] | None,
) -> Release:
    about = promise_event(privacy, group.algorithm, rounds, population, released)
    return Release(
        unit=privacy.unit, relation=about.relation, view=privacy.against, event=about.event, clients=group.clients
    )


def _releases_about_person(
    group: ClientGroup,
    rounds: int,
    population: Population,
    released: Sequence[ReleasedRound] | None,
    known: Collection[View],
) -> Iterator[Release]:
    """Yield what the other onlookers learn about the promised person, each counted as a promise against them would be.

    Args:
        known: The onlookers for whom a release is there already.
    """
    assert group.privacy is not None
    composed = compose_rounds(group.algorithm, rounds, population, released)
    for view in dict.fromkeys(release.view for release in composed):
        if view not in known:
            with contextlib.suppress(Unsupported):  # the algorithm protects nobody from this onlooker
                yield _release_about(replace(group.privacy, against=view), group, rounds, population, released)
