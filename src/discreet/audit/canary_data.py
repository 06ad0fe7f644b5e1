"""Stand-in data for an audit: blank rows, canaries whose gradient is known, and the loss that gives them that gradient.

The guarantee holds for any data, model and loss, so an audit may choose those that reveal most: the gradient of canary
i is a constant vector, the same for every model, and no two canaries share a coordinate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

import torch
from torch import Tensor

from discreet.algorithms.training.batches import Batch, Batches
from discreet.algorithms.training.trainer import Loss
from discreet.data.federation import Federation
from discreet.params import Params, count_values, flatten


@dataclass(frozen=True)
class Directions:
    """One direction for each canary: canary i has the coordinates i, i + m, i + 2m, … of the model, with random signs.

    Attributes:
        canaries: Number of canaries, m.
        signs: A sign for each coordinate; 0 for one that no canary has.
    """

    canaries: int
    signs: Tensor

    @classmethod
    def draw(
        cls, canaries: int, dimension: int, generator: torch.Generator, like: Tensor, *, narrow: bool
    ) -> Directions:
        """Draw the signs. If `narrow`, each canary has one coordinate: of all directions, it has the least L1 norm."""
        signs = 2.0 * torch.randint(2, (dimension,), generator=generator) - 1
        if narrow:
            signs[canaries:] = 0
        return cls(canaries, signs.to(like.device, like.dtype))

    def project(self, flat: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the product of a vector with each canary's direction, scaled to norm 1 within the mask.

        A canary that has no coordinate in the mask gets 0.
        """
        signed = flat * (self.signs.to(flat.dtype) if mask is None else self.signs.to(flat.dtype) * mask)
        ones = self.signs.abs() if mask is None else self.signs.abs() * mask
        return self._fold(signed) / self._fold(ones).clamp(min=1).sqrt().to(flat.dtype)

    def _fold(self, flat: Tensor) -> Tensor:
        """Add up the coordinates of each canary."""
        lacking = -flat.shape[-1] % self.canaries
        padded = torch.nn.functional.pad(flat, (0, lacking))
        return padded.reshape(*flat.shape[:-1], -1, self.canaries).sum(dim=-2)


@dataclass(frozen=True)
class CanaryLoss:
    """A loss that is linear in the model: its gradient at a row (i, a) is −a times the direction of canary i."""

    directions: Directions

    def __call__(self, params: Params, inputs: Tensor, targets: Tensor) -> Tensor:
        along = self.directions.project(flatten(params))
        return -inputs[..., 1].to(along.dtype) * along[inputs[..., 0].long()]


@dataclass(frozen=True)
class CanaryBatches(Batches):
    """Batches in which blank rows are drawn like others, and count for nothing. They record how often a row counted."""

    counted: Tensor | None = None
    draws: Tensor | None = None

    def gather(self, index: Tensor, mask: Tensor, active: Tensor | None) -> Batch:
        assert self.counted is not None
        assert self.draws is not None
        counted = mask & self.counted[index]
        self.draws.add_(torch.bincount(index[counted], minlength=len(self.draws)))
        return super().gather(index, counted, active)


@dataclass(frozen=True)
class CanaryFederation(Federation):
    """Clients of which some rows are blank.

    Attributes:
        counted: Which rows are not blank.
        draws: How often each row was in a batch so far.
    """

    counted: Tensor | None = None
    draws: Tensor | None = None

    def block(self, clients: Sequence[int]) -> Batches:
        found = super().block(clients)
        return CanaryBatches(
            found.inputs,
            found.targets,
            found.starts,
            found.sizes,
            found.order,
            counted=self.counted,
            draws=self.draws,
        )


class AnyDirections(Protocol):
    """One direction for each canary, none of which shares a coordinate with another."""

    def project(self, flat: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the product of a vector with each canary's direction of norm 1, within an announced mask."""


@dataclass(frozen=True)
class PlantedCanaries:
    """Canaries in their data.

    Attributes:
        data: The clients' stand-in data.
        loss: The loss that gives canaries their gradients.
        directions: Where canaries show.
        params: The first model.
    """

    data: CanaryFederation
    loss: Loss
    directions: AnyDirections
    params: Params


@dataclass(frozen=True)
class Slots:
    """Where the canaries are.

    Attributes:
        clients: The client of each canary.
        rows: The rows of each canary, in the list of all clients' rows; all rows of its client for a canary client.
    """

    clients: tuple[int, ...]
    rows: tuple[range, ...]

    def __len__(self) -> int:
        return len(self.clients)

    def first(self, count: int) -> Slots:
        """Return the first canaries."""
        return Slots(self.clients[:count], self.rows[:count])


@dataclass(frozen=True)
class Amplitudes:
    """The length of gradients: of a present canary's rows, an absent one's, and of all other rows of its client.

    An absent canary of amplitude 0 is blank, and so are other rows of amplitude 0.
    """

    present: float
    absent: float = 0.0
    others: float = 0.0


def plant_gradients(
    slots: Slots,
    sizes: tuple[int, ...],
    present: Tensor,
    amplitudes: Amplitudes,
    params: Params,
    generator: torch.Generator,
    *,
    narrow: bool,
) -> PlantedCanaries:
    """Plant canaries whose gradients are directions drawn from `generator`.

    Args:
        slots: Where canaries are.
        sizes: Public client sizes.
        present: Which canaries are present.
        amplitudes: The length of gradients.
        params: The first model.
        generator: Draws the directions.
        narrow: Whether each canary has one coordinate only.
    """
    like = next(iter(params.values()))
    directions = Directions.draw(len(slots), count_values(params), generator, like, narrow=narrow)
    data = build_data(slots, sizes, present, amplitudes, like)
    return PlantedCanaries(data, CanaryLoss(directions), directions, params)


def build_data(
    slots: Slots, sizes: tuple[int, ...], present: Tensor, amplitudes: Amplitudes, like: Tensor
) -> CanaryFederation:
    """Return the clients' stand-in data: rows (canary, amplitude), of which those without an amplitude are blank."""
    starts = (0, *accumulate(sizes))
    table = torch.zeros(starts[-1], 2, dtype=torch.float64)
    if amplitudes.others:
        for canary, client in enumerate(slots.clients):
            table[starts[client] : starts[client + 1]] = torch.tensor([canary, amplitudes.others])
    for canary, rows in enumerate(slots.rows):
        amplitude = amplitudes.present if present[canary] else amplitudes.absent
        table[rows.start : rows.stop] = torch.tensor([canary, amplitude], dtype=torch.float64)
    inputs = table.to(like.device, like.dtype if like.dtype.itemsize >= 4 else torch.float32)
    counted = (table[:, 1] != 0).to(like.device)
    draws = torch.zeros(len(table), dtype=torch.int64, device=like.device)
    return CanaryFederation(inputs, torch.zeros(len(table), device=like.device), sizes, counted=counted, draws=draws)


def blank_public(examples: int, like: Tensor) -> Federation:
    """Return public data of as many rows, whose gradient is zero."""
    inputs = torch.zeros(examples, 2, device=like.device, dtype=like.dtype)
    return Federation(inputs, torch.zeros(examples, device=like.device), (examples,))


def spread_slots(sizes: tuple[int, ...], clients: tuple[int, ...], rows: int, canaries: int, most: int) -> Slots:
    """Spread canaries of `rows` rows evenly over the clients, at most `most` in each."""
    room = {client: min(most, sizes[client] // rows) for client in clients}
    starts = (0, *accumulate(sizes))
    chosen: list[tuple[int, range]] = []
    for turn in range(max(room.values(), default=0)):
        for client in clients:
            if turn < room[client] and len(chosen) < canaries:
                first = starts[client] + turn * rows
                chosen.append((client, range(first, first + rows)))
    return Slots(tuple(client for client, _ in chosen), tuple(found for _, found in chosen))


def client_slots(sizes: tuple[int, ...], clients: tuple[int, ...], canaries: int) -> Slots:
    """Make each of the first clients a canary, with all its rows."""
    starts = (0, *accumulate(sizes))
    chosen = clients[:canaries]
    return Slots(chosen, tuple(range(starts[client], starts[client + 1]) for client in chosen))
