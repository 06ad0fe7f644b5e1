"""What a round with the experiment's own parts costs an owner's budgets: at least the price in policy.toml."""

from collections.abc import Sequence
from dataclasses import replace

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.declarations import client_parts
from discreet.algorithms.population import Population
from discreet.deploy.policy import Policy
from discreet.errors import Unsupported
from discreet.privacy import accountant
from discreet.privacy.events import Composed, Event, repeat_event
from discreet.privacy.groups import clients_event
from discreet.privacy.ledger import Budget
from discreet.privacy.ledger.charges import compose_charges
from discreet.privacy.release import Person, Release


def price_releases(
    policy: Policy, algorithm: Algorithm, population: Population, declared: Sequence[Release], rounds: int = 1
) -> tuple[Release, ...]:
    """Return what these rounds cost: for each budget the owner's price, or what is declared where that costs more.

    Without parts of the experiment's own it is what the algorithm declares.

    Raises:
        PolicyRefusal: The policy doesn't list one of the experiment's own parts.
    """
    policy.allow_parts(algorithm)
    digests = {own.sha256 for own in client_parts(algorithm)}
    prices = tuple(accepted.price for accepted in policy.parts if accepted.sha256 in digests)
    if not prices:
        return tuple(declared)
    return tuple(_price_release(budget, prices, population, declared, rounds) for budget in policy.budgets)


def _price_release(
    budget: Budget, prices: tuple[Event, ...], population: Population, declared: Sequence[Release], rounds: int
) -> Release:
    # An example or person that m clients hold is used by each of them, and this client's ledger counts for all.
    count = rounds * (1 if budget.unit == "client" else population.max_multiplicity)
    event = prices[0] if len(prices) == 1 else Composed(events=prices)
    separate = bool(declared) and all(release.separate for release in declared)
    unit = budget.unit
    clients = unit.clients_at_most if isinstance(unit, Person) else 1
    price = clients_event(repeat_event(event, count), clients, separate=separate)
    priced = Release(unit=budget.unit, relation=budget.relation, view=budget.view, event=price)
    try:
        event, relation = compose_charges(budget, declared)
    except Unsupported:
        return priced
    floor = accountant.epsilon(price, budget.delta, budget.relation)
    if accountant.epsilon(event, budget.delta, relation) <= floor:
        return priced
    adaptive = any(release.adaptive for release in declared)
    if relation != budget.relation:  # a change of an example or person that is priced as another update of its client
        if isinstance(unit, Person):  # the ledger itself counts all clients of a person
            event, _ = compose_charges(replace(budget, unit=replace(unit, clients_at_most=1)), declared)
        changed = replace(priced, unit="client", relation="replace", event=event, adaptive=adaptive)
        return replace(changed, separate=separate)
    return replace(priced, event=event, adaptive=adaptive)
