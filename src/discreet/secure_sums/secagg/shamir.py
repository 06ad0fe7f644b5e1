"""Share a secret of 32 bytes so that `threshold` holders can recover it and fewer learn nothing.

Shamir (1979): the secret is the value at 0 of a random polynomial of degree threshold − 1 over a prime field, and a
share is its value at the holder's position.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from discreet.errors import InvalidInput
from discreet.secure_sums.secagg import key_agreement

PRIME = 2**256 + 297  # the smallest above every secret of 32 bytes
SECRET_BYTES = 32
SHARE_BYTES = 33


def split(secret: bytes, threshold: int, positions: Iterable[int]) -> dict[int, bytes]:
    """Split the secret into a share for each position, an integer above 0.

    Guarantee: fewer than `threshold` shares are independent of the secret, up to the 2⁻¹²⁰ by which a coefficient made
    of 48 random bytes differs from a uniform one.
    """
    if len(secret) != SECRET_BYTES:
        raise InvalidInput(f"A shared secret has {SECRET_BYTES} bytes, and got {len(secret)}.")
    drawn = [int.from_bytes(key_agreement.random_bytes(48), "little") % PRIME for _ in range(threshold - 1)]
    polynomial = [*drawn, int.from_bytes(secret, "little")]  # highest power first
    return {position: _evaluate(polynomial, position).to_bytes(SHARE_BYTES, "little") for position in positions}


def combine(shares: Mapping[int, bytes]) -> bytes | None:
    """Recover the secret from exactly `threshold` shares by position; None if they don't come from one secret."""
    positions = tuple(sorted(shares))
    values = [int.from_bytes(shares[position], "little") for position in positions]
    secret = sum(value * weight for value, weight in zip(values, _weights(positions), strict=True)) % PRIME
    return secret.to_bytes(SECRET_BYTES, "little") if secret < 2**256 else None


def is_share(share: bytes) -> bool:
    """Return whether the bytes encode an element of the field."""
    return len(share) == SHARE_BYTES and int.from_bytes(share, "little") < PRIME


def _evaluate(polynomial: list[int], position: int) -> int:
    value = 0
    for coefficient in polynomial:
        value = (value * position + coefficient) % PRIME
    return value


@lru_cache(maxsize=1024)
def _weights(positions: tuple[int, ...]) -> tuple[int, ...]:
    """Return the Lagrange weights at 0. Many secrets have holders at the same positions, so they are cached."""
    weights = []
    for one in positions:
        above, below = 1, 1
        for other in positions:
            if other != one:
                above, below = above * other % PRIME, below * (other - one) % PRIME
        weights.append(above * pow(below, -1, PRIME) % PRIME)
    return tuple(weights)
