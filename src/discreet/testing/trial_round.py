"""One round of an algorithm on updates that are given: what clients upload, and what is released of their sum.

The round goes through the whole `client_step` and `server_step`. Only training is replaced, by one that returns the
given updates, and the server optimiser, by one that adds the mean update.
"""

import copy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from discreet.algorithms.algorithm import Algorithm, ServerState
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.population import Population
from discreet.algorithms.server_optimizers import ServerSgd
from discreet.algorithms.training.batches import Batches
from discreet.algorithms.training.isolation_check import fixed_randomness
from discreet.algorithms.uploads import Uploads
from discreet.engines.engine import CohortSum
from discreet.params import Params, count_values, flatten, unflatten
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey
from discreet.testing.part_failure import report_errors

DRAWS = 2**20  # more than a round is ever repeated
LATER, ROUNDS_BETWEEN = 50, 3
SERVER_STREAM = -1  # the client number of the server's own streams


class RoundResult(NamedTuple):
    """What a round brought to light.

    Attributes:
        uploads: What each client sent, one row for each.
        clean: The same before the clients' own noise.
        released: The sum as the mechanism released it, in the units of updates.
        state: The server's state after the round.
    """

    uploads: Tensor
    clean: Tensor
    released: Tensor
    state: ServerState


@dataclass(frozen=True)
class TrialRound:
    """Plays rounds of an algorithm on given updates.

    Attributes:
        algorithm: The algorithm with all its noise.
        population: Public client sizes.
        params: The model before the first round.
        round: Number of the round.
        earlier: The server's state before it; None before the first round.
    """

    algorithm: Algorithm
    population: Population
    params: Params
    round: int = 0
    earlier: ServerState | None = None

    @property
    def dimension(self) -> int:
        """Number of values in the model."""
        return count_values(self.params)

    @property
    def state(self) -> ServerState:
        """The server's state before the round."""
        return self.algorithm.init(self.params) if self.earlier is None else self.earlier

    def broadcast(self) -> Broadcast:
        """Return what the clients of the round receive."""
        return self.algorithm.broadcast(self.state, self.round, self._public_update)

    def next_round(self) -> "TrialRound":
        """Return the next round from the same state."""
        return replace(self, round=self.round + 1)

    def later_round(self) -> "TrialRound":
        """Return a much later round, from the state after some rounds without updates."""
        trial = self
        clients = min(3, self.algorithm.sampling.cohort_bounds(self.population)[1])
        zero = torch.zeros(clients, self.dimension).to(next(iter(self.params.values())))
        for _ in range(ROUNDS_BETWEEN):
            trial = replace(trial, round=trial.round + 1, earlier=trial.play(zero).state)
        return replace(trial, round=LATER)

    def play(
        self, updates: Tensor, draw: int = 0, seed: int = 0, *, ambient: int = 0, knows_share: bool = False
    ) -> RoundResult:
        """Play a round in which client i's update is row i.

        Args:
            updates: One flat update for each client. No row: nobody joins.
            draw: Number of the draw: the round is repeated with other randomness.
            seed: Seed of the run's key.
            ambient: Seed of the random generators of torch, numpy and Python, which a part must not draw from.
            knows_share: Leave out the noise of the first client, as it could itself.
        """
        with report_errors("A round of the algorithm"), fixed_randomness(ambient, self._device):
            return self._play(updates, DRAWS * self.round + draw, RunKey.from_seed(seed), knows_share)

    def _play(self, updates: Tensor, stream: int, key: RunKey, knows_share: bool) -> RoundResult:
        clients = list(range(len(updates)))
        release = _RecordedRelease(self.algorithm.sparsifier)
        trained = _GivenUpdates(self.algorithm.trainer, unflatten(updates, self.params))
        algorithm = _replace_parts(self.algorithm, trainer=trained, sparsifier=release, server=ServerSgd())
        state, broadcast = self.state, self.broadcast()
        blocks = []
        if clients:
            weights = torch.ones(len(clients), dtype=torch.float64, device=self._device)
            rows = key.rows(stream, b"", clients, self._device)
            blocks.append((clients, algorithm.client_step(_no_loss, broadcast, self._no_data(clients), weights, rows)))
        if knows_share:
            blocks = [(clients, _without_first_share(sent)) for clients, sent in blocks]
        summed = CohortSum.from_blocks(blocks, broadcast, algorithm.mechanism)
        noise = key.rows(stream, b"", [SERVER_STREAM], self._device).for_purpose(Purpose.SERVER)
        after = algorithm.server_step(state, broadcast, summed.total, len(clients), self.population, noise)
        sent = [uploads for _, uploads in blocks]
        return RoundResult(
            self._stack([uploads.rows for uploads in sent]),
            self._stack([uploads.clean or uploads.rows for uploads in sent]),
            release.flat(),
            after,
        )

    def _stack(self, blocks: list[Params]) -> Tensor:
        rows = [flatten(block, leading=1) for block in blocks]
        return torch.cat(rows) if rows else torch.zeros(0, self.dimension)

    @property
    def _device(self) -> torch.device:
        return next(iter(self.params.values())).device

    def _no_data(self, clients: list[int]) -> Batches:
        nothing = torch.zeros(len(clients), 1, device=self._device)
        return Batches(nothing, nothing, tuple(clients), (1,) * len(clients))

    def _public_update(self, params: Params, round: int) -> Params:
        """Return random numbers as the update on public data, for sparsifiers that need one."""
        generator = torch.Generator().manual_seed(round)
        return {name: torch.randn(value.shape, generator=generator).to(value) for name, value in sorted(params.items())}


class _GivenUpdates:
    """A trainer that returns given updates, and is the algorithm's own in everything else."""

    def __init__(self, trainer: Any, updates: Params) -> None:
        self._trainer, self._updates = trainer, updates

    def train(self, *inputs: Any) -> Params:
        return self._updates

    def __getattr__(self, name: str) -> Any:
        return getattr(self._trainer, name)


@dataclass
class _RecordedRelease:
    """The algorithm's own sparsifier, except that the released sum is kept and stays as it is."""

    sparsifier: Any
    sums: list[Params] = field(default_factory=list)

    def expand(self, released: Params, announcement: Params) -> Params:
        self.sums.append(released)
        return released

    def flat(self) -> Tensor:
        return flatten(self.sums[-1])

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sparsifier, name)


def _replace_parts(algorithm: Algorithm, **parts: Any) -> Algorithm:
    """Return a copy with other parts that are not checked: it is only played, and nothing is certified of it."""
    changed = copy.copy(algorithm)
    for name, part in parts.items():
        object.__setattr__(changed, name, part)
    return changed


def _without_first_share(sent: Uploads) -> Uploads:
    if sent.clean is None:
        return sent
    rows = {name: torch.cat([sent.clean[name][:1], value[1:]]) for name, value in sent.rows.items()}
    return sent._replace(rows=rows)


def _no_loss(params: Params, inputs: Tensor, targets: Tensor) -> Tensor:
    raise AssertionError("training was replaced, and computes no loss")
