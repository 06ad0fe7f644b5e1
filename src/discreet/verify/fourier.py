"""A discrete Fourier transform, and a hockey-stick sum over composed lattices, with bounds on their rounding errors.

The transform is Cooley and Tukey's, by products with small matrices whose entries are rounded from balls. Each output
is a sum over inputs times unit factors, so its error is at most `transform_error` times the sum of the inputs'
moduli, in whatever order the products are added.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.verify.balls import UNIT
from discreet.verify.lattice import LatticeStep
from discreet.verify.loss_pairs import Array

Complex = NDArray[np.complex128]

RADIX_BITS, TABLE_BITS = 6, 11
SILENT = -92.0  # log of the modulus below which a frequency is left out, as an error


def transform_error(bits: int) -> float:
    """Return the error of each output of `transform`, relative to the sum of the inputs' moduli.

    A product with a matrix of size r adds 2r real products for each part: γ = (2r + 1)·u, times √2 for both parts. Its
    entries are off by 5u, the factors between the stages too, and multiplying by these rounds by √5·u. Wrapping the
    input around up to 32 times adds 32u.
    """
    stages = [min(RADIX_BITS, bits - done) for done in range(0, bits, RADIX_BITS)]
    return 1.01 * UNIT * (32 + sum(math.sqrt(2) * (2 << stage) + 18 for stage in stages))


def transform(values: Array, bits: int) -> Complex:
    """Return Σ_j values[j]·e^(−2πi·jk/n) for k = 0 … n−1, n = 2^bits; longer inputs wrap around."""
    if values.size > 32 * 2**bits:
        raise ArithmeticError("The input wraps around too often for the error bound.")
    folded = np.zeros(2**bits, dtype=np.complex128)
    for start in range(0, values.size, 2**bits):
        part = values[start : start + 2**bits]
        folded[: part.size] += part
    return np.asarray(_transform_rows(folded[None, :], bits)[0])


def _transform_rows(rows: Complex, bits: int) -> Complex:
    if bits <= RADIX_BITS:
        return rows @ _factors(bits, bits)
    count, radix, rest = rows.shape[0], 2**RADIX_BITS, 2 ** (bits - RADIX_BITS)
    stage = np.matmul(_factors(RADIX_BITS, RADIX_BITS), rows.reshape(count, radix, rest)) * _factors(RADIX_BITS, bits)
    inner = _transform_rows(stage.reshape(count * radix, rest), bits - RADIX_BITS)
    return np.ascontiguousarray(inner.reshape(count, radix, rest).transpose(0, 2, 1)).reshape(count, -1)


@lru_cache(maxsize=16)
def _factors(row_bits: int, bits: int) -> Complex:
    """Return e^(−2πi·jk/2^bits) for j below 2^row_bits and k below 2^(bits − row_bits), or a square of that size."""
    columns = 2 ** (bits - row_bits) if bits > row_bits else 2**row_bits
    exponents = np.arange(2**row_bits)[:, None] * np.arange(columns)
    return roots_of_unity(exponents, bits)


def roots_of_unity(exponents: NDArray[np.int64], bits: int) -> Complex:
    """Return e^(−2πi·k/2^bits) for each exponent k, within five units of rounding."""
    k = exponents % 2**bits
    if bits <= TABLE_BITS:
        return np.asarray(_root_table(bits, 0)[k])
    return np.asarray(_root_table(bits, TABLE_BITS)[k >> TABLE_BITS] * _root_table(bits, 0)[k & (2**TABLE_BITS - 1)])


@lru_cache
def _root_table(bits: int, step_bits: int) -> Complex:
    """Return e^(−2πi·j·2^(step_bits − bits)) for as many j as `roots_of_unity` needs, rounded from balls."""
    count = 2 ** (bits - step_bits) if step_bits else 2 ** min(bits, TABLE_BITS)
    angles = ((arb(-2 * j) / 2 ** (bits - step_bits)).sin_cos_pi() for j in range(count))
    return np.array([complex(float(cosine.mid()), float(sine.mid())) for sine, cosine in angles])


class Spectrum:
    """The transform of a composed lattice at the frequencies 0 … n/2, n = 2^bits, with a bound on its errors."""

    def __init__(self, steps: Sequence[tuple[LatticeStep, int]], spacing: float, tilt: float, bits: int) -> None:
        self._spacing, self._tilt, self._bits = spacing, tilt, bits
        self._offset, counts = sum(count * step.first for step, count in steps), [count for _, count in steps]
        half, noise = 2 ** (bits - 1) + 1, 1.01 * transform_error(bits)
        transforms = [transform(step.weights, bits)[:half] for step, _ in steps]
        logs = [np.log(np.abs(each) + noise) for each in transforms]
        moduli = sum((count * log for count, log in zip(counts, logs, strict=True)), np.zeros(half))
        self._indices = np.flatnonzero(moduli > SILENT)
        # |φ̂ᵏ − φᵏ| ≤ k·e·(|φ̂| + e)^(k−1), and each of fewer than k products of complex numbers rounds by √5·u.
        exponents = moduli[self._indices] - np.min(logs, axis=0)[self._indices]
        self._errors = 1.01 * sum(counts) * (noise + 4 * UNIT) * np.exp(exponents)
        self._values = np.ones(self._indices.size, dtype=np.complex128)
        for each, count in zip(transforms, counts, strict=True):
            self._values *= _raise_to_power(each[self._indices], count)

    def tail(self, epsilon: float) -> tuple[float, float]:
        """Return Σ_j weight_j·g_j and a bound on its error, g(x) = e^(−tilt(x−ε)) − e^(−(tilt+1)(x−ε)) for x > ε.

        g is wrapped around the n points. It is never negative, so this only adds to the sum. With z = e^(−2πik/n),
        a = e^(−tilt·h), b = e^(−(tilt+1)h) and d the distance from ε to the next point s, its transform is
        z^s·e^(−tilt·d)·[(1 − e^(−d)) + a(e^(−d) − e^(−h))z] / [(1 − az)(1 − bz)].
        """
        size, h, tilt = 2**self._bits, arb(self._spacing), arb(self._tilt)
        start = math.floor(Fraction(epsilon) / Fraction(self._spacing)) + 1
        d = arb(start) * h - arb(epsilon)
        here = float(((-tilt * d).exp() * (1 - (-d).exp())).mid())
        beyond = float(((-tilt * (d + h)).exp() * ((-d).exp() - (-h).exp())).mid())
        z = roots_of_unity(self._indices, self._bits)
        first, second = (gap + (1 - gap) * (1 - z) for gap in (_gap(tilt * h), _gap((tilt + 1) * h)))
        shift = roots_of_unity(self._indices * ((start - self._offset) % size), self._bits)
        g = (here + beyond * z) / (first * second) * shift
        share = np.where((self._indices == 0) | (self._indices == size // 2), 1.0, 2.0) / size
        terms = share * (self._values * g.conj()).real
        largest = share * (here + beyond) / np.abs(first * second)  # not below |g|
        relative = (8 / np.abs(first) + 8 / np.abs(second) + 32 + terms.size) * UNIT
        error = float(((self._errors + np.abs(self._values) * relative) * largest).sum())
        return float(terms.sum()), 1.02 * error + math.exp(SILENT + 1) / _gap(tilt * h)


def _gap(exponent: arb) -> float:
    return float((1 - (-exponent).exp()).mid())


def _raise_to_power(values: Complex, count: int) -> Complex:
    """Return values^count by repeated squaring: fewer than `count` roundings of a product in any path."""
    result, square = np.ones_like(values), values
    while count:
        result = result * square if count & 1 else result
        count >>= 1
        square = square * square if count else square
    return result
