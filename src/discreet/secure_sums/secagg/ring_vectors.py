"""Vectors of integers modulo 2^bits, and their encoding in bytes."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInput
from discreet.secure_sums.secagg.session_errors import BadMessage
from discreet.secure_sums.secagg.wire import Bytes

MOST_BITS = 64
Vector: TypeAlias = NDArray[Any]


@dataclass(frozen=True)
class Ring:
    """Vectors of `length` numbers modulo 2^`bits`, each held in the narrowest unsigned word that has room.

    Sums wrap at the word's width by themselves; `reduce` clears the bits above `bits`.
    """

    bits: int
    length: int

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(f"<u{next(size for size in (1, 2, 4, 8) if 8 * size >= self.bits)}")

    @property
    def packed_bytes(self) -> int:
        return -(-self.length * self.bits // 8)

    def zeros(self) -> Vector:
        return np.zeros(self.length, self.dtype)

    def to_ring(self, vector: Vector) -> Vector:
        """Return a copy of an integer vector modulo 2^bits. Negative numbers wrap around."""
        if not isinstance(vector, np.ndarray) or vector.dtype.kind not in "iu" or vector.shape != (self.length,):
            got = f"{vector.dtype} of shape {vector.shape}" if isinstance(vector, np.ndarray) else type(vector).__name__
            raise InvalidInput(
                f"What is summed must be a numpy vector of {self.length} whole numbers, and got {got}.",
                fix="Round onto the lattice first, and flatten.",
            )
        return self.reduce(vector.astype(self.dtype))

    def reduce(self, vector: Vector) -> Vector:
        """Reduce each number modulo 2^bits in place, and return the vector."""
        if self._spare:
            np.bitwise_and(vector, self.dtype.type(2**self.bits - 1), out=vector)
        return vector

    def to_signed(self, vector: Vector) -> NDArray[np.int64]:
        """Return the numbers as signed integers between −2^(bits−1) and 2^(bits−1) − 1."""
        words = vector.astype(np.uint64) << np.uint64(64 - self.bits)
        return words.view(np.int64) >> np.int64(64 - self.bits)

    def pack(self, vector: Vector) -> Bytes:
        """Pack the numbers into `bits` bits each, little-endian; the last byte is padded with zeros."""
        if not self._spare:
            return vector.data.cast("B")
        groups = np.zeros((-(-self.length // 8), 8), self.dtype)  # eight numbers are `bits` whole bytes
        groups.reshape(-1)[: self.length] = vector
        packed = np.zeros((len(groups), self.bits), np.uint8)
        for number, byte, shift in self._overlaps():
            column = groups[:, number]
            packed[:, byte] |= (column >> shift if shift >= 0 else column << -shift).astype(np.uint8)
        return packed.reshape(-1)[: self.packed_bytes].tobytes()

    def unpack(self, packed: Bytes) -> Vector:
        """Return the vector that `pack` packed; refuse bytes whose padding bits are not zero."""
        if len(packed) != self.packed_bytes:
            raise BadMessage(f"A vector has {self.packed_bytes} bytes under these terms, and got {len(packed)}.")
        if not self._spare:
            return np.frombuffer(packed, self.dtype)
        padded = np.zeros((-(-self.length // 8), self.bits), np.uint8)
        padded.reshape(-1)[: len(packed)] = np.frombuffer(packed, np.uint8)
        groups = np.zeros((len(padded), 8), self.dtype)
        for number, byte, shift in self._overlaps():
            column = padded[:, byte].astype(self.dtype)
            groups[:, number] |= column << shift if shift >= 0 else column >> -shift
        flat = self.reduce(groups.reshape(-1))
        if flat[self.length :].any():
            raise BadMessage("The last byte of a vector has bits set beyond its last number.")
        return flat[: self.length]

    @property
    def _spare(self) -> int:
        return 8 * self.dtype.itemsize - self.bits

    def _overlaps(self) -> list[tuple[int, int, int]]:
        """Return (number, byte, shift) wherever one of eight numbers has bits in one of their packed bytes."""
        return [
            (number, byte, 8 * byte - number * self.bits)
            for byte in range(self.bits)
            for number in range(8)
            if number * self.bits < 8 * byte + 8 and 8 * byte < (number + 1) * self.bits
        ]
