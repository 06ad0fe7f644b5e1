"""The fewest bits of the ring that a secure sum is computed in."""

LEAST_BITS = 8
