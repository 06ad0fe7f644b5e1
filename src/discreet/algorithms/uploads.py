"""What a block of clients uploads in a round."""

from __future__ import annotations

from typing import NamedTuple

from discreet.lazy_torch import torch
from discreet.params import Params


class Uploads(NamedTuple):
    """What a block of clients uploads, and diagnostics that stay with the simulation.

    Attributes:
        rows: The uploads, one row for each client.
        norms: Norms of the updates before the clip.
        clean: The uploads before the clients' own noise; None if they add none.
    """

    rows: Params
    norms: torch.Tensor
    clean: Params | None = None

    def select(self, places: slice | list[int]) -> Uploads:
        """Return the uploads at these places of the block. A slice is a view, without a copy."""
        rows = {name: value[places] for name, value in self.rows.items()}
        clean = None if self.clean is None else {name: value[places] for name, value in self.clean.items()}
        return Uploads(rows, self.norms[places], clean)
