"""How a key of 32 bytes becomes a mask: a ChaCha20 stream over the whole ring, added or taken away in place."""

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from discreet.secure_sums.secagg.ring_vectors import Ring, Vector

NONCE = bytes(16)  # every key makes one mask, so none needs another nonce, and the block counter starts at 0


class Masks:
    """Expands keys into one buffer that is used again, since a mask is needed only once.

    Guarantee: whoever lacks the key can't tell `add`'s result from a uniform vector of the ring, short of breaking
    ChaCha20. Each word of the stream is uniform, hence so are its lowest bits.
    """

    def __init__(self, ring: Ring) -> None:
        self._nothing = bytes(ring.length * ring.dtype.itemsize)
        self._stream = np.empty(ring.length, ring.dtype)

    def add(self, total: Vector, key: bytes) -> None:
        np.add(total, self._expand(key), out=total)

    def subtract(self, total: Vector, key: bytes) -> None:
        np.subtract(total, self._expand(key), out=total)

    def _expand(self, key: bytes) -> Vector:
        Cipher(ChaCha20(key, NONCE), mode=None).encryptor().update_into(self._nothing, self._stream.data.cast("B"))
        return self._stream
