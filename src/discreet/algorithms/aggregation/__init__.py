"""How updates are summed."""

from typing import Annotated, TypeAlias

from pydantic import Field

from discreet.algorithms.aggregation.aggregation import Aggregation
from discreet.algorithms.aggregation.lattice_sum import Lattice
from discreet.algorithms.aggregation.plain_sum import Plain
from discreet.algorithms.aggregation.robust_mean import Median, TrimmedMean
from discreet.own_part import OwnPart

AnyAggregation: TypeAlias = Annotated[
    Plain | Lattice | Median | TrimmedMean, Field(discriminator="kind"), OwnPart(Aggregation)
]

__all__ = ["Aggregation", "AnyAggregation", "Lattice", "Median", "Plain", "TrimmedMean"]
