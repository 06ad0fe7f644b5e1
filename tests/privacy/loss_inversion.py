"""δ(ε) of composed steps by inverting the moment generating function of the privacy loss along a vertical line.

With M(s) = E_P e^(s·loss) of the whole composition and any c > 0 at which it is finite,

    δ(ε) = E_P (1 − e^(ε − loss))₊ = 1/(2πi) ∫ M(s) e^(−sε) / (s(s + 1)) ds   over s = c + it.

The trapezoidal rule of step Δ gives Σ_k e^(ckX) δ(ε + kX) with X = 2π/Δ, so X is chosen to make all but k = 0
negligible. Where M falls too slowly a weight e^(−(ht)²/2) ends the integral. It smooths e^(cε) δ(ε) over a width h;
doubling h shows how much that changes. Nothing here is shared with the accountants: losses come from the densities,
and no loss is put on a grid.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

Array = NDArray[np.float64]

NODES, WEIGHTS = (np.asarray(each) for each in np.polynomial.legendre.leggauss(16))
PER_PANEL = 10.0  # radians that e^(i·t·loss) may turn within a panel of 16 nodes
NEGLIGIBLE = 1e-10  # relative, of each term that is left out
MOST_FREQUENCIES = 2**18
MOST_NODES = 2**20
DIRECT = 3e7  # products of nodes and frequencies that are added up one by one; beyond it by a fast transform
SMOOTHING = (1e-3, 1e-4, 1e-5, 1e-6)  # the width h that suffices, in units of ε, until ENOUGH is reached
ENOUGH = 1e-4  # relative uncertainty of ε
TILTS = np.geomspace(1e-4, 1e9, 150)
VANISHED = -1e4  # logarithm of a transform that is 0
DOUBLE = 5e-16  # relative error of each step's transform, and so of δ for each step; over the tilt, that of ε
STEEPEST = 150.0  # tilt × ε; where losses have a maximum, the best tilt near it has none
DEEP = 44.0  # e^−44 of the largest weight is nothing


@dataclass(frozen=True)
class Step:
    """One step of one direction: the losses of draws x, their log density under P, and where both bend.

    Attributes:
        loss: The privacy loss at x.
        log_density: Under P, at x.
        ends: The range of x, and inner points where the loss or its slope jumps.
        width: Panels of this width resolve both functions.
        atoms: Losses that have a mass of their own under P, with this mass.
        lowest: The smallest loss.
        missing: P's and Q's mass of the losses that were cut off above.
        unbounded: Whether x goes on beyond its range.
        count: How many times the step happens.
    """

    loss: Callable[[Array], Array]
    log_density: Callable[[Array], Array]
    ends: tuple[float, ...]
    width: float
    count: int
    atoms: tuple[tuple[float, float], ...] = ()
    lowest: float = -math.inf
    missing: tuple[float, float] = (0.0, 0.0)
    unbounded: bool = False

    def log_moment(self, losses: Array, logs: Array, tilt: float) -> float:
        """Return log E e^(tilt·loss), by nodes in the order of x; infinite where they end too early for the tilt."""
        powers = tilt * losses
        exponents = logs + powers
        at = int(exponents.argmax())
        drawn = losses.size - len(self.atoms)
        if self.unbounded and at < drawn and not 0.02 < at / drawn < 0.98:
            return math.inf
        if powers.max() < 30:
            return math.log1p(float((np.exp(logs) * np.expm1(powers)).sum()) - self.missing[0])
        return float(exponents[at]) + math.log(float(np.exp(exponents - exponents[at]).sum()))

    def cut(self, highest: float) -> "Step":
        """Return the step without its losses above `highest`; its loss must grow with x."""
        start, *_, end = self.ends
        if self.atoms or float(self.loss(np.array([end]))[0]) <= highest:
            if any(loss > highest for loss, _ in self.atoms):
                raise TooFine
            return self
        at = brentq(lambda x: float(self.loss(np.array([x]))[0]) - highest, start, end, xtol=1e-14)
        losses, logs = replace(self, ends=(at, end)).nodes()
        missing = float(np.exp(logs).sum()), float(np.exp(logs - losses).sum())
        return replace(self, ends=(start, at), missing=missing, unbounded=False)

    def nodes(self, turns: float = 0.0, tilt: float | None = None) -> tuple[Array, Array]:
        """Return losses and log masses under P, so dense that a panel covers at most PER_PANEL/turns of loss.

        With a tilt, only those that matter under e^(tilt·loss).
        """
        pairs = zip(self.ends, self.ends[1:], strict=False)
        pieces = [np.linspace(start, end, 2 + int((end - start) / self.width)) for start, end in pairs]
        low, high = np.concatenate([p[:-1] for p in pieces]), np.concatenate([p[1:] for p in pieces])
        if tilt is not None:
            middle = (low + high) / 2
            weight = self.log_density(middle) + tilt * self.loss(middle)
            kept = weight > weight.max() - DEEP - 10
            low, high = low[kept], high[kept]
        inside = (high - low) * 1e-9
        turned = np.abs(self.loss(high - inside) - self.loss(low + inside)) * turns
        parts = np.maximum(1, np.ceil(turned / PER_PANEL)).astype(int)
        if 16 * int(parts.sum()) > MOST_NODES:
            raise TooFine
        index = np.repeat(np.arange(low.size), parts)
        within = np.arange(index.size) - np.repeat(np.cumsum(parts) - parts, parts)
        size = ((high - low) / parts)[index]
        x = (low[index][:, None] + size[:, None] * (within[:, None] + (NODES + 1) / 2)).ravel()
        logs = self.log_density(x) + np.log(size[:, None] * WEIGHTS / 2).ravel()
        atoms = np.array(self.atoms).reshape(-1, 2)
        return np.append(self.loss(x), atoms[:, 0]), np.append(logs, np.log(atoms[:, 1]))


class TooFine(Exception):
    """The transform would need more nodes than fit."""


class Reference(NamedTuple):
    """An ε, and how far off it may be."""

    epsilon: float
    uncertainty: float


def is_far_below(steps: Sequence[Step], near: float, delta: float) -> bool:
    """Return whether Chernoff's bound shows that δ holds at nine tenths of `near` already."""
    coarse = [(step, step.nodes()) for step in steps]
    return any(
        sum(step.count * step.log_moment(*nodes, tilt) for step, nodes in coarse) - tilt * 0.9 * near < math.log(delta)
        for tilt in TILTS
    )


def spread(steps: Sequence[Step]) -> float:
    """Return the root of the losses' mean square, of all steps together."""
    total = 0.0
    for step in steps:
        losses, logs = step.nodes()
        total += step.count * float((np.exp(logs) * losses**2).sum())
    return math.sqrt(total)


def invert(steps: Sequence[Step], near: float, delta: float) -> Reference:
    """Return the ε of the steps at this δ, searched from `near`.

    Where rare huge losses make the transform too wide, losses above 1.5·near and all that the other steps can win back
    are cut off and added exactly.
    """
    lowest = sum(step.count * step.lowest for step in steps)
    best = Reference(math.nan, math.inf)
    for cut in (False, True) if lowest > -10 * max(near, 0.1) else (False,):
        for smoothing in SMOOTHING:
            try:
                kept = [step.cut(1.5 * near - lowest) for step in steps] if cut else steps
                inversion = Inversion(kept, near, delta, smoothing)
            except TooFine:
                break
            best = min(best, inversion.epsilon(near), key=lambda each: each.uncertainty)
            if best.uncertainty <= ENOUGH * near:
                return best
            if inversion.is_exhausted:
                break
    if not math.isfinite(best.uncertainty):
        raise TooFine
    return best


class Inversion:
    """The composition of one direction's steps, for ε near one value."""

    def __init__(self, steps: Sequence[Step], near: float, delta: float, smoothing: float) -> None:
        self._steps = steps
        self._delta = delta
        self._coarse = [step.nodes() for step in steps]
        self._tilt = self._choose_tilt(near)
        self._cumulant_here = self._cumulant(self._tilt)
        self._period = self._choose_period(near)
        self._frequencies, self._logs, self._smoothing = self._transform(smoothing * near)

    def _cumulant(self, tilt: float) -> float:
        return sum(
            step.count * step.log_moment(*nodes, tilt) for step, nodes in zip(self._steps, self._coarse, strict=True)
        )

    def _objective(self, tilt: float, near: float) -> float:
        return self._cumulant(tilt) - tilt * near - math.log(tilt) - math.log1p(tilt)

    def _choose_tilt(self, near: float) -> float:
        """Return the tilt of the saddle point, away from those at which the nodes end too early."""
        tilts = TILTS[np.less(TILTS, STEEPEST / near)]
        values = np.array([self._objective(float(tilt), near) for tilt in tilts])
        inside = np.less(tilts, 0.7 * tilts[np.isfinite(values)].max())
        return float(tilts[inside][int(np.argmin(values[inside]))])

    def _choose_period(self, near: float) -> float:
        left = (-math.log(self._delta) - math.log(NEGLIGIBLE)) / self._tilt
        right = min(
            (self._cumulant(steeper) - steeper * near - math.log(self._delta * NEGLIGIBLE)) / (steeper - self._tilt)
            for steeper in self._tilt * np.geomspace(1.02, 30, 40)
        )
        return max(left, right, 1e-9)

    def _transform(self, smoothing: float) -> tuple[Array, NDArray[np.complex128], float]:
        """Return frequencies, log of M(c + it)/M(c) there, and the width of the smoothing (0 for none)."""
        step = 2 * math.pi / self._period
        count = 256
        coarser: tuple[Array, NDArray[np.complex128], float] | None = None
        while True:
            frequencies: Array = step * np.arange(count, dtype=np.float64)
            try:
                logs = self._log_ratio(frequencies)
            except TooFine:
                if coarser is None:
                    raise
                return coarser
            tail = logs.real[-count // 4 :].max() - math.log(frequencies[-1] / self._tilt)
            if tail < math.log(NEGLIGIBLE):
                return frequencies, logs, 0.0
            finest = 6.5 / float(frequencies[-1])
            if 2 * count > MOST_FREQUENCIES or finest < smoothing:
                return frequencies, logs, finest
            coarser = frequencies, logs, finest
            count *= 4

    @property
    def is_exhausted(self) -> bool:
        """Whether less smoothing would take more frequencies than allowed."""
        return 2 * self._frequencies.size > MOST_FREQUENCIES or not self._smoothing

    def _log_ratio(self, frequencies: Array) -> NDArray[np.complex128]:
        total = np.zeros(frequencies.size, dtype=np.complex128)
        for step in self._steps:
            losses, logs = step.nodes(float(frequencies[-1]), self._tilt)
            powers = logs + self._tilt * losses
            weights = np.exp(powers - powers.max())
            weights /= weights.sum()
            kept = weights > 1e-19
            losses, weights = losses[kept], weights[kept]
            if losses.size * frequencies.size <= DIRECT:
                excess = _add_up(losses, weights, frequencies)
            else:
                excess = _fast_transform(losses, weights, frequencies) - 1
            with np.errstate(divide="ignore"):
                log_transform = np.log1p(excess)
            log_transform[np.isneginf(log_transform.real)] = VANISHED
            total += step.count * log_transform
        return total

    def delta(self, epsilon: float, smoothing: float | None = None) -> float:
        """Return δ(ε)."""
        width = self._smoothing if smoothing is None else smoothing
        s = self._tilt + 1j * self._frequencies
        exponents = self._logs - 1j * self._frequencies * epsilon - (width * self._frequencies) ** 2 / 2
        terms = (np.exp(exponents) / (s * (s + 1))).real
        scale = min(700.0, self._cumulant_here - self._tilt * epsilon)
        return self._far_above(epsilon) + float((terms.sum() - terms[0] / 2) * 2 / self._period) * math.exp(scale)

    def _far_above(self, epsilon: float) -> float:
        """Return δ of the compositions with a loss that was cut off: they exceed ε whatever the other losses are."""
        if not any(step.missing[0] for step in self._steps):
            return 0.0
        p, q = (-math.expm1(sum(step.count * math.log1p(-step.missing[i]) for step in self._steps)) for i in range(2))
        return p - math.exp(epsilon) * q

    def epsilon(self, near: float) -> Reference:
        """Return the ε with this δ, searched from `near`; the uncertainty is what twice the smoothing changes."""
        found = self._solve(near, self._smoothing)
        lost = 1e-8 * found + DOUBLE * sum(step.count for step in self._steps) / self._tilt
        if not self._smoothing:
            return Reference(found, lost)
        doubled = self._solve(near, 2 * self._smoothing)
        return Reference(found, 2 * abs(doubled - found) + lost)

    def _solve(self, near: float, smoothing: float) -> float:
        target = math.log(self._delta)

        def excess(at: float) -> float:
            return math.log(max(self.delta(at, smoothing), 1e-320)) - target

        low, high = near * 0.999, near * 1.001
        while excess(low) <= 0:
            if low < 1e-4 * near:
                return 0.0
            low, high = low * 0.8, low
        while excess(high) > 0:
            low, high = high, high * 1.2
        return float(brentq(excess, low, high, rtol=1e-11, xtol=1e-16))


def _add_up(losses: Array, weights: Array, frequencies: Array) -> NDArray[np.complex128]:
    """Return Σ w(e^(itL) − 1), with all digits where it is small."""
    total = np.empty(frequencies.size, dtype=np.complex128)
    block = max(1, int(2e6 / losses.size))
    for start in range(0, frequencies.size, block):
        angles = np.outer(frequencies[start : start + block], losses)
        half = np.sin(angles / 2)
        total[start : start + block] = -2 * (half * half) @ weights + 1j * (np.sin(angles) @ weights)
    return total


def _fast_transform(losses: Array, weights: Array, frequencies: Array) -> NDArray[np.complex128]:
    """Return Σ w e^(itL) at equidistant frequencies from 0, by spreading onto a finer grid with a Gaussian kernel."""
    count, reach = frequencies.size, 14
    size = 6 * count  # an oversampling of 3 over the 2·count frequencies from −count to count
    modes, oversampling = 2 * count, 3.0
    tau = math.pi * reach / (modes**2 * oversampling * (oversampling - 0.5))
    angle = np.mod(losses * frequencies[1], 2 * math.pi)
    spacing = 2 * math.pi / size
    nearest = np.floor(angle / spacing).astype(np.int64)
    offset = angle - nearest * spacing
    grid = np.zeros(size)
    for shift in range(-reach + 1, reach + 1):
        kernel = np.exp(-((offset - shift * spacing) ** 2) / (4 * tau))
        grid += np.bincount((nearest + shift) % size, weights * kernel, size)
    transform = np.conj(np.fft.rfft(grid)[:count]) / size
    return np.asarray(transform * math.sqrt(math.pi / tau) * np.exp(tau * np.arange(count) ** 2.0))
