"""The streams of a real client on real data: ChaCha20, under a key of its own for each purpose.

Anyone who can predict the noise can remove it. Each stream's 256-bit key is a keyed BLAKE2b of the run's secret over
(round, broadcast, client, name), so no two purposes share a byte, and one stream reveals nothing about another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from discreet.errors import InvalidInput, Unsupported
from discreet.extras import import_library
from discreet.lazy_torch import Tensor, torch
from discreet.params import Params
from discreet.randomness.noise_types import check_noise_types
from discreet.randomness.purposes import Purpose, stream_name
from discreet.randomness.torch_seed import seed_torch
from discreet.secure_sums.discrete_noise.gaussian_sampler import draw_discrete_gaussian
from discreet.secure_sums.discrete_noise.noise_shares import draw_noise_shares
from discreet.secure_sums.discrete_noise.skellam_sampler import draw_skellam

KEY_BYTES = 32
FIRST_BLOCK = bytes.fromhex(  # of the key 0 from counter 0 on: RFC 8439, appendix A.1, test vector 1
    "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
    "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
)


@dataclass(frozen=True)
class SecretRows:
    """Streams of a cryptographic generator. A real client has one row, its own.

    Guarantee: without `secret`, nobody can distinguish these streams from independent random bytes short of breaking
    BLAKE2b or ChaCha20. The floating-point noise made of them is not exactly Gaussian: see docs/decisions/0004.
    """

    secret: bytes = field(repr=False)
    round: int
    digest: bytes
    name: tuple[int | str, ...]
    clients: tuple[int, ...]
    device: torch.device

    def __post_init__(self) -> None:
        if len(self.secret) != KEY_BYTES:
            raise InvalidInput(
                f"The secret of a run must be {KEY_BYTES} bytes long, and this one has {len(self.secret)}.",
                fix="Draw one with RunKey.generate().",
            )
        if len(self.digest) != hashlib.sha256().digest_size:
            raise InvalidInput(
                f"The digest of a broadcast must be a SHA-256 of 32 bytes, and this one has {len(self.digest)}: "
                "two broadcasts could share their noise, whose difference then shows the updates bare.",
                fix="Give broadcast.digest.",
            )
        for part in (self.round, *self.clients, *self.name):
            if type(part) not in (int, str):  # these alone are written in one way, the same in every process
                raise InvalidInput(
                    f"A stream is named by whole numbers and strings, and got {part!r} ({type(part).__name__}).",
                    fix="Turn it into an int or a str first.",
                )
        _chacha20()

    def for_purpose(self, purpose: Purpose, *numbers: int | str) -> SecretRows:
        return replace(self, name=self.name + stream_name(purpose, numbers))

    def open(self) -> SecretStreams:
        return SecretStreams(self)

    def seed_network(self) -> AbstractContextManager[None]:
        """Return a context in which a network's own draws (such as dropout) come from torch, seeded from the secret.

        A seed of 64 bits and torch's generator are not secret enough for noise. But dropout protects nobody, no
        guarantee counts it, and its seed reveals nothing about the streams.
        """
        seed = int.from_bytes(self._derive(b"discreet network", self.clients)[:8], "little", signed=True)
        return seed_torch(seed, self.device)

    def generators(self) -> list[np.random.Generator]:
        """Return one generator per client, at the beginning of its stream."""
        return [secret_generator(self._derive(b"discreet streams", client)) for client in self.clients]

    def _derive(self, purpose: bytes, client: object) -> bytes:
        """Derive 32 bytes for this round, broadcast, client and name.

        `ascii` writes integers, strings, bytes and tuples of them so that Python reads the same value back. So two
        different names never give the same message. BLAKE2b's `person` separates streams, networks and simulations.
        """
        message = ascii((self.round, self.digest, client, self.name)).encode()
        return hashlib.blake2b(message, key=self.secret, person=purpose, digest_size=KEY_BYTES).digest()


@dataclass(frozen=True)
class SecretStreams:
    """Open secret streams. Everything is drawn on the host in doubles, then moved to the device and dtype."""

    rows: SecretRows

    @cached_property
    def _generators(self) -> list[np.random.Generator]:
        return self.rows.generators()

    def normal(self, like: Params) -> Params:
        return self._draw(like, lambda generator, shape: generator.standard_normal(shape))

    def laplace(self, like: Params) -> Params:
        return self._draw(like, lambda generator, shape: generator.laplace(size=shape))

    def skellam(self, like: Params, variance: float) -> Params:
        return self._draw_integers(like, partial(draw_skellam, variance=variance, source=secret_generator))

    def discrete_gaussian(self, like: Params, variance: float) -> Params:
        return self._draw_integers(like, partial(draw_discrete_gaussian, variance=variance, source=secret_generator))

    def _draw_integers(self, like: Params, draw: Callable[..., Any]) -> Params:
        """Draw integers under the next key of each client's stream, since several threads draw."""
        return draw_noise_shares(
            like, [generator.bytes(KEY_BYTES) for generator in self._generators], draw, self.rows.device
        )

    def uniform(self, sizes: Sequence[int]) -> Tensor:
        numbers = torch.full((len(sizes), max(sizes)), 2.0, dtype=torch.float64)
        for row, size, generator in zip(numbers, sizes, self._generators, strict=True):
            row[:size] = torch.from_numpy(generator.random(size))
        return numbers

    def _draw(self, like: Params, draw: Callable[[np.random.Generator, tuple[int, ...]], Any]) -> Params:
        check_noise_types(like)
        drawn = {name: self._draw_tensor(like[name], draw) for name in sorted(like)}
        return {name: drawn[name] for name in like}

    def _draw_tensor(self, like: Tensor, draw: Callable[[np.random.Generator, tuple[int, ...]], Any]) -> Tensor:
        noise = np.stack([draw(generator, tuple(like.shape)) for generator in self._generators])
        return torch.from_numpy(noise).to(self.rows.device, like.dtype)


def secret_generator(key: bytes) -> np.random.Generator:
    """Return a ChaCha20 generator under this key of 32 bytes, at its beginning."""
    return np.random.Generator(_chacha20()(key=int.from_bytes(key, "little"), counter=0, rounds=20))


@cache
def _chacha20() -> Any:
    """Import the generator, and check that it is ChaCha20: nobody would notice a build that isn't."""
    chacha: Any = import_library("randomgen", "The cryptographic noise of a real client").ChaCha
    words = chacha(key=0, counter=0, rounds=20).random_raw(len(FIRST_BLOCK) // 8)
    if words.astype("<u8").tobytes() != FIRST_BLOCK:
        raise Unsupported(
            "The package randomgen gives other bytes than ChaCha20 (RFC 8439, appendix A.1), so its noise can't be "
            "trusted.",
            fix="Install it anew with: pip install --force-reinstall randomgen",
        )
    return chacha
