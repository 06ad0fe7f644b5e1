"""Dominating pairs on a line: how much mass two distributions have between given privacy losses, with error bounds.

A pair is (P, Q), and its loss is log(dP/dQ). Masses of narrow cells are three-point Gauss–Legendre sums with their
remainder; those of wide and unbounded cells are enclosed by balls.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.verify.balls import UNIT, middle, normal_mass

Array: TypeAlias = NDArray[np.float64]
Components: TypeAlias = tuple[tuple[float, float], ...]  # weights and means, by increasing mean

WIDEST = 0.02  # cells wider than this, in standard deviations, are enclosed by balls
FARTHEST = 38.0  # standard deviations; a Gaussian has less than 1e-300 beyond
ROUNDINGS = 16 * UNIT  # more than any formula below rounds one number
NODES = ((0.5 - math.sqrt(0.15), 5 / 18), (0.5, 8 / 18), (0.5 + math.sqrt(0.15), 5 / 18))  # Gauss–Legendre on (0, 1)


class Masses(NamedTuple):
    """The masses under P and Q of cells of loss, of which the first and the last are unbounded.

    Guarantee: masses are within the relative `error` and 1e-300, and losses at most `slack` outside their cell.
    """

    p: Array
    q: Array
    error: Array
    slack: float


class Atom(NamedTuple):
    """A loss that has positive probability; each number is within sixteen roundings."""

    loss: float
    p: float
    q: float


@dataclass(frozen=True)
class GaussianMixtures:
    """Mixtures of unit Gaussians. No mean of P is below 0 and none of Q above, so the loss increases."""

    p: Components
    q: Components
    unlisted: float = 0.0  # mass under P that is in no component, and counts as an infinite loss
    atoms: tuple[Atom, ...] = ()

    def masses(self, edges: Array) -> Masses:
        x, size = self._solve(edges), self._largest_mean
        inside = np.abs(x) < FARTHEST + size
        off = np.abs(self._loss(x[inside]) - edges[inside]) + ROUNDINGS * (1 + (np.abs(x[inside]) + size) * size)
        ends = np.concatenate([[-math.inf], x, [math.inf]])
        with np.errstate(invalid="ignore"):
            width = np.nan_to_num(np.diff(ends), nan=0.0, posinf=math.inf)  # no width between two infinite ends
        narrow = width <= WIDEST
        finite = np.where(np.isfinite(ends), np.abs(ends), 0.0)
        farthest = np.maximum(finite[:-1], finite[1:]) + size
        # |φ⁽⁶⁾(x)| ≤ (x⁶ + 3x⁴ + 9x² + 15)·φ(x), and φ changes by at most e^(width·farthest) within the cell.
        w, far = width[narrow], farthest[narrow]
        error = ROUNDINGS * (2 + farthest**2)
        error[narrow] += w**6 / 2016000 * (far**6 + 3 * far**4 + 9 * far**2 + 15) * np.exp(w * far)
        low = np.where(np.isfinite(ends[:-1]), ends[:-1], 0.0)[narrow]
        sides = []
        for side in (self.p, self.q):
            mass = np.zeros(narrow.size)
            mass[narrow] = w * sum(share * _density(side, low + at * w) for at, share in NODES)
            for i in np.flatnonzero(~narrow):
                parts = (weight * normal_mass(ends[i], ends[i + 1], mean) for weight, mean in side)
                mass[i] = middle(sum(parts, arb(0)))
            sides.append(mass)
        sides[0][-1] += self.unlisted
        return Masses(sides[0], sides[1], error, float(off.max(initial=0.0)))

    def sketch(self) -> tuple[Array, Array]:
        x = np.linspace(-15.0, 15.0 + self._largest_mean, 6001)
        return self._loss(x), _density(self.p, x) * (x[1] - x[0])

    @property
    def _largest_mean(self) -> float:
        return max(abs(mean) for _, mean in (*self.p, *self.q))

    def _loss(self, x: Array) -> Array:
        return _log_ratio(self.p, x)[0] - _log_ratio(self.q, x)[0]

    def _solve(self, losses: Array) -> Array:
        """Return about where the loss has these values, not beyond `FARTHEST`. `masses` measures how nearly."""
        reach = FARTHEST + self._largest_mean
        table = np.linspace(-reach, reach, 20001)
        at_table = np.maximum.accumulate(self._loss(table))
        x = np.interp(losses, at_table, table)
        for _ in range(6):
            (above, slope), (below, other_slope) = _log_ratio(self.p, x), _log_ratio(self.q, x)
            x = x - np.clip((above - below - losses) / np.maximum(slope - other_slope, 1e-300), -0.03, 0.03)
        x = np.clip(np.maximum.accumulate(x), -reach, reach)
        (weight, mean), (other_weight, other_mean) = self.p[0], self.q[0]
        if mean == other_mean:  # no loss is below this one
            x[losses <= math.log(weight / other_weight)] = -math.inf
        x[losses <= at_table[0]] = np.minimum(x[losses <= at_table[0]], -reach)
        return np.asarray(np.where(losses >= at_table[-1], reach, x))


def _log_ratio(components: Components, x: Array) -> tuple[Array, Array]:
    """Return the logarithm of the mixture's density over N(0, 1)'s, and its slope."""
    logs = np.array([math.log(weight) + mean * x - mean * mean / 2 for weight, mean in components])
    largest = logs.max(axis=0)
    parts = np.exp(logs - largest)
    total = parts.sum(axis=0)
    return largest + np.log(total), np.array([mean for _, mean in components]) @ parts / total


def _density(components: Components, x: Array) -> Array:
    parts = (weight * np.exp(-((x - mean) ** 2) / 2) for weight, mean in components)
    return np.asarray(sum(parts, np.zeros_like(x)) / math.sqrt(2 * math.pi))


@dataclass(frozen=True)
class SampledLaplace:
    """(1−q)Q₀ + qP₀ against Q₀, with Laplace noise of scale 1 around `shift` for P₀ and around 0 for Q₀."""

    shift: float
    rate: float = 1.0

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """The mass beyond both centres, where the loss is constant."""
        far = math.exp(-self.shift) / 2
        sides = ((-self.shift, far, 0.5), (self.shift, 0.5, far))
        return tuple(_mix_atom(self.rate, Atom(*side)) for side in sides)

    def masses(self, edges: Array) -> Masses:
        """Between the centres the density at x is e^(−x)/2 under Q₀ and e^(x−s)/2 under P₀, and ℓ = 2x − s."""
        x = np.clip((unmix_losses(self.rate, edges) + self.shift) / 2, 0.0, self.shift)
        inside = (x > 0) & (x < self.shift)
        off = np.abs(mix_losses(self.rate, 2 * x[inside] - self.shift) - edges[inside])
        ends = np.concatenate([[0.0], x, [self.shift]])
        share = -np.expm1(-np.diff(ends)) / 2
        q = share * np.exp(-ends[:-1])
        p = (1 - self.rate) * q + self.rate * share * np.exp(ends[1:] - self.shift)
        rounding = ROUNDINGS * (2 + self.shift)
        return Masses(p, q, np.full(p.size, rounding), float(off.max(initial=0.0)) + rounding)

    def sketch(self) -> tuple[Array, Array]:
        x = np.linspace(0.0, self.shift, 4001)[1:] - self.shift / 8000
        losses = mix_losses(self.rate, 2 * x - self.shift)
        masses = np.exp(losses - x) / 2 * (self.shift / 4000)
        ends = np.array(self.atoms)
        return np.append(losses, ends[:, 0]), np.append(masses, ends[:, 1])


@dataclass(frozen=True)
class ReversedPair:
    """The same pair with P and Q exchanged: every loss changes its sign."""

    pair: "Pair"

    @property
    def atoms(self) -> tuple[Atom, ...]:
        return tuple(Atom(-atom.loss, atom.q, atom.p) for atom in self.pair.atoms)

    def masses(self, edges: Array) -> Masses:
        p, q, error, slack = self.pair.masses(-edges[::-1])
        return Masses(q[::-1], p[::-1], error[::-1], slack)

    def sketch(self) -> tuple[Array, Array]:
        losses, masses = self.pair.sketch()
        return -losses, masses * np.exp(-losses)


@dataclass(frozen=True)
class Replacement:
    """The symmetric pair with δ'(log(1 + q(e^ε − 1))) = q·δ(ε) for ε ≥ 0, where δ is that of the symmetric `base`.

    Each mass of the base at a loss ℓ > 0, p under P and r under Q, becomes (1−q)r + qp against r at
    ℓ' = log(1 − q + q·e^ℓ), the same exchanged at −ℓ', and (1−q)(p − r) at 0. `advantage` is the sum of p − r.
    """

    base: GaussianMixtures | SampledLaplace
    rate: float
    advantage: float

    @property
    def atoms(self) -> tuple[Atom, ...]:
        still = (1 - self.rate) * self.advantage
        ahead = [_mix_atom(self.rate, atom) for atom in self.base.atoms if atom.loss > 0]
        return (Atom(0.0, still, still), *ahead, *(Atom(-at, q, p) for at, p, q in ahead))

    def masses(self, edges: Array) -> Masses:
        """`edges` contain 0."""
        above, below = self._masses_above(edges[edges >= 0]), self._masses_above(-edges[edges <= 0][::-1])
        p, q = np.append(below.q[::-1], above.p), np.append(below.p[::-1], above.q)
        return Masses(p, q, np.append(below.error[::-1], above.error), max(above.slack, below.slack))

    def _masses_above(self, edges: Array) -> Masses:
        """Return the masses above the first edge, which is 0."""
        inner = unmix_losses(self.rate, edges)
        p, q, error, slack = self.base.masses(inner)
        off = np.abs(mix_losses(self.rate, inner) - edges) + ROUNDINGS * (1 + np.abs(edges))
        mixed = (1 - self.rate) * q + self.rate * p
        return Masses(mixed[1:], q[1:], error[1:] + ROUNDINGS, slack + float(off.max()))

    def sketch(self) -> tuple[Array, Array]:
        losses, p = self.base.sketch()
        p, mixed = p[losses > 0], mix_losses(self.rate, losses[losses > 0])
        q = p * np.exp(-losses[losses > 0])
        still = (1 - self.rate) * self.advantage
        return np.concatenate([mixed, -mixed, [0.0]]), np.concatenate([q * np.exp(mixed), q, [still]])


def _mix_atom(rate: float, atom: Atom) -> Atom:
    loss = mix_losses(rate, np.array([atom.loss]))[0]
    return Atom(float(loss), (1 - rate) * atom.q + rate * atom.p, atom.q)


def mix_losses(rate: float, losses: Array) -> Array:
    """Return log(1 − q + q·e^ℓ)."""
    return np.where(losses < 600, np.log1p(rate * np.expm1(np.minimum(losses, 600.0))), losses + math.log(rate))


def unmix_losses(rate: float, losses: Array) -> Array:
    """Return the ℓ at which log(1 − q + q·e^ℓ) has these values; −∞ where there is none."""
    with np.errstate(divide="ignore"):
        small = np.log1p(np.maximum(np.expm1(np.minimum(losses, 600.0)) / rate, -1.0))
    return np.where(losses < 600, small, losses - math.log(rate))


# Each has atoms, which other than at 0 are at the extreme losses; `masses` between increasing losses, without the
# atoms; and a `sketch` of losses and masses under P, to decide where to look.
Pair: TypeAlias = GaussianMixtures | SampledLaplace | ReversedPair | Replacement
