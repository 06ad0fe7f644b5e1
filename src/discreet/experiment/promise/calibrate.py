"""How a promise is kept: how much noise that takes, how long each client can pay, and what may be certified."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.errors import BudgetRefused, InvalidInput
from discreet.experiment.promise.promise import Kind, Privacy, Reading, kinds, reading
from discreet.experiment.promise.released_rounds import Made, over
from discreet.privacy import accountant, calibration
from discreet.privacy.calibration import EpsilonTarget
from discreet.privacy.ledger import Budget
from discreet.privacy.release import Release, numbered
from discreet.privacy.wording import brief

LEAST = 1e-9  # that a budget may be: noise can be so much that nothing is spent
DELTA = 1e-5  # where nothing is promised and a guarantee still needs one


def kept(
    algorithm: Algorithm, privacy: Privacy | None, rounds: int, population: Population, dimension: int | None = None
) -> Algorithm:
    """The algorithm with all its numbers for these clients and a model of this dimension.

    The noise is computed from the promise where it is open, and checked where it is given.
    """
    algorithm = algorithm.fitted(population, dimension)
    is_open = open_noise(algorithm)
    if privacy is None:
        if is_open:
            raise InvalidInput(
                "The algorithm's noise is open, and nothing is promised that it could be computed from.",
                fix="Add a [privacy] table with unit, against, epsilon and delta, or give noise_multiplier.",
            )
        return algorithm
    every = kinds(algorithm, privacy, population)
    if is_open:
        noises = [_noise(kind, rounds, population) for kind in every]
        return _with_noises(algorithm, every, noises, population).fitted(population)
    lasting = [_lasts(kind, rounds, population) for kind in every]
    for lasts in (min(lasting), max(lasting)):
        if lasts == 0 or max(lasting) < rounds:
            raise _unaffordable(every[lasting.index(lasts)], lasts, rounds, population)
    return algorithm


def lasting(algorithm: Algorithm, privacy: Privacy | None, rounds: int, population: Population) -> dict[int, int]:
    """The clients whose budget is spent before the last round, and the rounds that each can pay for.

    They follow from public numbers alone, so that leaving tells nothing.
    """
    if privacy is None:
        return {}
    found: dict[int, int] = {}
    every = kinds(algorithm, privacy, population)
    for kind in every if len(every) > 1 else ():
        if kind.clients and (lasts := _lasts(kind, rounds, population)) < rounds:
            found |= dict.fromkeys(kind.clients, lasts)
    return found


def open_noise(algorithm: Algorithm) -> bool:
    """Whether some noise is still to be computed from the promise."""
    return algorithm.with_noise(1.0) != algorithm


def spent(
    algorithm: Algorithm,
    privacy: Privacy | None,
    rounds: int,
    population: Population,
    lasting: Mapping[int, int] = MappingProxyType({}),
    made: Sequence[Made] | None = None,
) -> float | None:
    """The ε that so many rounds have cost, in the promise's terms; without one, of the first thing released.

    Of several kinds of clients it is the largest; those in `lasting` left after so many rounds. `made` says what was
    released; without it, all that was planned.
    """
    every = kinds(algorithm, privacy, population)
    counts = [joined(kind, rounds, lasting) for kind in every]
    found = [_spent(kind, count, population, within(made, count)) for kind, count in zip(every, counts, strict=True)]
    known = [each for each in found if each is not None]
    return max(known) if known else None


def joined(kind: Kind, rounds: int, lasting: Mapping[int, int]) -> int:
    """Of so many rounds, those in which these clients were still there."""
    return min(rounds, lasting.get(kind.clients[0], rounds)) if kind.clients else rounds


def within(made: Sequence[Made] | None, rounds: int) -> list[Made] | None:
    """Of what was made, the first so many rounds."""
    return None if made is None else [each for each in made if each.round < rounds]


def budgets(algorithm: Algorithm, privacy: Privacy | None, rounds: int, population: Population) -> list[Budget]:
    """What the run's own ledger allows: the promise, or else exactly what is planned."""
    every = kinds(algorithm, privacy, population)
    if privacy is not None:
        found = [
            replace(reading(kind.privacy, kind.algorithm, rounds, population).budget, clients=kind.clients)
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
            epsilon=max(LEAST, accountant.epsilon(each.event, DELTA, each.relation)),
            delta=DELTA,
            clients=each.clients,
        )
        for each in algorithm.over(rounds, population)
    ]


def certifiable(kind: Kind, rounds: int, population: Population, made: Sequence[Made] | None = None) -> list[Release]:
    """All that may be said of so many rounds of these clients, what the promise is about first.

    A client-level release also says something of one example: any change to it turns the client's update into
    another of at most the same norm, so it is priced as a replacement. Where persons have few rows because others were
    left out, one example or client less may bring other rows in: nothing is said of those units.
    """
    if rounds == 0:
        return []
    found = over(kind.algorithm, rounds, population, made)
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
        about = reading(kind.privacy, kind.algorithm, rounds, population, made)
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


def _noise(kind: Kind, rounds: int, population: Population) -> float:
    """The least that keeps the promise for these clients."""
    privacy = kind.privacy
    assert privacy is not None

    def at(noise: float) -> Reading:
        return reading(privacy, kind.algorithm.with_noise(noise), rounds, population)

    first = at(1.0)
    if at(2.0).event == first.event:
        raise InvalidInput(
            "The promise is kept, or not, by noise that is given, and says nothing of the noise that is open.",
            fix="Give every noise_multiplier, or leave the one open that the promise is about.",
        )
    target = EpsilonTarget(epsilon=privacy.most, delta=privacy.delta)
    return calibration.noise(lambda noise: at(noise).event, target, first.relation)


def _with_noises(
    algorithm: Algorithm, every: Sequence[Kind], noises: Sequence[float], population: Population
) -> Algorithm:
    if len(every) == 1:
        return algorithm.with_noise(noises[0])
    own = {client: noise for kind, noise in zip(every, noises, strict=True) for client in kind.clients or ()}
    return algorithm.with_noise(tuple(own[client] for client in range(population.clients)))


def _spent(kind: Kind, rounds: int, population: Population, made: Sequence[Made] | None = None) -> float | None:
    if rounds == 0:
        return 0.0
    if kind.privacy is not None:
        found = reading(kind.privacy, kind.algorithm, rounds, population, made)
        return accountant.epsilon(found.event, kind.privacy.delta, found.relation)
    releases = over(kind.algorithm, rounds, population, made)
    return accountant.epsilon(releases[0].event, DELTA, releases[0].relation) if releases else None


def _lasts(kind: Kind, rounds: int, population: Population) -> int:
    """How many of the rounds these clients' promise affords."""
    assert kind.privacy is not None
    most = kind.privacy.most

    def fits(count: int) -> bool:
        spent = _spent(kind, count, population)
        return spent is not None and spent <= most

    if fits(rounds):
        return rounds
    low, high = 0, rounds
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _unaffordable(kind: Kind, lasts: int, rounds: int, population: Population) -> BudgetRefused:
    assert kind.privacy is not None
    epsilon = _spent(kind, rounds, population) or 0.0
    whose = "that is given" if kind.clients is None else f"given for {numbered(kind.clients)}"
    return BudgetRefused(
        f"The noise {whose} spends epsilon {brief(epsilon, 4)} over {rounds} rounds at delta "
        f"{brief(kind.privacy.delta)}, and {brief(kind.privacy.most)} is promised, which affords {lasts} rounds.",
        fix="Leave noise_multiplier out, and it is computed from the promise; or promise more.",
    )
