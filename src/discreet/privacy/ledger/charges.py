"""Which releases count against a budget, and what each costs in the budget's own unit and relation."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from discreet.errors import Unsupported
from discreet.privacy.events import Composed, Event, SampledWithoutReplacement, noisy_steps
from discreet.privacy.groups import clients_event, person_event
from discreet.privacy.ledger.entries import Budget
from discreet.privacy.release import Person, Relation, Release, Unit, View

# A guarantee against the server also holds against the public, which sees less. So does one against another client,
# which sees the released models and its own noise. No other view follows from another: a server may see each update,
# and another client may know a part of the noise.
ENOUGH_FOR: dict[View, tuple[View, ...]] = {
    "public": ("public", "server", "client"),
    "server": ("server",),
    "client": ("client",),
}


class Charge(NamedTuple):
    """An event that a budget pays for, under the relation it is priced by. `clients` is None for every client."""

    clients: tuple[int, ...] | None
    event: Event
    relation: Relation


Conversion: TypeAlias = Callable[[Release, Budget], Charge]


def charges(budget: Budget, releases: Sequence[Release]) -> list[Charge]:
    """Return what one reservation costs this budget.

    The releases of one reservation with the same view and unit are together all that this view sees, priced for
    that unit. So a budget reads one such set: its own if there is one, else one that implies it.

    Raises:
        Unsupported: No set of releases bounds what the budget covers.
    """
    refusals = []
    for view in ENOUGH_FOR[budget.view]:
        for unit, convert in _readings(budget.unit):
            named = [release for release in releases if release.view == view and release.unit == unit]
            try:
                if named:
                    return [_check_relation(convert(release, budget), budget) for release in named]
            except Unsupported as refusal:
                refusals.append(refusal)
    raise (
        refusals[0]
        if refusals
        else Unsupported(
            f"The releases say nothing about what a budget covers ({budget}); "
            f"they are for {_describe_releases(releases)}.",
            fix="Use an algorithm that protects this unit from this view, or a ledger whose budgets it can answer for.",
        )
    )


def compose_charges(budget: Budget, releases: Sequence[Release]) -> tuple[Event, Relation]:
    """Compose what the budget is charged for these releases into one event, and return it with its relation."""
    counted = charges(budget, releases)
    event = counted[0].event if len(counted) == 1 else Composed(events=tuple(charge.event for charge in counted))
    return event, "replace" if any(charge.relation == "replace" for charge in counted) else budget.relation


def _readings(unit: Unit) -> Iterator[tuple[Unit, Conversion]]:
    """Yield the units whose releases bound what is revealed about `unit`, the tightest first.

    A smaller unit never bounds a larger one, except that a person's examples are counted one by one.
    """
    yield unit, _charge_as_is
    if isinstance(unit, Person):
        yield "example", _charge_as_group
    if unit != "client":
        yield "client", _charge_as_client_change


def _charge_as_is(release: Release, budget: Budget) -> Charge:
    if release.relation == "replace" and budget.relation != "replace":
        # with fixed sizes, replacing a unit is covered; adding or removing one is not
        raise Unsupported(
            f"The release holds for replacing one {_unit_label(release.unit)}, and the budget ({budget}) is for one "
            "more or less, which does not follow.",
            fix='Make the budget for relation "replace", or use Poisson sampling.',
        )
    _refuse_presence_for_content(release, budget)
    # A blank adds nothing to a sum, so it leaves the sum that a removal leaves: what adding or removing costs, a blank
    # costs too. Both units of a replacement are bounded by the same norm, so it is priced from the same event.
    relation: Relation = "replace" if budget.relation == "replace" else "add_or_remove"
    return Charge(release.clients, release.event, relation)


def _refuse_presence_for_content(release: Release, budget: Budget) -> None:
    if release.relation != "zero_out" or budget.relation != "add_or_remove":
        return
    problem = (
        f"The release holds for the content of one {_unit_label(release.unit)}, and the budget ({budget}) is for "
        "whether it took part, which does not follow"
    )
    if budget.unit == "client":
        # a client that joins may add more than its update: where clients share the noise, its share shows
        raise Unsupported(f"{problem}.", fix='Make the budget for relation "zero_out".')
    # never suggest a new ledger: it would be a second budget for data whose first one is partly spent
    raise Unsupported(
        f"{problem}: how many examples a client holds is public and divides its noise, so a removed one shows.",
        fix="Let the budget promise zero_out instead, with what it has spent: discreet ledger restate PATH",
    )


def _charge_as_group(release: Release, budget: Budget) -> Charge:
    if release.relation == "replace" or budget.relation == "replace":
        raise Unsupported(
            f"An example-level release can be counted for a person only under add_or_remove or zero_out; the release "
            f"is under {release.relation}, and the budget under {budget.relation}.",
            fix='Make the budget for relation "zero_out", and use an algorithm that protects single examples so.',
        )
    _refuse_presence_for_content(release, budget)
    assert isinstance(budget.unit, Person)  # `_readings` offers this to persons only
    event = person_event(release.event, budget.unit, separate=release.separate)
    return Charge(_payers(release, budget), event, "add_or_remove")


def _charge_as_client_change(release: Release, budget: Budget) -> Charge:
    """Price a change to an example or a person as the replacement of the client that holds it.

    Any change within one client turns its update into another of at most the same norm. A person changes the updates of
    all clients that hold rows of theirs.
    """
    clients = budget.unit.clients_at_most if isinstance(budget.unit, Person) else 1
    event = clients_event(release.event, clients, separate=release.separate)
    return Charge(_payers(release, budget), event, "replace")


def _payers(release: Release, budget: Budget) -> tuple[int, ...] | None:
    """Return the clients that are charged: all of them if a person may be in several, who may join different rounds."""
    in_several = isinstance(budget.unit, Person) and budget.unit.clients_at_most > 1
    return None if in_several else release.clients


def _check_relation(charge: Charge, budget: Budget) -> Charge:
    if charge.relation != "replace" and _has_fixed_size_sampling(charge.event):
        raise Unsupported(
            f"Sampling without replacement keeps the number of units fixed, and the budget ({budget}) is for one "
            "more or less.",
            fix='Make the budget for relation "replace", or use Poisson sampling.',
        )
    return charge


@lru_cache(maxsize=65536)
def _has_fixed_size_sampling(event: Event) -> bool:
    return any(isinstance(step, SampledWithoutReplacement) for step in noisy_steps(event))


def _describe_releases(releases: Sequence[Release]) -> str:
    kinds = dict.fromkeys(f"unit {_unit_label(release.unit)}, view {release.view}" for release in releases)
    return "; ".join(kinds) or "nothing"


def _unit_label(unit: Unit) -> str:
    return unit if isinstance(unit, str) else f"person ({unit.column})"
