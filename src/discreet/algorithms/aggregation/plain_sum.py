"""Updates are sent and summed in clear."""

from typing import Literal, Self

from discreet.algorithms.aggregation.aggregation import Aggregation
from discreet.part import part


@part
class Plain(Aggregation):
    """Sum real numbers in clear: the server sees each update."""

    kind: Literal["plain"] = "plain"

    is_secure = False

    def for_moments(self) -> Self:
        return self
