"""The promise of an experiment, to whom it is made alike, and which release answers for it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from discreet.algorithms import per_client, soundness
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.mechanisms import LocalNoise
from discreet.algorithms.population import Population
from discreet.errors import InvalidInput, Unsupported
from discreet.experiment.promise.released_rounds import ReleasedRound, compose_rounds
from discreet.part import PerClient, Positive, Probability, part
from discreet.privacy.events import Composed, Event
from discreet.privacy.ledger import Budget
from discreet.privacy.ledger.charges import charges
from discreet.privacy.release import Person, Relation, Release, Unit, View, relations_for
from discreet.privacy.wording import unit_name


@part
class Privacy:
    """Nobody `against` whom it is given learns more than (epsilon, delta) about one `unit` from the whole run.

    Clients may ask for an epsilon of their own: a list names one for each.
    """

    unit: Unit
    against: View
    epsilon: PerClient[Positive]
    delta: Probability

    @property
    def largest_epsilon(self) -> float:
        return per_client.largest(self.epsilon)

    @property
    def person(self) -> Person | None:
        """The person whose rows the data must bound; None where the promise is for another unit."""
        return self.unit if isinstance(self.unit, Person) else None

    def scale_epsilon(self, factor: float) -> "Privacy":
        """The same promise at so many times the epsilon, for every client."""
        own = self.epsilon
        return replace(self, epsilon=tuple(each * factor for each in own) if isinstance(own, tuple) else own * factor)


class ClientGroup(NamedTuple):
    """Clients for whom the same is promised and done (None: everyone), with single numbers throughout."""

    clients: tuple[int, ...] | None
    algorithm: Algorithm
    privacy: Privacy | None


class PromiseEvent(NamedTuple):
    """The releases in the terms of a promise: what counts, under which relation, and the budget that says so."""

    event: Event
    relation: Relation
    budget: Budget


def promise_event(
    privacy: Privacy,
    algorithm: Algorithm,
    rounds: int,
    population: Population,
    released: Sequence[ReleasedRound] | None = None,
) -> PromiseEvent:
    """What the releases of clients who are alike are worth for the promise, by the ledger's own rules; refused where
    they say nothing of it.

    It is read under the strongest relation that holds: of examples and persons, whose number is public, what stood in
    their place; of clients one more or less, or a replacement where a cohort has a fixed size.
    """
    found = compose_rounds(algorithm, rounds, population, released)
    overlapping = privacy.unit != "client" and population.max_multiplicity > 1
    # an example that lies in several clients is not protected by protecting any one of them
    releases = [each for each in found if not (overlapping and each.unit == "client")]
    for relation in relations_for(privacy.unit):
        budget = Budget(
            unit=privacy.unit,
            relation=relation,
            view=privacy.against,
            epsilon=privacy.largest_epsilon,
            delta=privacy.delta,
        )
        try:
            counted = charges(budget, releases)
        except Unsupported:
            continue
        event = counted[0].event if len(counted) == 1 else Composed(events=tuple(each.event for each in counted))
        return PromiseEvent(
            event, "replace" if any(each.relation == "replace" for each in counted) else relation, budget
        )
    raise _unsupported_promise(privacy, found)


def client_groups(algorithm: Algorithm, privacy: Privacy | None, population: Population) -> list[ClientGroup]:
    """As a rule one, of everyone; more where clients have numbers of their own, or ask for an epsilon of their own."""
    own = () if privacy is None or not isinstance(privacy.epsilon, tuple) else privacy.epsilon
    if own and len(own) != population.clients:
        raise InvalidInput(
            f"privacy.epsilon must name one number for each of {population.clients} clients, and got {len(own)}.",
            fix="Give as many as there are clients, or one for all.",
        )
    if own and algorithm.mechanism.is_private and not isinstance(algorithm.mechanism, LocalNoise):
        raise per_client.single_noise_error()
    found = []
    for clients, alike in algorithm.client_groups(population):
        if privacy is None or not own:
            found.append(ClientGroup(clients, alike, privacy))
            continue
        members = range(population.clients) if clients is None else clients
        for epsilon in dict.fromkeys(own[client] for client in members):
            group = tuple(client for client in members if own[client] == epsilon)
            found.append(ClientGroup(group, alike, replace(privacy, epsilon=epsilon)))
    if population.max_multiplicity > 1 and len(found) > 1:
        raise soundness.overlap_error(population)
    return found


def _unsupported_promise(privacy: Privacy, releases: Sequence[Release]) -> InvalidInput:
    asked = f"one {unit_name(privacy.unit)} against the {privacy.against}"
    offered = [f"one {unit_name(each.unit)} against the {each.view}" for each in releases]
    if not offered:
        return InvalidInput(
            f"The promise is about {asked}, and this algorithm adds no noise, so it protects nobody.",
            fix='Use recipe = "pfl" or "dp_fedavg", or leave [privacy] out for a run without privacy.',
        )
    trusted = privacy.against == "server" and all(each.view == "public" for each in releases)
    why = " The server adds the noise itself, so it is trusted." if trusted else ""
    return Unsupported(
        f"The promise is about {asked}, and this algorithm protects {' and '.join(dict.fromkeys(offered))}.{why}",
        fix=f"Promise {_toml_form(releases[0])}, or use an algorithm that protects {asked}.",
    )


def _toml_form(release: Release) -> str:
    return f'unit = "{unit_name(release.unit)}" and against = "{release.view}"'
