"""Divisors of a whole number: the ways to split a number of epochs or iterations evenly."""

import math


def divisors(number: int) -> list[int]:
    """Return every divisor of `number`, in increasing order."""
    small = [candidate for candidate in range(1, math.isqrt(number) + 1) if number % candidate == 0]
    return sorted({*small, *(number // divisor for divisor in small)})
