"""How a promise is kept: how much noise that takes, how long each client can pay, and what may be certified."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.errors import BudgetRefused, InvalidInput
from discreet.experiment.promise.promise import ClientGroup, Privacy, PromiseEvent, client_groups, promise_event
from discreet.experiment.promise.released_rounds import ReleasedRound, compose_rounds
from discreet.privacy import accountant, calibration
from discreet.privacy.calibration import EpsilonTarget
from discreet.privacy.ledger import Budget
from discreet.privacy.release import Release, describe_clients
from discreet.privacy.wording import compact

LEAST_EPSILON = 1e-9  # that a budget may be: noise can be so much that nothing is spent
DEFAULT_DELTA = 1e-5  # where nothing is promised and a guarantee still needs one


def calibrate_noise(
    algorithm: Algorithm, privacy: Privacy | None, rounds: int, population: Population, dimension: int | None = None
) -> Algorithm:
    """The algorithm with all its numbers for these clients and a model of this dimension.

    The noise is computed from the promise where it is open, and checked where it is given.
    """
    algorithm = algorithm.for_population(population, dimension)
    is_open = has_open_noise(algorithm)
    if privacy is None:
        if is_open:
            raise InvalidInput(
                "The algorithm's noise is open, and nothing is promised that it could be computed from.",
                fix="Add a [privacy] table with unit, against, epsilon and delta, or give noise_multiplier.",
            )
        return algorithm
    every = client_groups(algorithm, privacy, population)
    if is_open:
        noises = [_least_noise(kind, rounds, population) for kind in every]
        return _set_noise(algorithm, every, noises, population).for_population(population)
    lasting = [_affordable_rounds(kind, rounds, population) for kind in every]
    for lasts in (min(lasting), max(lasting)):
        if lasts == 0 or max(lasting) < rounds:
            raise _unaffordable(every[lasting.index(lasts)], lasts, rounds, population)
    return algorithm


def round_limits(algorithm: Algorithm, privacy: Privacy | None, rounds: int, population: Population) -> dict[int, int]:
    """The clients whose budget is spent before the last round, and the rounds that each can pay for.

    They follow from public numbers alone, so that leaving tells nothing.
    """
    if privacy is None:
        return {}
    found: dict[int, int] = {}
    every = client_groups(algorithm, privacy, population)
    for kind in every if len(every) > 1 else ():
        if kind.clients and (lasts := _affordable_rounds(kind, rounds, population)) < rounds:
            found |= dict.fromkeys(kind.clients, lasts)
    return found


def has_open_noise(algorithm: Algorithm) -> bool:
    """Whether some noise is still to be computed from the promise."""
    return algorithm.with_noise(1.0) != algorithm


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
    every = client_groups(algorithm, privacy, population)
    counts = [rounds_joined(kind, rounds, round_limits) for kind in every]
    found = [
        _group_epsilon(kind, count, population, first_rounds(released, count))
        for kind, count in zip(every, counts, strict=True)
    ]
    known = [each for each in found if each is not None]
    return max(known) if known else None


def rounds_joined(kind: ClientGroup, rounds: int, round_limits: Mapping[int, int]) -> int:
    """Of so many rounds, those in which these clients were still there."""
    return min(rounds, round_limits.get(kind.clients[0], rounds)) if kind.clients else rounds


def first_rounds(released: Sequence[ReleasedRound] | None, rounds: int) -> list[ReleasedRound] | None:
    """Of what was released, the first so many rounds."""
    return None if released is None else [each for each in released if each.round < rounds]


def run_budgets(algorithm: Algorithm, privacy: Privacy | None, rounds: int, population: Population) -> list[Budget]:
    """What the run's own ledger allows: the promise, or else exactly what is planned."""
    every = client_groups(algorithm, privacy, population)
    if privacy is not None:
        found = [
            replace(promise_event(kind.privacy, kind.algorithm, rounds, population).budget, clients=kind.clients)
            for kind in every
            if kind.privacy is not None
        ]
        alike = len({replace(each, clients=None) for each in found}) == 1
        return [replace(found[0], clients=None)] if alike else found
    return [
        Budget(
            unit=each.unit,
            relation=each.relation,
            view=each.view,
            epsilon=max(LEAST_EPSILON, accountant.epsilon(each.event, DEFAULT_DELTA, each.relation)),
            delta=DEFAULT_DELTA,
            clients=each.clients,
        )
        for each in algorithm.planned_releases(rounds, population)
    ]


def certifiable_releases(
    kind: ClientGroup, rounds: int, population: Population, released: Sequence[ReleasedRound] | None = None
) -> list[Release]:
    """All that may be said of so many rounds of these clients, what the promise is about first.

    A client-level release also says something of one example: any change to it turns the client's update into
    another of at most the same norm, so it is priced as a replacement. Where persons have few rows because others were
    left out, one example or client less may bring other rows in: nothing is said of those units.
    """
    if rounds == 0:
        return []
    found = compose_rounds(kind.algorithm, rounds, population, released)
    known = {(each.unit, each.view) for each in found}
    examples = [
        replace(each, unit="example", relation="replace")
        for each in found
        if each.unit == "client"
        and not {("example", each.view), ("example", "server")} & known
        and population.max_multiplicity == 1
    ]
    listed = [replace(each, clients=kind.clients) for each in [*found, *examples]]
    if kind.privacy is None:
        return listed
    promised = (kind.privacy.unit, kind.privacy.against)
    if not any((each.unit, each.view) == promised for each in listed):
        about = promise_event(kind.privacy, kind.algorithm, rounds, population, released)
        listed.append(
            Release(
                unit=kind.privacy.unit,
                relation=about.relation,
                view=kind.privacy.against,
                event=about.event,
                clients=kind.clients,
            )
        )
    if kind.privacy.person is not None:
        listed = [each for each in listed if each.unit == kind.privacy.unit]
    return sorted(listed, key=lambda each: (each.unit, each.view) != promised)


def _least_noise(kind: ClientGroup, rounds: int, population: Population) -> float:
    """The least that keeps the promise for these clients."""
    privacy = kind.privacy
    assert privacy is not None

    def at(noise: float) -> PromiseEvent:
        return promise_event(privacy, kind.algorithm.with_noise(noise), rounds, population)

    first = at(1.0)
    if at(2.0).event == first.event:
        raise InvalidInput(
            "The promise is kept, or not, by noise that is given, and says nothing of the noise that is open.",
            fix="Give every noise_multiplier, or leave the one open that the promise is about.",
        )
    target = EpsilonTarget(epsilon=privacy.largest_epsilon, delta=privacy.delta)
    return calibration.calibrate_noise(lambda noise: at(noise).event, target, first.relation)


def _set_noise(
    algorithm: Algorithm, every: Sequence[ClientGroup], noises: Sequence[float], population: Population
) -> Algorithm:
    if len(every) == 1:
        return algorithm.with_noise(noises[0])
    own = {client: noise for kind, noise in zip(every, noises, strict=True) for client in kind.clients or ()}
    return algorithm.with_noise(tuple(own[client] for client in range(population.clients)))


def _group_epsilon(
    kind: ClientGroup, rounds: int, population: Population, released: Sequence[ReleasedRound] | None = None
) -> float | None:
    if rounds == 0:
        return 0.0
    if kind.privacy is not None:
        found = promise_event(kind.privacy, kind.algorithm, rounds, population, released)
        return accountant.epsilon(found.event, kind.privacy.delta, found.relation)
    releases = compose_rounds(kind.algorithm, rounds, population, released)
    return accountant.epsilon(releases[0].event, DEFAULT_DELTA, releases[0].relation) if releases else None


def _affordable_rounds(kind: ClientGroup, rounds: int, population: Population) -> int:
    """How many of the rounds these clients' promise affords."""
    assert kind.privacy is not None
    most = kind.privacy.largest_epsilon

    def fits(count: int) -> bool:
        spent = _group_epsilon(kind, count, population)
        return spent is not None and spent <= most

    if fits(rounds):
        return rounds
    low, high = 0, rounds
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _unaffordable(kind: ClientGroup, lasts: int, rounds: int, population: Population) -> BudgetRefused:
    assert kind.privacy is not None
    epsilon = _group_epsilon(kind, rounds, population) or 0.0
    whose = "that is given" if kind.clients is None else f"given for {describe_clients(kind.clients)}"
    return BudgetRefused(
        f"The noise {whose} spends epsilon {compact(epsilon, 4)} over {rounds} rounds at delta "
        f"{compact(kind.privacy.delta)}, and {compact(kind.privacy.largest_epsilon)} is promised, which affords "
        f"{lasts} rounds.",
        fix="Leave noise_multiplier out, and it is computed from the promise; or promise more.",
    )
