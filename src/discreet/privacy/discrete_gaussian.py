"""Sums of discrete Gaussian noise: what their privacy is, although they are not discrete Gaussian themselves.

Lattice units, as in skellam.py. `variance` is σ² of one share; a sum of n shares has the shape of a discrete Gaussian
with nσ², but for a factor that lies within e^±τ/2 everywhere.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEAST_VARIANCE = 0.5  # from which the factor 5 in τ is proven
TERMS = 10_000


def tau(variance: float, shares: int) -> float:
    """Return τ = 10·Σ e^(−2π²σ²·k/(k+1)), k = 1 … n−1 (Kairouz, Liu & Steinke, 2021, Thm 1); infinite for σ² < ½.

    Guarantee: |log(P[sum = x]/P[N_Z(0, nσ²) = x])| ≤ τ/2 for every integer x.

    The argument. By Poisson summation a discrete Gaussian of variance s has the normaliser √(2πs)(1 + a(s)), with
    a(s) = 2Σ_m e^(−2π²sm²). Adding one with σ² to one with kσ² gives the density of (k+1)σ² times
    (1 + a((k+1)σ²))(1 + θ)/((1 + a(σ²))(1 + a(kσ²))), where |θ| ≤ a(v), v = σ²k/(k+1). All these a's are at most a(v),
    and for v ≥ ¼ the logarithm is within 5·e^(−2π²v). Closeness up to a factor survives adding the next share.
    """
    if variance < LEAST_VARIANCE:
        return math.inf if shares > 1 else 0.0
    k = np.arange(1.0, min(shares, TERMS))
    listed = float(np.exp(-2 * math.pi**2 * variance * k / (k + 1)).sum())
    rest = max(0, shares - TERMS) * math.exp(-2 * math.pi**2 * variance * TERMS / (TERMS + 1))  # the terms fall
    return 10 * (listed + rest)


def rdp_bound(orders: Floats | Sequence[float], variance: float, shares: int, l2: float, dimension: int) -> Floats:
    """Return Rényi divergence bounds of the sum of `shares` discrete Gaussian vectors, one for each order above 1.

    Guarantee: an upper bound for every integer vector of this L2 norm. The least of three, with e = l2/√(nσ²) and c the
    number of coordinates that can move, at most d and, since they move by integers, at most l2²:

    - α·e²/2 + τc: of the likelihood ratio's (α−1)th power, e^(τ(α−1)) is paid for each coordinate that moves. What is
      left is a moment of the sum itself, at most a Gaussian's: Σ_k e^(−(k−x)²/2σ²) is largest at x = 0.
    - α·(e + τ√c)²/2: from the sum to the discrete Gaussian, by its shift, and back: τ/2 + e_j + τ/2 in a coordinate.
      Roots of concentrated divergences add along a path (Bun & Steinke, 2016), their squares over coordinates.
    - α·l2²/2σ²: one share alone; adding the others only post-processes it.
    """
    alpha = np.asarray(orders, dtype=np.float64)
    whole, excess = l2 / math.sqrt(shares * variance), tau(variance, shares)
    moved = min(dimension, math.floor(l2 * l2))
    along = alpha * (whole + excess * math.sqrt(moved)) ** 2 / 2
    alone = alpha * (l2 * l2 / (2 * variance))
    return np.asarray(np.minimum(np.minimum(alpha * whole**2 / 2 + excess * moved, along), alone))
