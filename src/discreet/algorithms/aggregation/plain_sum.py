"""Updates are sent and summed in clear."""

from typing import Literal, Self

import torch

from discreet.params import Params
from discreet.part import part
from discreet.randomness.streams import Rows
from discreet.secure_sums.lattice.grid import Grid, Load
from discreet.secure_sums.lattice.lattice_encoding import Encoding


@part
class Plain:
    """Sum real numbers in clear: the server sees each update."""

    kind: Literal["plain"] = "plain"

    @property
    def is_secure(self) -> bool:
        return False

    def for_sum(self, dimension: int | None, load: Load | None) -> Self:
        return self

    def check_load(self, load: Load | None) -> None:
        return

    def wraparound_probability(self, load: Load | None) -> float | None:
        return None

    def grid(self, times: int, added: int) -> Grid | None:
        return None

    def encoding(self, round: int, params: Params, times: int) -> Encoding | None:
        return None

    def encode(self, unit: Params, encoding: Encoding | None, rows: Rows, *, bounded: bool) -> Params:
        return unit

    def decode(self, total: Params, encoding: Encoding | None, like: Params) -> Params:
        return total

    def coordinates(self, kept: int) -> int:
        return kept

    def bits_per_coordinate(self, dtype: torch.dtype) -> int:
        return 8 * dtype.itemsize
