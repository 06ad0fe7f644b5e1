"""Draw one array in several threads: in chunks of fixed size, each from a stream of its own."""

import hashlib
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInput

Integers: TypeAlias = NDArray[np.int64]
Source: TypeAlias = Callable[[bytes], np.random.Generator]  # a generator for a key of 32 bytes
Sampler: TypeAlias = Callable[[np.random.Generator, int], Integers]  # draw this many numbers

CHUNK = 2**16  # numbers: about 5 ms of work, far more than opening a stream costs
KEY_BYTES = 32


def draw_in_chunks(
    key: bytes, shape: tuple[int, ...], source: Source, sampler: Sampler, threads: int | None = None
) -> Integers:
    """Draw an array of this shape from streams derived from `key`, with a thread for each core by default.

    Guarantee: the numbers depend on the key, the shape's size and the sampler, never on the number of threads. Two
    chunks share no key unless BLAKE2b-256 collides, so they are as independent as `source` makes them.
    """
    if len(key) != KEY_BYTES:
        raise InvalidInput(
            f"The key of a draw must be {KEY_BYTES} bytes long, and this one has {len(key)}.",
            fix="Take it from a stream, or draw one with secrets.token_bytes(32).",
        )
    result = np.empty(math.prod(shape), dtype=np.int64)
    starts = range(0, len(result), CHUNK)

    def fill(start: int) -> None:
        part = result[start : start + CHUNK]
        part[:] = sampler(source(_chunk_key(key, start // CHUNK)), len(part))

    workers = min(len(starts), threads or os.cpu_count() or 1)
    if workers <= 1:
        for start in starts:
            fill(start)
    else:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(fill, starts))
    return result.reshape(shape)


def _chunk_key(key: bytes, index: int) -> bytes:
    return hashlib.blake2b(index.to_bytes(8, "little"), key=key, person=b"discreet noise", digest_size=32).digest()
