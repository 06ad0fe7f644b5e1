"""The promise of an experiment: which release keeps it, how much noise that takes, and what may be certified."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from discreet.algorithms import Algorithm
from discreet.errors import BudgetRefused, InvalidInput, Unsupported
from discreet.part import Positive, Probability, part
from discreet.population import Population
from discreet.privacy import accountant, calibration
from discreet.privacy.calibration import EpsilonTarget
from discreet.privacy.events import Composed, Event
from discreet.privacy.ledger import Budget
from discreet.privacy.ledger.charges import charges
from discreet.privacy.release import Relation, Release, Unit, View
from discreet.privacy.wording import brief, name_of

DELTA = 1e-5  # where nothing is promised and a guarantee still needs one


@part
class Privacy:
    """Nobody `against` whom it is given learns more than (epsilon, delta) about one `unit` from the whole run."""

    unit: Unit
    against: View
    epsilon: Positive
    delta: Probability


class Reading(NamedTuple):
    """The releases in the terms of a promise: what counts, under which relation, and the budget that says so."""

    event: Event
    relation: Relation
    budget: Budget


def reading(privacy: Privacy, algorithm: Algorithm, rounds: int, population: Population) -> Reading:
    """What the releases are worth for the promise, by the ledger's own rules; refused where they say nothing of it.

    A cohort of a fixed size protects against replacing one client; everything else against one more or less.
    """
    found = algorithm.over(rounds, population)
    overlapping = privacy.unit != "client" and population.max_multiplicity > 1
    # an example that lies in several clients is not protected by protecting any one of them
    releases = [each for each in found if not (overlapping and each.unit == "client")]
    relations: tuple[Relation, ...] = ("add_or_remove", "zero_out", "replace")
    for relation in relations:
        budget = Budget(
            unit=privacy.unit,
            relation=relation,
            view=privacy.against,
            epsilon=privacy.epsilon,
            delta=privacy.delta,
        )
        try:
            counted = charges(budget, releases)
        except Unsupported:
            continue
        event = counted[0].event if len(counted) == 1 else Composed(events=tuple(each.event for each in counted))
        return Reading(event, "replace" if any(each.relation == "replace" for each in counted) else relation, budget)
    raise _unserved(privacy, found)


def kept(algorithm: Algorithm, privacy: Privacy | None, rounds: int, population: Population) -> Algorithm:
    """The algorithm with all its noise: computed from the promise where it is open, checked where it is given."""
    algorithm = algorithm.fitted(population)
    is_open = open_noise(algorithm)
    if privacy is None:
        if is_open:
            raise InvalidInput(
                "The algorithm's noise is open, and nothing is promised that it could be computed from.",
                fix="Add a [privacy] table with unit, against, epsilon and delta, or give noise_multiplier.",
            )
        return algorithm
    target = EpsilonTarget(epsilon=privacy.epsilon, delta=privacy.delta)

    def at(noise: float) -> Reading:
        return reading(privacy, algorithm.with_noise(noise), rounds, population)

    first = at(1.0)
    if is_open and at(2.0).event == first.event:
        raise InvalidInput(
            "The promise is kept, or not, by noise that is given, and says nothing of the noise that is open.",
            fix="Give every noise_multiplier, or leave the one open that the promise is about.",
        )
    if is_open:
        return algorithm.with_noise(calibration.noise(lambda noise: at(noise).event, target, first.relation))
    _check(privacy, accountant.epsilon(first.event, privacy.delta, first.relation), rounds)
    return algorithm


def open_noise(algorithm: Algorithm) -> bool:
    """Whether some noise is still to be computed from the promise."""
    return algorithm.with_noise(1.0) != algorithm


def spent(algorithm: Algorithm, privacy: Privacy | None, rounds: int, population: Population) -> float | None:
    """The ε that so many rounds have cost, in the promise's terms; without one, of the first thing released."""
    if rounds == 0:
        return 0.0
    if privacy is not None:
        found = reading(privacy, algorithm, rounds, population)
        return accountant.epsilon(found.event, privacy.delta, found.relation)
    releases = algorithm.over(rounds, population)
    if not releases:
        return None
    return accountant.epsilon(releases[0].event, DELTA, releases[0].relation)


def budgets(algorithm: Algorithm, privacy: Privacy | None, rounds: int, population: Population) -> list[Budget]:
    """What the run's own ledger allows: the promise, or else exactly what is planned."""
    if privacy is not None:
        return [reading(privacy, algorithm, rounds, population).budget]
    return [
        Budget(
            unit=each.unit,
            relation=each.relation,
            view=each.view,
            epsilon=accountant.epsilon(each.event, DELTA, each.relation),
            delta=DELTA,
        )
        for each in algorithm.over(rounds, population)
    ]


def certifiable(algorithm: Algorithm, privacy: Privacy | None, rounds: int, population: Population) -> list[Release]:
    """All that may be said of so many rounds, what the promise is about first.

    A client-level release also says something of one example: any change to it turns the client's update into
    another of at most the same norm, so it is priced as a replacement.
    """
    if rounds == 0:
        return []
    found = algorithm.over(rounds, population)
    known = {(each.unit, each.view) for each in found}
    examples = [
        replace(each, unit="example", relation="replace")
        for each in found
        if each.unit == "client"
        and not {("example", each.view), ("example", "server")} & known
        and population.max_multiplicity == 1
    ]
    listed = [replace(each, clients=None) for each in [*found, *examples]]
    if privacy is None:
        return listed
    promised = (privacy.unit, privacy.against)
    if not any((each.unit, each.view) == promised for each in listed):
        about = reading(privacy, algorithm, rounds, population)
        listed.append(Release(unit=privacy.unit, relation=about.relation, view=privacy.against, event=about.event))
    return sorted(listed, key=lambda each: (each.unit, each.view) != promised)


def _check(privacy: Privacy, epsilon: float, rounds: int) -> None:
    if not epsilon <= privacy.epsilon:
        raise BudgetRefused(
            f"The noise that is given spends epsilon {brief(epsilon, 4)} over {rounds} rounds at delta "
            f"{brief(privacy.delta)}, and {brief(privacy.epsilon)} is promised.",
            fix="Leave noise_multiplier out, and it is computed from the promise; or promise more.",
        )


def _unserved(privacy: Privacy, releases: Sequence[Release]) -> InvalidInput:
    asked = f"one {name_of(privacy.unit)} against the {privacy.against}"
    offered = [f"one {name_of(each.unit)} against the {each.view}" for each in releases]
    if not offered:
        return InvalidInput(
            f"The promise is about {asked}, and this algorithm adds no noise, so it protects nobody.",
            fix='Use recipe = "pfl" or "dp_fedavg", or leave [privacy] out for a run without privacy.',
        )
    trusted = privacy.against == "server" and all(each.view == "public" for each in releases)
    why = " The server adds the noise itself, so it is trusted." if trusted else ""
    return Unsupported(
        f"The promise is about {asked}, and this algorithm protects {' and '.join(dict.fromkeys(offered))}.{why}",
        fix=f"Promise {_form(releases[0])}, or use an algorithm that protects {asked}.",
    )


def _form(release: Release) -> str:
    return f'unit = "{name_of(release.unit)}" and against = "{release.view}"'
