"""Philox4x64-10 (Salmon et al. 2011): words of many clients' streams at once, each under its own counter.

Every block of four words is computed from a key and a counter alone, so a stream needs no state but its position, and
opening one costs nothing. numpy's own `Philox` gives the same words, faster for a long stream and slower for many short
ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]

BLOCK = 4  # words
ROUNDS = 10
KEY_STEPS = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
FACTORS = np.array([[0xD2E7470EE14C6C93], [0xCA5A826395121157]], dtype=np.uint64)
HALF = np.uint64(32)
LOW_HALF = np.uint64(0xFFFFFFFF)
PIECE = 2**12  # blocks that are computed at once, so that they stay in a processor's cache
SHORT_ROW, FEW_ROWS = 100, 40  # up to so many words, and from so many rows on, all rows at once are faster


def philox_words(counters: Words, key: tuple[int, int]) -> Words:
    """Return a block of four words for each counter.

    Args:
        counters: One column of four words for each block, the lowest word first.
        key: Two words.
    """
    pieces = [_compute_piece(counters[:, i : i + PIECE], key) for i in range(0, counters.shape[1], PIECE)]
    return np.concatenate(pieces, axis=1)


def _compute_piece(counters: Words, key: tuple[int, int]) -> Words:
    """Compute both multiplications of a round at once: rows 0 and 2 of the counter are multiplied, 1 and 3 are not."""
    multiplied, others = counters[0::2].copy(), counters[1::2].copy()
    factors_low, factors_high = FACTORS & LOW_HALF, FACTORS >> HALF
    low, high, across, carry, product = (np.empty_like(multiplied) for _ in range(5))
    for number in range(ROUNDS):
        round_key = [[(word + number * step) % 2**64] for word, step in zip(key, KEY_STEPS, strict=True)]
        np.multiply(multiplied, FACTORS, out=product)  # its lower 64 bits
        # the upper 64 bits, from four products of 32 bits
        np.bitwise_and(multiplied, LOW_HALF, out=low)
        np.right_shift(multiplied, HALF, out=high)
        np.multiply(low, factors_low, out=carry)
        carry >>= HALF
        np.multiply(high, factors_low, out=across)
        across += carry
        np.bitwise_and(across, LOW_HALF, out=carry)
        low *= factors_high
        low += carry
        low >>= HALF
        across >>= HALF
        high *= factors_high
        high += across
        high += low
        np.bitwise_xor(high[::-1], others, out=multiplied)
        multiplied ^= np.array(round_key, dtype=np.uint64)
        others[:] = product[::-1]
    words = np.empty_like(counters)
    words[0::2], words[1::2] = multiplied, others
    return words


class PhiloxStreams:
    """One stream of 64-bit words for each client. Each call goes on where the last one ended.

    Block k of a client's stream has the counter (k + 1, client, two words of the name) under the other two words of the
    name. So streams of one name share no counter, and those of two names no block, unless all 256 bits are equal.
    """

    def __init__(self, name: bytes, clients: Sequence[int]) -> None:
        """Open the streams at their beginning.

        Args:
            name: 32 bytes that all streams share, and that no other purpose has.
            clients: The clients' numbers, which may be negative.
        """
        key_0, key_1, *self._above = np.frombuffer(name, dtype="<u8").tolist()
        self._key = (key_0, key_1)
        self._clients = np.array(clients, dtype=np.int64).view(np.uint64)
        self._used = np.zeros(len(clients), dtype=np.int64)

    def words(self, sizes: Sequence[int]) -> Words:
        """Return a row for each client, whose first `sizes[i]` words are its next ones. The rest is undefined."""
        counts = np.array(sizes, dtype=np.int64)
        width = int(counts.max())
        is_short = 0 < width <= SHORT_ROW and len(counts) >= FEW_ROWS
        rows = self._all_rows(width) if is_short else self._row_by_row(counts, width)
        self._used += counts
        return rows

    def doubles(self, sizes: Sequence[int]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the next `sizes[i]` numbers in [0, 1) of each client, with 53 bits, and 2 in the rest of each row."""
        words = self.words(sizes)
        words >>= np.uint64(11)
        numbers = words.astype(np.float64)
        numbers *= 2.0**-53
        if len(set(sizes)) > 1:
            numbers[np.arange(words.shape[1]) >= np.array(sizes)[:, None]] = 2.0
        return numbers

    def _all_rows(self, width: int) -> Words:
        first, skipped = np.divmod(self._used, BLOCK)
        blocks = -(-(int(skipped.max()) + width) // BLOCK)
        counters = np.empty((4, len(first), blocks), dtype=np.uint64)
        counters[0] = (first[:, None] + np.arange(1, blocks + 1)).view(np.uint64)
        counters[1] = self._clients[:, None]
        counters[2], counters[3] = self._above
        words = philox_words(counters.reshape(4, -1), self._key)
        rows = words.reshape(4, len(first), blocks).transpose(1, 2, 0).reshape(len(first), -1)
        if not skipped.any():
            return rows[:, :width]
        return np.take_along_axis(rows, skipped[:, None] + np.arange(width), axis=1)

    def _row_by_row(self, counts: np.ndarray[Any, np.dtype[np.int64]], width: int) -> Words:
        """Compute the same words by numpy's generator, which adds 1 to its counter before each block."""
        source = np.random.Philox(key=np.array(self._key, dtype=np.uint64))
        state: Any = source.state
        state["buffer_pos"] = BLOCK  # no word is left of an earlier block
        counter = state["state"]["counter"]
        counter[2:] = self._above
        rows = np.zeros((len(counts), width), dtype=np.uint64)
        for row, client, used, count in zip(rows, self._clients, self._used.tolist(), counts.tolist(), strict=True):
            counter[0], counter[1] = used // BLOCK, client
            source.state = state
            row[:count] = source.random_raw(used % BLOCK + count)[used % BLOCK :]
        return rows
