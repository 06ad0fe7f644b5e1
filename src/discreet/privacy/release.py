"""A release: an event, the unit it protects, and the view it protects against."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from discreet.errors import InvalidInput, UnsoundCombination
from discreet.part import Count, Flag, Index, from_plain, part
from discreet.privacy.events import Event, has_sampling, has_selection
from discreet.words import fill

Relation: TypeAlias = Literal["add_or_remove", "zero_out", "replace"]
View: TypeAlias = Literal["server", "client", "public"]


def parse_view(word: Any) -> Any:
    """Return the view that a word names: clients are a client, and every other word stays as it is."""
    return "client" if word == "clients" else word


NamedView: TypeAlias = Annotated[View, BeforeValidator(parse_view)]  # as people type it


@part
class Person:
    """All rows with one value in `column`.

    Attributes:
        column: The column that names the person of a row.
        at_most: The most rows of one person in a client's table.
        clients_at_most: The most clients that hold rows of one person. With real clients this is declared: nobody can
            count across their tables.
    """

    kind: Literal["person"] = "person"
    column: str
    at_most: Count
    clients_at_most: Annotated[Count, Field(exclude_if=lambda clients: clients == 1)] = 1

    @property
    def rows(self) -> int:
        """The most rows of one person in all clients together."""
        return self.at_most * self.clients_at_most

    def as_option(self) -> str:
        """Return the person as command lines name it."""
        clients = "" if self.clients_at_most == 1 else f":{self.clients_at_most}"
        return f"person:{self.column}:{self.at_most}{clients}"

    def as_toml(self) -> str:
        """Return the person as an experiment's file names it."""
        column = json.dumps(self.column, ensure_ascii=False)
        clients = "" if self.clients_at_most == 1 else f", clients_at_most = {self.clients_at_most}"
        return f'{{ kind = "person", column = {column}, at_most = {self.at_most}{clients} }}'


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
        separate: Whether each client makes a release of its own, with noise of its own, so that a person in several
            clients is in several releases. In one sum over the clients, all rows of the person are.
    """

    unit: Unit
    relation: Relation
    view: NamedView
    event: Event
    clients: tuple[Index, ...] | None = None
    adaptive: Flag = False
    separate: Annotated[Flag, Field(exclude_if=lambda separate: not separate)] = False

    def __post_init__(self) -> None:
        if self.unit == "client" and self.view == "server" and has_sampling(self.event):
            raise UnsoundCombination(
                "The server sees which clients take part, so sampling clients hides nothing from it.",
                fix="Price the event without the sampling, or give the guarantee against the public.",
            )
        if self.view != "public" and has_selection(self.event):
            raise UnsoundCombination(
                f"The {self.view} takes part in every trial, so releasing only the best one hides nothing from it.",
                fix="Give the guarantee against the public, or count every trial: mode compose.",
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
