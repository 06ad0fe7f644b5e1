"""Named streams of randomness: one for each run, round, broadcast, client and purpose.

A stream is a function of its key alone, so a retry or a resume replays the same bytes, a client's draws don't
depend on who else is in its block, and two different broadcasts in one round never share noise.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from discreet.params import Params

CPU = torch.device("cpu")


class Streams(Protocol):
    """Open streams, a row a client: each goes on where it was left."""

    def normal(self, like: Params) -> Params:
        """The next standard normal noise in the shape of `like`."""

    def uniform(self, sizes: Sequence[int]) -> Tensor:
        """For each client its next numbers in [0, 1), on the host, in doubles: a rate is met to 53 bits.

        The rows are as wide as the largest size; past a client's own size they hold 2.
        """


class Rows(Protocol):
    """Randomness for a block of clients: row i belongs to clients[i]. Stateless, so there is nothing to save."""

    @property
    def clients(self) -> Sequence[int]: ...

    def at(self, *name: object) -> "Rows":
        """The streams for another purpose."""

    def open(self) -> Streams:
        """The streams from their beginning."""


@dataclass(frozen=True)
class RunKey:
    """The secret that all streams of a run hang on: from the operating system, or a seed that protects nobody."""

    secret: bytes = field(repr=False)
    seeded: bool = False

    @classmethod
    def fresh(cls) -> "RunKey":
        return cls(secrets.token_bytes(32))

    @classmethod
    def seed(cls, seed: int) -> "RunKey":
        return cls(hashlib.blake2b(f"seed {seed}".encode(), digest_size=32).digest(), seeded=True)

    def generator(self, *name: object) -> torch.Generator:
        """A generator on the host for what the run itself decides: who joins, how a model starts."""
        return _generator(self.secret, name, CPU)

    def rows(self, round: int, digest: bytes, clients: Sequence[int], device: torch.device) -> "SimulatedRows":
        return SimulatedRows(self.secret + digest, (round,), tuple(clients), device)


@dataclass(frozen=True)
class SimulatedRows:
    """Streams of torch's own generators: fast, reproducible, and not secret enough for a real client's real data."""

    secret: bytes = field(repr=False)
    name: tuple[object, ...]
    clients: tuple[int, ...]
    device: torch.device

    def at(self, *name: object) -> "SimulatedRows":
        return SimulatedRows(self.secret, self.name + name, self.clients, self.device)

    def open(self) -> "SimulatedStreams":
        return SimulatedStreams(self)

    def generators(self, device: torch.device) -> list[torch.Generator]:
        return [_generator(self.secret, (*self.name, client), device) for client in self.clients]


@dataclass(frozen=True)
class SimulatedStreams:
    """Streams that were opened: noise is drawn on the device, what decides who takes part on the host."""

    rows: SimulatedRows

    @cached_property
    def _on_device(self) -> list[torch.Generator]:
        return self.rows.generators(self.rows.device)

    @cached_property
    def _on_host(self) -> list[torch.Generator]:
        return self.rows.generators(CPU)

    def normal(self, like: Params) -> Params:
        sizes = [value.numel() for value in like.values()]
        dtype = next(iter(like.values())).dtype
        flat = torch.empty(len(self.rows.clients), sum(sizes), dtype=dtype, device=self.rows.device)
        for row, generator in zip(flat, self._on_device, strict=True):
            row.normal_(generator=generator)
        parts = torch.split(flat, sizes, dim=1)
        return {
            name: part.reshape(len(flat), *value.shape) for (name, value), part in zip(like.items(), parts, strict=True)
        }

    def uniform(self, sizes: Sequence[int]) -> Tensor:
        numbers = torch.full((len(sizes), max(sizes)), 2.0, dtype=torch.float64)
        for row, size, generator in zip(numbers, sizes, self._on_host, strict=True):
            row[:size].uniform_(generator=generator)
        return numbers


def digest(params: Params) -> bytes:
    """What tells one broadcast from another."""
    hashed = hashlib.blake2b(digest_size=16)
    for name in sorted(params):
        value = params[name].detach().cpu().contiguous()
        hashed.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        hashed.update(value.view(torch.uint8).numpy().tobytes() if value.dim() else value.numpy().tobytes())
    return hashed.digest()


def _generator(secret: bytes, name: tuple[object, ...], device: torch.device) -> torch.Generator:
    seed = hashlib.blake2b(repr(name).encode(), key=secret[:64], digest_size=8).digest()
    return torch.Generator(device=device).manual_seed(int.from_bytes(seed, "little", signed=True))
