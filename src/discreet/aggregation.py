"""How updates are summed."""

from typing import Annotated, Literal, Protocol, TypeAlias

from pydantic import Field

from discreet.params import Params
from discreet.part import part
from discreet.randomness import Rows


class Aggregation(Protocol):
    def encode(self, unit: Params, rows: Rows) -> Params:
        """Rows of norm at most 1, as they are summed."""

    def decode(self, total: Params) -> Params:
        """The sum, back in the units of the rows."""


@part
class Plain:
    """As real numbers, in clear."""

    kind: Literal["plain"] = "plain"

    def encode(self, unit: Params, rows: Rows) -> Params:
        return unit

    def decode(self, total: Params) -> Params:
        return total


AnyAggregation: TypeAlias = Annotated[Plain, Field()]
