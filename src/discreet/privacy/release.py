"""A release: an event, the unit it protects, and the view it protects against."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator

from discreet.errors import InvalidInput, UnsoundCombination, Unsupported
from discreet.part import Count, Flag, Index, from_plain, part
from discreet.privacy import events
from discreet.privacy.events import Event, Noise, has_sampling
from discreet.words import fill

Relation: TypeAlias = Literal["add_or_remove", "zero_out", "replace"]
View: TypeAlias = Literal["server", "client", "public"]

LARGEST_GROUP = 1000  # of which it is counted how many were drawn; larger ones count as drawn whole


@part
class Person:
    """All rows with one value in `column`: at most `at_most` of them, all held by one client."""

    kind: Literal["person"] = "person"
    column: str
    at_most: Count


def _read_unit(given: Any) -> Any:
    """Build a person from a table, with an error that shows how to write one. Older files say `max_examples`."""
    if isinstance(given, str) and given not in ("example", "client"):
        person = '{ kind = "person", column = "patient", at_most = 20 }'
        raise ValueError(f'must be "example", "client" or a person, such as {person}, and got {given!r}')
    if not isinstance(given, Mapping):
        return given
    named = {"at_most" if name == "max_examples" else name: value for name, value in given.items()}
    try:
        return from_plain(Person, named)
    except InvalidInput as error:
        raise ValueError(str(error).removeprefix("Person: ")) from None


Unit: TypeAlias = Annotated[Literal["example", "client"] | Person, BeforeValidator(_read_unit)]


def relations_for(unit: Unit) -> tuple[Relation, ...]:
    """Return the relations that a promise about this unit can use, the strongest first.

    How many examples a client holds is public, and so are the divisors, rates and numbers of steps that follow from
    it. So removing an example or a person is visible: only their content can be hidden.
    """
    return ("add_or_remove", "zero_out", "replace") if unit == "client" else ("zero_out", "replace")


@part
class Release:
    """Something computed from private data that somebody else sees.

    Attributes:
        unit: What one of two neighbours has.
        relation: How neighbours differ.
        view: Who sees it: the server; another client, which knows its own noise share; or the public.
        event: What was released.
        clients: The clients whose data was used; None for every client alike.
        adaptive: Whether the event's price was chosen after looking at earlier releases.
    """

    unit: Unit
    relation: Relation
    view: View
    event: Event
    clients: tuple[Index, ...] | None = None
    adaptive: Flag = False

    def __post_init__(self) -> None:
        if self.unit == "client" and self.view == "server" and has_sampling(self.event):
            raise UnsoundCombination(
                "The server sees which clients take part, so sampling clients hides nothing from it.",
                fix="Price the event without the sampling, or give the guarantee against the public.",
            )


def describe_clients(clients: Sequence[int]) -> str:
    """Describe clients by number: `client 3`, `clients 0 to 4`, `clients 0, 2 and 9 more`."""
    return fill("clients.one" if len(clients) == 1 else "clients.several", clients=list_clients(clients))


def list_clients(clients: Sequence[int]) -> str:
    """List the numbers of clients: `3`, `0 to 4`, `0, 2 and 9 more`."""
    if len(clients) > 1 and tuple(clients) == tuple(range(clients[0], clients[-1] + 1)):
        return fill("clients.range", first=clients[0], last=clients[-1])
    shown, more = ", ".join(map(str, clients[:6])), len(clients) - 6
    return fill("clients.more", clients=shown, more=f"{more:,}") if more > 0 else shown


def group_event(event: Event, size: int) -> Event:
    """Return the event for a group: a unit that holds up to `size` of the units it was priced for.

    Guarantee: it dominates the true pair under add-or-remove and zero-out, which leave the same sums. With Gaussian
    noise a Poisson sample draws a binomial number of the members. With other noise, and for a large group, the group is
    in the sample with probability 1 − (1−q)^size and then counts as drawn whole: hockey-stick divergences are convex in
    the number of members drawn, so that is the worst.
    """
    match event:
        case events.Repeated():
            return events.Repeated(count=event.count, event=group_event(event.event, size))
        case events.Composed():
            return events.Composed(events=tuple(group_event(part, size) for part in event.events))
        case events.PoissonSampled(sampling_rate=rate, event=events.GaussianNoise() as noise) if size <= LARGEST_GROUP:
            return events.PoissonSampledGroup(sampling_rate=rate, group_size=size, event=noise)
        case events.PoissonSampledGroup():
            return replace(event, group_size=event.group_size * size)
        case events.PoissonSampled():
            any_member = -math.expm1(size * math.log1p(-event.sampling_rate)) if event.sampling_rate < 1 else 1.0
            return events.PoissonSampled(sampling_rate=any_member, event=scale_sensitivity(event.event, size))
        case events.SampledWithoutReplacement():
            if size == 1:
                return event
            raise Unsupported(
                "Groups under sampling without replacement have no accountant here.",
                fix="Sample by Poisson, or without sampling.",
            )
        case _:
            return scale_sensitivity(event, size)


def scale_sensitivity(noise: Noise, factor: float) -> Noise:
    """Return the noise relative to a sensitivity `factor` times as large."""
    if isinstance(noise, events.GaussianNoise | events.LaplaceNoise):
        return replace(noise, noise_multiplier=noise.noise_multiplier / factor)
    return replace(noise, l2_sensitivity=noise.l2_sensitivity * factor)
