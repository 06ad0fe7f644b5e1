"""How updates are summed."""

from typing import Annotated, TypeAlias

from pydantic import Field

from discreet.aggregation.aggregation import Aggregation
from discreet.aggregation.lattice import Lattice
from discreet.aggregation.plain import Plain

AnyAggregation: TypeAlias = Annotated[Plain | Lattice, Field(discriminator="kind")]

__all__ = ["Aggregation", "AnyAggregation", "Lattice", "Plain"]
