"""One step's privacy loss on a lattice, tilted, and never better for privacy than the step itself.

A cell's masses p under P and q under Q go to its two end points so that both are kept ("connect the dots", Doroshenko
et al. 2022). Weights are e^(tilt·loss)·mass, so that sums about a small δ keep their digits.
"""

import math
from dataclasses import dataclass

import numpy as np
from flint import arb

from discreet.verify.balls import UNIT
from discreet.verify.loss_pairs import ROUNDINGS, Array, Pair

UNDERFLOW = 1e-300  # more than any mass that a double rounds to nothing
ON_POINT = 1e-12  # an atom so near a lattice point is moved there, as slack


@dataclass(frozen=True)
class LatticeStep:
    """Weights at (first + j)·spacing; the mass under P there is at most weights[j]·e^(log_total − tilt·loss)."""

    first: int
    weights: Array
    log_total: arb
    unbounded: float  # the mass under P of losses above the lattice
    slack: float  # how far a loss may be from the one that it is counted as
    variance: float  # a bound on the tilted mean of the variance that the lattice adds to the loss
    excess: float  # a bound on the tilted mean of the relative error of the masses


def put_on_lattice(pair: Pair, spacing: float, first: int, last: int, tilt: float) -> LatticeStep:
    """Put a pair on the points first·spacing … last·spacing, tilted."""
    points = np.arange(first, last + 1, dtype=np.float64) * spacing
    p, q, error, slack = pair.masses(points)
    error = error + ROUNDINGS * (2 + np.abs(np.append(points, points[-1])))
    unbounded = float(p[-1] * (1 + error[-1])) + UNDERFLOW
    lowest = float(p[0] * (1 + error[0])) + UNDERFLOW  # moved up to the first point
    cells, p, q, error = np.arange(points.size - 1), p[1:-1], q[1:-1], error[1:-1]
    for atom in pair.atoms:
        at, mass = atom.loss / spacing - first, atom.p * (1 + ROUNDINGS) + UNDERFLOW
        off = abs(at - round(at)) * spacing
        is_on_point = off <= ON_POINT * max(1.0, abs(atom.loss))
        slack = max(slack, off + ROUNDINGS * (1 + abs(atom.loss))) if is_on_point else slack
        below = round(at) if is_on_point else math.floor(at)
        if below < 0:
            lowest += mass
        elif below + (not is_on_point) >= points.size:
            unbounded += mass
        else:  # a cell of its own, from the point below; the last point has no cell above, and needs none
            ratio = 1.0 if is_on_point else math.exp(points[below] - atom.loss)
            cells, p = np.append(cells, below), np.append(p, mass)
            error = np.append(error, ROUNDINGS * (2 - math.log(min(atom.p, atom.q) + UNDERFLOW)))
            q = np.append(q, mass * ratio * math.exp(-min(points[below], 700.0)))
    error = error + ROUNDINGS * (1 + np.abs(points[cells]))
    p = p * (1 + error) + UNDERFLOW
    relative_q = np.maximum(q * (1 - error - slack) - UNDERFLOW, 0.0) * np.exp(np.minimum(points[cells], 700.0))
    # low + high = p and low + high·e^(−spacing) = relative_q; all of p goes up where that asks for more.
    high = np.clip((p - relative_q) / -math.expm1(-spacing), 0.0, p)
    size = points.size + 1
    masses = np.bincount(cells, p - high, size) + np.bincount(cells + 1, high, size)
    spread = np.bincount(cells + 1, (p - high) * (high / p) * spacing**2, size)
    excess = np.bincount(cells + 1, 2 * (p * (error + slack) + UNDERFLOW), size)
    masses[0], excess[0] = masses[0] + lowest, excess[0] + lowest
    exponents = tilt * np.arange(first, last + 2) * spacing
    with np.errstate(divide="ignore"):
        largest = float(np.max(np.log(masses) + exponents))
    factors = np.exp(np.minimum(exponents - largest, 600.0)) * (1 + ROUNDINGS * (1 + np.abs(exponents) + abs(largest)))
    total = float((masses * factors).sum())
    return LatticeStep(
        first=first,
        weights=masses * factors / total * (1 + 4 * UNIT),
        log_total=arb(total).log() + largest,
        unbounded=unbounded,
        slack=slack + ROUNDINGS * spacing,
        variance=float((spread * factors).sum()) / total,
        excess=float((excess * factors).sum() / total + 4 * ROUNDINGS * (2 + np.abs(exponents).max() + abs(largest))),
    )
