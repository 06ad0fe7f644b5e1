"""Named streams of randomness: one for each run, round, broadcast, client and purpose.

A stream is a function of its key alone, so a retry or a resume replays the same bytes, a client's draws don't
depend on who else is in its block, and two different broadcasts in one round never share noise.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from discreet.params import Params

CPU = torch.device("cpu")


class Rows(Protocol):
    """Randomness for a block of clients: row i belongs to clients[i]."""

    @property
    def clients(self) -> Sequence[int]: ...

    def at(self, *name: object) -> "Rows":
        """The streams for another purpose."""

    def normal(self, like: Params) -> Params:
        """Standard normal noise in the shape of `like`, a row a client."""

    def uniform(self, sizes: Sequence[int]) -> list[Tensor]:
        """For each client so many numbers in [0, 1), on the host, in doubles: a rate is met to 53 bits."""


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

    def normal(self, like: Params) -> Params:
        noise = {
            name: torch.empty(len(self.clients), *value.shape, dtype=value.dtype, device=self.device)
            for name, value in like.items()
        }
        for row, client in enumerate(self.clients):
            generator = _generator(self.secret, (*self.name, client), self.device)
            for value in noise.values():
                value[row].normal_(generator=generator)
        return noise

    def uniform(self, sizes: Sequence[int]) -> list[Tensor]:
        return [
            torch.rand(size, dtype=torch.float64, generator=_generator(self.secret, (*self.name, client), CPU))
            for client, size in zip(self.clients, sizes, strict=True)
        ]


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
