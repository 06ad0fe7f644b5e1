"""The promise of an experiment, the groups of clients it is made to, and the event that it is about."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic import field_validator

from discreet.algorithms import per_client, soundness
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.declarations import undeclared_parts
from discreet.algorithms.population import Population
from discreet.errors import InvalidInput, UnsoundCombination, Unsupported
from discreet.experiment.promise.released_rounds import ReleasedRound, compose_rounds
from discreet.part import PerClient, Positive, Probability, part
from discreet.privacy.events import Event
from discreet.privacy.ledger import Budget
from discreet.privacy.ledger.charges import compose_charges
from discreet.privacy.release import Person, Relation, Release, Unit, View, parse_view, relations_for
from discreet.privacy.wording import unit_name


@part
class Privacy:
    """The promise: the whole run reveals at most (epsilon, delta) about one `unit` to the viewer it protects `against`.

    Attributes:
        unit: Whose data is protected: "example", "client", or `Person(column=..., at_most=...)`, with
            `clients_at_most` if several clients may hold rows of one person.
        against: From whom: "server", who sees every message; "client" (or "clients"), another client, who sees sums;
            or "public", who only sees released models.
        epsilon: The largest ε. A list gives each client an epsilon of its own.
        delta: The δ of the guarantee, well below 1 over the number of units.

    Example:
        >>> Privacy(unit="example", against="server", epsilon=2.0, delta=1e-5)
    """

    unit: Unit
    against: View
    epsilon: PerClient[Positive]
    delta: Probability

    @field_validator("against", mode="before")
    @classmethod
    def _parse_against(cls, word: Any) -> Any:
        return parse_view(word)

    @property
    def largest_epsilon(self) -> float:
        """The largest ε among the clients."""
        return per_client.largest(self.epsilon)

    @property
    def person(self) -> Person | None:
        """The person whose rows the data must bound; None where the promise is for another unit."""
        return self.unit if isinstance(self.unit, Person) else None

    @property
    def clients_of_person(self) -> int:
        """The most clients that hold rows of one person; 1 where the promise is for another unit."""
        return 1 if self.person is None else self.person.clients_at_most


class ClientGroup(NamedTuple):
    """Clients for whom the same is promised and done, with single numbers throughout.

    `clients` is None if the group is everyone.
    """

    clients: tuple[int, ...] | None
    algorithm: Algorithm
    privacy: Privacy | None


class PromiseEvent(NamedTuple):
    """What a promise is about: the event that counts, the relation it is read under, and the budget that counts it."""

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
    """Return what the releases of one group of clients mean for the promise, by the ledger's own rules.

    The promise is read under the strongest relation that holds: for examples and persons, whose number is public, a
    replacement; for clients one more or less, or a replacement where a cohort has a fixed size.

    Raises:
        Unsupported: The releases say nothing about the promised unit and viewer.
        InvalidInput: The algorithm releases nothing, so it protects nobody.
        UnsoundCombination: Clients take turns, and several of them may hold rows of one person.
    """
    if privacy.clients_of_person > 1 and algorithm.sampling.rounds_joined(population, rounds) < rounds:
        raise UnsoundCombination(
            f"Clients take turns, and up to {privacy.clients_of_person} clients may hold rows of one person: the "
            "rounds of no single client would bound what is learned about the person.",
            fix='Use sampling = { kind = "everyone" }, or promise for a person in one client.',
        )
    composed = compose_rounds(algorithm, rounds, population, released)
    overlapping = privacy.unit != "client" and population.max_multiplicity > 1
    # protecting one client does not protect an example that several clients hold
    releases = [release for release in composed if not (overlapping and release.unit == "client")]
    for relation in relations_for(privacy.unit):
        budget = Budget(
            unit=privacy.unit,
            relation=relation,
            view=privacy.against,
            epsilon=privacy.largest_epsilon,
            delta=privacy.delta,
        )
        try:
            event, priced_under = compose_charges(budget, releases)
        except Unsupported:
            continue
        return PromiseEvent(event, priced_under, budget)
    raise _unsupported_promise(algorithm, privacy, composed)


def client_groups(algorithm: Algorithm, privacy: Privacy | None, population: Population) -> list[ClientGroup]:
    """Group the clients that are treated alike: one group, unless clients have numbers or epsilons of their own."""
    own = () if privacy is None or not isinstance(privacy.epsilon, tuple) else privacy.epsilon
    if own and len(own) != population.clients:
        raise InvalidInput(
            f"privacy.epsilon must name one number for each of {population.clients} clients, and got {len(own)}.",
            fix="Give as many as there are clients, or one for all.",
        )
    if own and algorithm.mechanism.is_private and not algorithm.mechanism.is_local:
        raise per_client.single_noise_error()
    groups = []
    for clients, alike in algorithm.client_groups(population):
        if privacy is None or not own:
            groups.append(ClientGroup(clients, alike, privacy))
            continue
        members = range(population.clients) if clients is None else clients
        for epsilon in dict.fromkeys(own[client] for client in members):
            group = tuple(client for client in members if own[client] == epsilon)
            groups.append(ClientGroup(group, alike, replace(privacy, epsilon=epsilon)))
    if population.max_multiplicity > 1 and len(groups) > 1:
        raise soundness.overlap_error(population.max_multiplicity, "the same example")
    if privacy is not None and privacy.clients_of_person > 1 and len(groups) > 1:
        raise soundness.overlap_error(privacy.clients_of_person, "rows of one person")
    return groups


def _unsupported_promise(algorithm: Algorithm, privacy: Privacy, releases: Sequence[Release]) -> InvalidInput:
    asked = f"one {unit_name(privacy.unit)} against the {privacy.against}"
    if undeclared := undeclared_parts(algorithm):
        contract = undeclared[0].contract
        return InvalidInput(
            f"The promise is about {asked}, and {undeclared[0].kind} doesn't declare what it releases.",
            fix=f"Declare {', '.join(contract.undeclared)} in it; or leave [privacy] out for a run without a card.",
        )
    offered = [f"one {unit_name(release.unit)} against the {release.view}" for release in releases]
    if not offered:
        return InvalidInput(
            f"The promise is about {asked}, and this algorithm adds no noise, so it protects nobody.",
            fix='Use recipe = "pfl" or "dp_fedavg", or leave [privacy] out for a run without privacy.',
        )
    trusted = privacy.against == "server" and all(release.view == "public" for release in releases)
    why = " The server adds the noise itself, so it is trusted." if trusted else ""
    return Unsupported(
        f"The promise is about {asked}, and this algorithm protects {' and '.join(dict.fromkeys(offered))}.{why}",
        fix=f"Promise {_toml_form(releases[0])}, or use an algorithm that protects {asked}.",
    )


def _toml_form(release: Release) -> str:
    return f'unit = "{unit_name(release.unit)}" and against = "{release.view}"'
