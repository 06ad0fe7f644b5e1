"""Many repetitions of one round as one block: the federation is copied, and every copy has noise of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

import torch
from torch import Tensor

from discreet.algorithms.algorithm import Algorithm, ServerState
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.training import Loss
from discreet.audit.round_tester.block_streams import BlockRows, VectorisedRows
from discreet.data.federation import Federation
from discreet.errors import InvalidInput
from discreet.params import Params, flatten
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import Rows, RunKey
from discreet.randomness.torch_seed import seed_torch

Sight: TypeAlias = Literal["uploads", "sum", "model"]
BLOCK_VALUES = 2**21  # numbers that the gradients of one block take at most
SERVER_STREAM = -1


class Data(NamedTuple):
    """One of two neighbouring data sets.

    Attributes:
        federation: The clients' examples.
        absent: Clients that never join, although the public number of clients counts them.
    """

    federation: Federation
    absent: frozenset[int] = frozenset()


class Player(Protocol):
    """Plays a round again and again."""

    def play(self, data: Data, repetitions: int, key: RunKey) -> Tensor:
        """Return what the observer sees, one row for each repetition."""


@dataclass(frozen=True)
class RepetitionPlayer:
    """Plays the same round again and again, through all of `client_step` and `server_step`.

    Attributes:
        algorithm: The algorithm with all its noise.
        loss: Loss of the model.
        params: The broadcast model.
        sees: What the observer sees: every upload, the sum of the uploads, or the model after the round.
        known: Clients whose uploads the observer knows and takes off the sum.
        dropouts: Clients that never deliver.
        round: Number of the round.
    """

    algorithm: Algorithm
    loss: Loss
    params: Params
    sees: Sight
    known: tuple[int, ...] = ()
    dropouts: tuple[int, ...] = ()
    round: int = 0

    def play(self, data: Data, repetitions: int, key: RunKey) -> Tensor:
        seen, block = [], self._block_size(data.federation)
        with torch.no_grad():
            for number, first in enumerate(range(0, repetitions, block)):
                seen.append(self._play_block(data, min(block, repetitions - first), key, number))
        return torch.cat(seen)

    def _block_size(self, federation: Federation) -> int:
        width = sum(value.numel() for value in self.params.values()) * sum(federation.sizes)
        return max(1, BLOCK_VALUES // max(1, width))

    def _play_block(self, data: Data, repetitions: int, key: RunKey, number: int) -> Tensor:
        state = self.algorithm.init(self.params)
        broadcast = self.algorithm.broadcast(state, self.round, self._public_update)
        joined = self._draw_cohorts(data, repetitions, key.generator(Purpose.SAMPLING, self.round, number))
        repetition, client = joined.nonzero(as_tuple=True)
        uploads = self._upload(data.federation, broadcast, client.tolist(), key, number)
        if self.sees == "uploads":
            return _side_by_side(uploads, repetition, client, joined.shape)
        delivered = uploads if not self.known else _remove_known(uploads, client, self.known)
        totals = _sum_by_repetition(delivered, repetition, repetitions)
        if self.sees == "sum":
            return flatten(totals, leading=1).double()
        seed = int(torch.randint(2**62, (), generator=key.generator(Purpose.SERVER, self.round, number)))
        with seed_torch(seed, data.federation.inputs.device):
            return self._release(state, broadcast, totals, joined.sum(dim=1), data.federation, key, number)

    def _draw_cohorts(self, data: Data, repetitions: int, generator: torch.Generator) -> Tensor:
        """Return which clients deliver an upload in each repetition."""
        population, sampling = data.federation.population, self.algorithm.sampling
        joined = torch.zeros(repetitions, population.clients, dtype=torch.bool)
        public = sampling.public_cohort(population, self.round)
        if public is not None:
            joined[:, list(public)] = True
        else:
            cohorts = [sampling.sample(population, self.round, generator) for _ in range(repetitions)]
            rows = torch.repeat_interleave(torch.arange(repetitions), torch.tensor([len(each) for each in cohorts]))
            joined[rows, torch.tensor([client for cohort in cohorts for client in cohort], dtype=torch.int64)] = True
        joined[:, [*data.absent, *self.dropouts]] = False
        return joined

    def _upload(
        self, federation: Federation, broadcast: Broadcast, clients: list[int], key: RunKey, number: int
    ) -> Params:
        """Return what these clients send, one row for each. A client may occur in many repetitions."""
        device = federation.inputs.device
        if not clients:
            like = broadcast.params if broadcast.encoding is None else broadcast.encoding.zero(broadcast.params)
            return {name: value[None][:0] for name, value in like.items()}
        rows = BlockRows(key.rows(self.round, b"", [number], device), tuple(clients))
        every = torch.tensor(self.algorithm.weights(federation.population), dtype=torch.float64, device=device)
        with rows.source.seed_network():
            sent = self.algorithm.client_step(self.loss, broadcast, federation.block(clients), every[clients], rows)
        return sent.rows

    def _release(
        self,
        state: ServerState,
        broadcast: Broadcast,
        totals: Params,
        contributors: Tensor,
        federation: Federation,
        key: RunKey,
        number: int,
    ) -> Tensor:
        """Return model and state of the mechanism after the round, for repetitions with equal numbers of clients."""
        models = None
        for count in sorted(set(contributors.tolist())):
            chosen = (contributors == count).nonzero().flatten()
            noise = key.rows(self.round, b"", [SERVER_STREAM], federation.inputs.device)

            def step(total: Params, rows: Rows, count: int = count) -> Tensor:
                return flatten_state(
                    self.algorithm.server_step(state, broadcast, total, count, federation.population, rows)
                )

            group = {name: value[chosen] for name, value in totals.items()}
            after = _step_all(step, group, noise.for_purpose(Purpose.SERVER, number, count))
            models = after.new_zeros(len(contributors), after.shape[1]) if models is None else models
            models[chosen] = after
        assert models is not None
        return models.double()

    def _public_update(self, params: Params, round: int) -> Params:
        """Return fixed numbers as the update on public data, for sparsifiers that need one."""
        return {
            name: torch.arange(1.0, value.numel() + 1).reshape(value.shape).to(value) for name, value in params.items()
        }


def flatten_state(state: ServerState) -> Tensor:
    """Return what the next broadcast shows of the server's state: the model, and what the mechanism announces from."""
    return flatten(state.params | {f"state {name}": value for name, value in state.mechanism.items()})


def _step_all(step: Callable[..., Tensor], totals: Params, rows: Rows) -> Tensor:
    """Apply the server's step to every repetition: vectorised if its parts allow it, else one after the other."""
    try:
        vectorised: Tensor = torch.func.vmap(lambda total: step(total, VectorisedRows()), randomness="different")(
            totals
        )
        return vectorised
    except (RuntimeError, NotImplementedError, TypeError, ValueError, InvalidInput):  # InvalidInput: a user's own part
        return torch.stack(list(_step_singly(step, totals, rows)))


def _step_singly(step: Callable[..., Tensor], totals: Params, rows: Rows) -> Iterator[Tensor]:
    for index in range(len(next(iter(totals.values())))):
        yield step({name: value[index] for name, value in totals.items()}, rows.for_purpose(Purpose.ATTEMPT, index))


def _sum_by_repetition(uploads: Params, repetition: Tensor, repetitions: int) -> Params:
    sums = {}
    for name, value in uploads.items():
        sums[name] = value.new_zeros(repetitions, *value.shape[1:]).index_add_(0, repetition.to(value.device), value)
    return sums


def _remove_known(uploads: Params, client: Tensor, known: Sequence[int]) -> Params:
    """Return the uploads with zeros in place of those that the observer knows."""
    mask = torch.isin(client, torch.tensor(known))
    return {
        name: value.masked_fill(mask.reshape(-1, *(1,) * (value.dim() - 1)).to(value.device), 0)
        for name, value in uploads.items()
    }


def _side_by_side(uploads: Params, repetition: Tensor, client: Tensor, shape: torch.Size) -> Tensor:
    """Return all uploads of a repetition side by side, with zeros for clients that sent none."""
    flat = flatten(uploads, leading=1).double()
    seen = flat.new_zeros(*shape, flat.shape[1])
    seen[repetition, client] = flat
    return seen.flatten(1)
