"""The budgets of a ledger and the entries on its lines, as records."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from discreet.errors import InvalidInput
from discreet.part import Count, Index, Positive, Probability, part
from discreet.privacy.release import NamedView, Relation, Release, Unit, describe_clients

Mode: TypeAlias = Literal["plan", "filter"]


@part
class Budget:
    """The most that `view` may learn about any one `unit`: (epsilon, delta), for neighbours under `relation`.

    It covers the units of `clients`, where some clients have a budget of their own, else of every client.
    """

    unit: Unit
    relation: Relation
    view: NamedView
    epsilon: Positive
    delta: Probability
    clients: tuple[Index, ...] | None = None

    def __str__(self) -> str:
        unit = self.unit if isinstance(self.unit, str) else f"person ({self.unit.column})"
        whose = "" if self.clients is None else f", {describe_clients(self.clients)}"
        return f"unit {unit}, relation {self.relation}, view {self.view}{whose}"


@part
class Ticket:
    """The right to make the releases reserved under `key`. `seq` and `hash` identify the line that reserved them."""

    key: str
    seq: Index
    hash: str


@part
class OpenEntry:
    """The first line.

    `orders` holds a filter's Rényi order for each budget, fixed before any data is seen. `on_word_of` names the
    user's own parts that only declare what is counted.
    """

    type: Literal["open"] = "open"
    version: Literal[1] = 1
    mode: Mode
    budgets: tuple[Budget, ...]
    orders: tuple[Positive, ...] = ()
    on_word_of: Annotated[tuple[str, ...], Field(exclude_if=lambda parts: not parts)] = ()

    def __post_init__(self) -> None:
        if len(self.orders) != (len(self.budgets) if self.mode == "filter" else 0):
            raise InvalidInput("A filter has one order for each budget, and a plan has none.")


@part
class ReserveEntry:
    """These releases may happen from now on, so they count from now on."""

    type: Literal["reserve"] = "reserve"
    key: str
    releases: tuple[Release, ...]


@part
class CommitEntry:
    """The reservation on line `ticket` became these releases; None means exactly the reserved ones."""

    type: Literal["commit"] = "commit"
    ticket: Index
    releases: tuple[Release, ...] | None


@part
class VoidEntry:
    """Nothing of the reservation on line `ticket` left the process, so it no longer counts."""

    type: Literal["void"] = "void"
    ticket: Index


@part
class RestateEntry:
    """From here on, the budgets for examples and persons promise zero-out where they promised add-or-remove.

    Past spending stays, at the same ε: a blank adds nothing to a sum, so the sum is the one that a removal leaves.
    """

    type: Literal["restate"] = "restate"
    relation: Literal["zero_out"] = "zero_out"


@part
class RecoverEntry:
    """This line replaced an unfinished one, whose writer died before it reported success to anyone."""

    type: Literal["recovered"] = "recovered"
    torn_bytes: Count
    torn_sha256: str
    torn_start: str


Entry: TypeAlias = Annotated[
    OpenEntry | ReserveEntry | CommitEntry | VoidEntry | RestateEntry | RecoverEntry, Field(discriminator="type")
]
