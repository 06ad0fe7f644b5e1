"""What a ledger promises and what its lines say, as records."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from discreet.errors import InvalidInput
from discreet.part import Count, Index, Positive, Probability, part
from discreet.privacy.release import Relation, Release, Unit, View, describe_clients

Mode: TypeAlias = Literal["plan", "filter"]


@part
class Budget:
    """The most that `view` may learn of any one `unit`: (epsilon, delta), for neighbours under `relation`.

    Of the units of these `clients`, where some have a budget of their own; else of all.
    """

    unit: Unit
    relation: Relation
    view: View
    epsilon: Positive
    delta: Probability
    clients: tuple[Index, ...] | None = None

    def __str__(self) -> str:
        unit = self.unit if isinstance(self.unit, str) else f"person ({self.unit.column})"
        whose = "" if self.clients is None else f", {describe_clients(self.clients)}"
        return f"unit {unit}, relation {self.relation}, view {self.view}{whose}"


@part
class Ticket:
    """The right to make the releases that were reserved under `key`; `hash` is that of the reserving line."""

    key: str
    seq: Index
    hash: str


@part
class Opened:
    """The first line. `orders` holds the filter's Rényi order for each budget, fixed before any data is seen."""

    type: Literal["open"] = "open"
    version: Literal[1] = 1
    mode: Mode
    budgets: tuple[Budget, ...]
    orders: tuple[Positive, ...] = ()

    def __post_init__(self) -> None:
        if len(self.orders) != (len(self.budgets) if self.mode == "filter" else 0):
            raise InvalidInput("A filter has one order for each budget, and a plan has none.")


@part
class Reserved:
    """These releases may happen from now on, so they count from now on."""

    type: Literal["reserve"] = "reserve"
    key: str
    releases: tuple[Release, ...]


@part
class Committed:
    """The reservation on line `ticket` became these releases; None says: exactly what was reserved."""

    type: Literal["commit"] = "commit"
    ticket: Index
    releases: tuple[Release, ...] | None


@part
class Voided:
    """Nothing of the reservation on line `ticket` left the process, so it counts no longer."""

    type: Literal["void"] = "void"
    ticket: Index


@part
class Restated:
    """From here on, the budgets for examples and persons promise zero-out where they promised add-or-remove.

    What was counted stays counted, at the same ε: a blank adds nothing to a sum, so it leaves what a removal leaves.
    """

    type: Literal["restate"] = "restate"
    relation: Literal["zero_out"] = "zero_out"


@part
class Recovered:
    """A writer died in mid-line; this line took the place of what it left, which nobody had been told was written."""

    type: Literal["recovered"] = "recovered"
    torn_bytes: Count
    torn_sha256: str
    torn_start: str


Entry: TypeAlias = Annotated[Opened | Reserved | Committed | Voided | Restated | Recovered, Field(discriminator="type")]
