"""Named streams of randomness: one for each run, round, broadcast, client and purpose.

A stream depends on its key alone. So a retry or a resume replays the same bytes, a client's draws don't depend on the
other clients in its block, and two different broadcasts in one round never share noise.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any, Protocol

import numpy as np

from discreet.errors import UnsoundCombination
from discreet.lazy_torch import Tensor, torch
from discreet.params import Params, count_values, unflatten
from discreet.randomness.noise_types import check_noise_types
from discreet.randomness.philox import PhiloxStreams
from discreet.randomness.purposes import Purpose, stream_name
from discreet.randomness.secret_streams import SecretRows
from discreet.randomness.torch_seed import seed_torch
from discreet.secure_sums.discrete_noise.gaussian_sampler import draw_discrete_gaussian
from discreet.secure_sums.discrete_noise.noise_shares import draw_noise_shares
from discreet.secure_sums.discrete_noise.skellam_sampler import draw_skellam

WORDS = 624  # in the state of a Mersenne twister, which is torch's generator on the host


class Streams(Protocol):
    """Open streams, one row per client. Each draw continues where the last one ended."""

    def normal(self, like: Params) -> Params:
        """Draw standard normal noise in the shape of `like`. The order of its names does not matter."""

    def laplace(self, like: Params) -> Params:
        """Draw Laplace noise of scale 1 in the shape of `like`."""

    def skellam(self, like: Params, variance: float) -> Params:
        """Draw Skellam noise of this variance in the shape of `like`, as int64."""

    def discrete_gaussian(self, like: Params, variance: float) -> Params:
        """Draw discrete Gaussian noise with this σ² in the shape of `like`, as int64."""

    def uniform(self, sizes: Sequence[int]) -> Tensor:
        """Draw `sizes[i]` numbers in [0, 1) for each client i, on the host, as doubles: a rate is met to 53 bits.

        The rows are as wide as the largest size, and hold 2 past a client's own size.
        """


class Rows(Protocol):
    """Randomness for a block of clients: row i belongs to clients[i]. It has no state, so nothing has to be saved."""

    @property
    def clients(self) -> Sequence[int]:
        """The clients of the block, by number."""

    def for_purpose(self, purpose: Purpose, *numbers: int | str) -> Rows:
        """Return the streams for a purpose. `numbers` distinguish several streams of one purpose."""

    def open(self) -> Streams:
        """Open the streams at their beginning."""


@dataclass(frozen=True)
class RunKey:
    """The secret that all streams of a run derive from: system entropy, or a seed, which protects nobody."""

    secret: bytes = field(repr=False)
    is_seeded: bool = False

    @classmethod
    def generate(cls) -> RunKey:
        """Generate a key from the operating system's entropy."""
        return cls(secrets.token_bytes(32))

    @classmethod
    def from_seed(cls, seed: int) -> RunKey:
        """Derive a key from a seed, for runs that are repeatable and protect nobody."""
        return cls(hashlib.blake2b(f"seed {seed}".encode(), digest_size=32).digest(), is_seeded=True)

    def generator(self, purpose: Purpose, *numbers: int | str) -> torch.Generator:
        """Return a generator on the host for decisions of the run itself, such as who joins or how a model starts."""
        return _build_generator(self.secret, stream_name(purpose, numbers))

    def rows(self, round: int, digest: bytes, clients: Sequence[int], device: torch.device) -> SimulatedRows:
        """Return the streams of simulated clients in one round and broadcast."""
        return SimulatedRows(self.secret + digest, (round,), tuple(clients), device)

    def secret_rows(self, round: int, digest: bytes, client: int, device: torch.device | None = None) -> SecretRows:
        """Return the streams of a real client on real data. `digest` is the broadcast's digest, not its fingerprint."""
        if self.is_seeded:
            raise UnsoundCombination(
                "A seed protects nobody, so no real client draws from it: whoever guesses it can take the noise off.",
                fix="Leave the seed out; the key then comes from the operating system.",
            )
        return SecretRows(self.secret, round, digest, (), (client,), device or torch.device("cpu"))


@dataclass(frozen=True)
class SimulatedRows:
    """Streams of Philox and torch's generators: fast and reproducible, but not secret enough for a real client's data.

    Numbers that decide who joins, and keys of integer noise, are words of Philox, of many clients at once. Long vectors
    of noise are drawn by torch.
    """

    secret: bytes = field(repr=False)
    name: tuple[int | str, ...]
    clients: tuple[int, ...]
    device: torch.device

    def for_purpose(self, purpose: Purpose, *numbers: int | str) -> SimulatedRows:
        return replace(self, name=self.name + stream_name(purpose, numbers))

    def open(self) -> SimulatedStreams:
        return SimulatedStreams(self)

    def seed_network(self) -> AbstractContextManager[None]:
        """Return a context in which a network's own draws (such as dropout) come from the block's stream."""
        return seed_torch(_derive_seed(self.secret, (*self.name, Purpose.NETWORK.value, *self.clients)), self.device)

    def words(self, person: bytes) -> PhiloxStreams:
        """Return each client's stream of words, at its beginning. Two `person`s of BLAKE2b have unrelated streams."""
        return PhiloxStreams(_derive(self.secret, self.name, person), self.clients)

    def generators(self) -> list[torch.Generator]:
        """Return one generator per client, at the beginning of its stream of noise.

        Its seed or its state are words of another stream than the numbers, or the noise would repeat those.
        """
        words, count = self.words(b"discreet noise"), len(self.clients)
        if self.device.type != "cpu":
            seeds = words.words([1] * count)[:, 0].view(np.int64).tolist()
            return [torch.Generator(self.device).manual_seed(seed) for seed in seeds]
        return [_build_twister(row) for row in words.words([WORDS // 2] * count).astype("<u8", copy=False).view("<u4")]


@dataclass(frozen=True)
class SimulatedStreams:
    """Open simulated streams. Noise is drawn on the device, and numbers that decide who joins on the host."""

    rows: SimulatedRows

    @cached_property
    def _on_device(self) -> list[torch.Generator]:
        return self.rows.generators()

    @cached_property
    def _on_host(self) -> PhiloxStreams:
        return self.rows.words(b"discreet numbers")

    def normal(self, like: Params) -> Params:
        return self._draw(like, lambda row, generator: row.normal_(generator=generator))

    def laplace(self, like: Params) -> Params:
        """Draw Laplace noise as the difference of two exponentials."""

        def draw(row: Tensor, generator: torch.Generator) -> None:
            row.exponential_(generator=generator).sub_(torch.empty_like(row).exponential_(generator=generator))

        return self._draw(like, draw)

    def skellam(self, like: Params, variance: float) -> Params:
        return self._draw_integers(like, partial(draw_skellam, variance=variance, source=_pcg64))

    def discrete_gaussian(self, like: Params, variance: float) -> Params:
        return self._draw_integers(like, partial(draw_discrete_gaussian, variance=variance, source=_pcg64))

    def _draw_integers(self, like: Params, draw: Callable[..., Any]) -> Params:
        """Draw integers on the host, by numpy, under the next key of each client's stream."""
        keys = self._on_host.words([4] * len(self.rows.clients)).astype("<u8", copy=False)
        return draw_noise_shares(like, [key.tobytes() for key in keys], draw, self.rows.device)

    def _draw(self, like: Params, draw: Callable[[Tensor, torch.Generator], object]) -> Params:
        check_noise_types(like)
        drawn: Params = {}
        for dtype in sorted({value.dtype for value in like.values()}, key=str):
            same = {name: value for name, value in like.items() if value.dtype == dtype}
            rows = torch.empty(len(self.rows.clients), count_values(same), dtype=dtype, device=self.rows.device)
            for row, generator in zip(rows, self._on_device, strict=True):
                draw(row, generator)
            drawn |= unflatten(rows, same)
        return {name: drawn[name] for name in like}

    def uniform(self, sizes: Sequence[int]) -> Tensor:
        return torch.from_numpy(self._on_host.doubles(sizes))


def params_digest(params: Params) -> bytes:
    """Return the SHA-256 of a broadcast's parameters, with their names, types and shapes."""
    head, flat = _header_and_bytes(params)
    return hashlib.sha256(head + flat.cpu().numpy().tobytes()).digest()


def params_fingerprint(params: Params) -> bytes:
    """Return a digest that is quick for a model on a GPU, for broadcasts that nobody crafts to collide.

    Four sums of the model's words with random weights mod 2^64: two models share one with probability 2^-32 at most
    (multilinear hashing, Lemire and Kaser 2014).
    """
    head, flat = _header_and_bytes(params)
    if not flat.is_cuda:
        return params_digest(params)
    words = torch.nn.functional.pad(flat, (0, -len(flat) % 4)).view(torch.int32).to(torch.int64)
    generator = torch.Generator(flat.device).manual_seed(0)
    limits = torch.iinfo(torch.int64)
    weights = [torch.empty_like(words).random_(limits.min, limits.max, generator=generator) for _ in range(4)]
    sums = torch.stack([(weight * words).sum() for weight in weights])
    return hashlib.sha256(head + sums.cpu().numpy().tobytes()).digest()


def _header_and_bytes(params: Params) -> tuple[bytes, Tensor]:
    names = sorted(params)
    head = repr([(name, params[name].dtype, tuple(params[name].shape)) for name in names])
    return head.encode(), torch.cat([params[name].detach().reshape(-1).view(torch.uint8) for name in names])


def _build_generator(secret: bytes, name: tuple[object, ...]) -> torch.Generator:
    """Return a generator on the host for this name."""
    return _build_twister(np.frombuffer(hashlib.shake_256(_derive(secret, name)).digest(4 * WORDS), dtype="<u4"))


def _build_twister(words: np.ndarray[Any, np.dtype[np.uint32]]) -> torch.Generator:
    """Return a generator on the host whose state is these 624 words.

    torch seeds a generator on the host by 32 bits, so that some of 100,000 streams would coincide; therefore the whole
    state is set. A generator on a GPU takes a seed of 64 bits.
    """
    state = _unused_state().copy()
    state[24 : 24 + 8 * WORDS].view("<u8")[:] = words
    return torch.Generator().set_state(torch.from_numpy(state))


@cache
def _unused_state() -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return the state of a host generator whose words are all unused, so that its next number mixes them first."""
    state = torch.Generator().get_state().numpy()
    state[8:16] = np.array([1, 1], dtype="<i4").view(np.uint8)
    state[16:24] = 0
    return state


def _pcg64(key: bytes) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(int.from_bytes(key, "little")))


def _derive_seed(secret: bytes, name: tuple[object, ...]) -> int:
    return int.from_bytes(_derive(secret, name)[:8], "little", signed=True)


def _derive(secret: bytes, name: tuple[object, ...], person: bytes = b"") -> bytes:
    return hashlib.blake2b(repr(name).encode(), key=secret[:64], person=person, digest_size=32).digest()
