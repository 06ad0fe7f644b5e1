"""The contract of an engine: gather the sum of a cohort, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple, Protocol

from discreet.algorithms.aggregation import Aggregation, Plain
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.mechanisms import Mechanism
from discreet.algorithms.per_client import worst_case
from discreet.algorithms.population import Population
from discreet.algorithms.sparsifiers import PublicUpdate
from discreet.algorithms.training import Loss
from discreet.algorithms.training.compiled_step import compile_steps
from discreet.algorithms.uploads import Uploads
from discreet.client_layers.precision import GradientPrecision, gradient_precision
from discreet.data.federation import Federation
from discreet.engines.running_sum import RunningSum
from discreet.errors import DiscreetError, InvalidInput
from discreet.lazy_torch import torch
from discreet.params import Params, concatenate, norms, zeros_like
from discreet.randomness.purposes import Purpose
from discreet.randomness.secret_streams import SecretRows
from discreet.randomness.streams import RunKey, SimulatedRows
from discreet.round_clock import NO_CLOCK, Clock
from discreet.round_phases import Phase

MIN_SECURE_CLIENTS = 3  # with two, each client could subtract its own update from the sum
PUBLIC_STREAM = -2  # the client number of the server's training on public data; -1 is the server's noise


class RoundRefused(DiscreetError):
    """A round can't take place, and the run ends here. It can be resumed.

    `revealed` says whether something of the round may have been released; it then counts.
    """

    def __init__(self, problem: str, *, fix: str = "", revealed: bool = False) -> None:
        super().__init__(problem, fix=fix)
        self.revealed = revealed


class BlockSum(NamedTuple):
    """The sum over blocks of clients, in their order.

    Attributes:
        clients: The clients of all blocks.
        rows: The sum of what they sent, real numbers in double precision. None without a block.
        norms: The norm of each client's update before clipping.
        clean: The sum before the clients' own noise. None if they add none.
    """

    clients: list[int]
    rows: Params | None
    norms: torch.Tensor
    clean: Params | None

    @classmethod
    def from_blocks(cls, blocks: Iterable[tuple[list[int], Uploads]], aggregation: Aggregation = Plain()) -> BlockSum:
        """Add up the blocks as they arrive; keep them first if the aggregation needs each upload."""
        rows, clean = RunningSum(), RunningSum()
        each: list[Params] = []
        clients: list[int] = []
        norms_of_blocks = []
        for block, sent in blocks:
            if aggregation.needs_each_upload:
                each.append(sent.rows)
            else:
                rows.add(sent.rows)
            if sent.clean is not None:
                clean.add(sent.clean)
            clients += block
            norms_of_blocks.append(sent.norms)
        summed = aggregation.combine(concatenate(each)) if each else rows.total()
        return cls(clients, summed, torch.cat(norms_of_blocks) if norms_of_blocks else torch.zeros(0), clean.total())


@dataclass(frozen=True)
class CohortSum:
    """The sum over a cohort, the clients that contributed, and diagnostics that no guarantee covers.

    Attributes:
        total: The sum of what the clients sent, real numbers in double precision.
        contributors: The clients in the sum.
        norms: The norm of each update before clipping. Empty with real clients.
        kept: The share of each update that clipping kept: min(1, clip/norm).
        signal: The norm of the sum before any noise, in units of the clip.
    """

    total: Params
    contributors: tuple[int, ...]
    norms: torch.Tensor
    kept: torch.Tensor
    signal: torch.Tensor

    @classmethod
    def from_blocks(
        cls,
        blocks: Iterable[tuple[list[int], Uploads]],
        broadcast: Broadcast,
        mechanism: Mechanism,
        aggregation: Aggregation = Plain(),
    ) -> CohortSum:
        """Add up the blocks as they arrive, or combine them, and compare their norms with the clip."""
        clients, summed, sizes, clean = BlockSum.from_blocks(blocks, aggregation)
        clip = mechanism.clip_threshold(broadcast)
        kept = torch.ones_like(sizes) if clip is None else (clip / sizes).clamp(max=1).to(sizes.device)
        encoding = broadcast.encoding
        if encoding is not None:
            whole = summed or encoding.zero(broadcast.params)
            signal = encoding.norms({name: value[None] for name, value in (clean or whole).items()})
        else:
            whole = summed or zeros_like(broadcast.params, torch.float64)
            signal = norms({name: (clean or whole)[name][None] for name in broadcast.params})  # not what goes beside
        return cls(whole, tuple(clients), sizes, kept, signal[0])

    @property
    def clipped_share(self) -> float:
        """The share of clients that were clipped. It is computed when asked for, since it waits for the device."""
        return float((self.kept < 1).double().mean()) if len(self.kept) else 0.0


class OneThread:
    """Refuses a second thread while one is inside. A copy in another process starts free."""

    def __init__(self) -> None:
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[OneThread], tuple[()]]:
        return OneThread, ()

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Hold the place; raise InvalidInput if another thread holds it."""
        if not self._lock.acquire(blocking=False):
            raise InvalidInput(
                "One step of a simulation must end before the next begins, and two threads called `step` at once.",
                fix="Play blocks of clients one after the other, or in processes of their own as engines/ray does.",
            )
        try:
            yield
        finally:
            self._lock.release()


@dataclass(frozen=True)
class Simulation:
    """What an engine needs to play every client.

    Attributes:
        algorithm: The algorithm with all its noise.
        federation: The clients' data.
        loss: The loss of the model.
        key: The run's key, from which all randomness is drawn.
        public: Examples that no client holds, as one client's.
        real: Whether the clients are on machines of their own, so that noise drawn here hides real data.
        declared: The public client sizes of clients who keep their data themselves; None if `federation` holds it all.
        precision: In which gradients are computed on a GPU.
        compile: Whether local steps are compiled.
        clock: Measures where the time of a round goes.
    """

    algorithm: Algorithm
    federation: Federation
    loss: Loss
    key: RunKey
    public: Federation | None = None
    real: bool = False
    declared: Population | None = None
    precision: GradientPrecision = "float32"
    compile: bool = False
    clock: Clock = field(default=NO_CLOCK, repr=False, compare=False)
    _turn: OneThread = field(default_factory=OneThread, init=False, repr=False, compare=False)

    @property
    def population(self) -> Population:
        return self.declared or self.federation.population

    def step(self, broadcast: Broadcast, clients: list[int]) -> Uploads:
        """Return what a block of clients sends for this broadcast.

        It is not thread-safe: all blocks go through one network, whose weights and hooks are set for the time of a
        call, and draw from torch's global generator.

        Raises:
            InvalidInput: Another thread is in `step`.
        """
        with self.clock.phase(Phase.DATA):
            rows, data = self.rows(broadcast, clients), self.federation.block(clients)
            weights = self.weights(clients)
        with self._turn.enter(), rows.seed_network(), self._computing():
            return self.algorithm.client_step(self.loss, broadcast, data, weights, rows, self.clock)

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """Compute gradients in the precision of this simulation, in compiled steps if it has them."""
        with gradient_precision(self.precision, self.device), compile_steps(enabled=self.compile):
            yield

    @property
    def device(self) -> torch.device:
        return self.federation.inputs.device

    @property
    def public_update(self) -> PublicUpdate | None:
        """The server's training on public data, as one more client would train, with its own random streams."""
        return None if self.public is None else self._public_update

    def _public_update(self, params: Params, round: int) -> Params:
        broadcast, data = Broadcast(round, params, {}), self.public
        assert data is not None
        rows = self.rows(broadcast, [PUBLIC_STREAM])
        trainer = worst_case(self.algorithm.trainer)  # nobody's own numbers
        with rows.seed_network(), self._computing():
            delta = trainer.train(self.loss, broadcast, data.block([0]), rows.for_purpose(Purpose.PUBLIC))
        return {name: value[0] for name, value in delta.items()}

    def rows(self, broadcast: Broadcast, clients: list[int]) -> SimulatedRows | SecretRows:
        """Return the clients' random streams for this broadcast.

        A seeded run leaves the broadcast's digest out: its noise protects nobody, and two engines that differ in the
        last bit of a sum would otherwise diverge for good.
        """
        if self.real and not self.key.is_seeded:
            return self.key.secret_rows(broadcast.round, broadcast.digest, clients[0], self.device)
        digest = b"" if self.key.is_seeded else broadcast.fingerprint
        return self.key.rows(broadcast.round, digest, clients, self.device)

    def weights(self, clients: list[int]) -> torch.Tensor:
        """Return the weight of each of these clients in the sum, which is public."""
        if self.algorithm.weighting == "uniform":  # without a list of all clients for every block
            return torch.ones(len(clients), dtype=torch.float64, device=self.device)
        every = self.algorithm.weights(self.population)
        return torch.tensor([every[client] for client in clients], dtype=torch.float64, device=self.device)


class Engine(Protocol):
    """Gathers the sum of a cohort; the loop does everything else."""

    @property
    def simulation(self) -> Simulation:
        """The streams from which the server draws its noise, and what it trains on public data."""

    @property
    def block_size(self) -> int:
        """The number of clients that are trained at once; a checkpoint keeps it, since the last bits depend on it."""

    @property
    def is_remote(self) -> bool:
        """Whether messages leave this process: a round that failed may then have been seen, and counts."""

    def gather(self, broadcast: Broadcast, cohort: list[int]) -> CohortSum:
        """Return the sum of what the clients of this cohort send for this broadcast.

        Raises:
            RoundOver: The round is lost, and the run goes on with the next.
            RoundRefused: The round can't take place, and the run ends here.
        """


class RemoteEngine(Engine, Protocol):
    """An engine whose clients are on machines of their own."""

    def await_clients(self, cohort: list[int], round: int) -> list[int]:
        """Return the clients of this cohort that are there, once the round can take place. Nobody is asked for data.

        Raises:
            RoundOver: The round is lost, and the run goes on with the next.
            RoundRefused: Too few came, and the run ends here.
        """

    def for_moments(self, simulation: Simulation) -> Engine:
        """Return an engine that asks the same clients for the sum of moments before the first round."""
