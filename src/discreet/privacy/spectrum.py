"""A composed privacy-loss distribution on a grid, and its ε, δ and attack rates."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.privacy.noise_pairs import Array
from discreet.privacy.sampling_schemes import Atoms

LARGEST_GRID = 2**20  # points of a composition; beyond it the grid is made coarser, which only costs tightness
LARGEST_STEP = 2**17  # points of one step, likewise
LEFT_OUT = 1e-12  # of the tilted mass, at most, on each side of the window; counted
ROUNDING = 1e-9  # relative, far above what 1e6-fold composition in doubles loses
QUADRATURE = 1e-12  # relative, what a Gaussian step's mass may be off by; of more than MANY_STEPS it is in ROUNDING
MANY_STEPS = 10**5  # beyond it the caller integrates each step to the last digit
LAST_DIGITS = 2e-15  # relative error of tilt·loss, and so an absolute one of the logarithm of a mass
TRANSFORM = 1e-15  # error of an FFT in doubles, in the Euclidean norm, and of each factor that is multiplied there
MOST_NOISE = 2e-10  # of the tilted mass, that transforms may lose to rounding in all; far above what is seen
DEEP = 50.0  # atoms whose tilted weight is below e^-50 of the largest are left out, and counted
REACH = 100.0  # how far from a loss e^(−loss) is formed, so that it can't overflow
BEHIND = 8.0  # how far below it tails are summed before they are asked for


@dataclass(frozen=True)
class Spectrum:
    """Tilted masses at (first + j)·spacing; the mass under P there is weights[j]·exp(log_scale − tilt·loss)."""

    spacing: float
    first: int
    weights: Array
    tilt: float
    log_scale: float
    left_out: float  # of the tilted mass, anywhere
    noise: float  # Euclidean norm of the weights' errors by rounding in the transforms
    near: float
    rounding: float
    is_finest: bool = False  # whether a finer grid would be too large

    def delta(self, epsilon: float) -> float:
        """Return Σ mass·(1 − e^(ε − loss)) over losses above ε, plus all mass that was left out."""
        return min(1.0, _exp(self._tails(epsilon).log_delta_and_slope(epsilon)[0]))

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε ≥ 0 with delta(ε) ≤ δ."""
        return self.solve(delta)[0]

    def solve(self, delta: float) -> tuple[float, float]:
        """Return the smallest ε ≥ 0 with delta(ε) ≤ δ, by Newton's method on log δ, and the density ratio there."""
        target, at, low, high = math.log(delta), self.near, 0.0, math.inf
        tails = self._tails(at)
        for _ in range(100):
            if not tails.floor <= at <= tails.around + REACH:
                tails = self._tails(at)
            value, slope = tails.log_delta_and_slope(at)
            low, high = (at, high) if value > target else (low, at)
            if slope:
                step = (target - value) / slope
            elif value > target and at >= (self.first + self.weights.size) * self.spacing:
                return math.inf, 0.0  # above all losses only what was left out remains, however large ε is
            else:
                step = math.inf if value > target else -math.inf  # no slope: bisect
            if abs(step) <= 1e-12 * max(at, 1e-3):
                break
            if at + step <= 0 and self.delta(0.0) <= delta:
                return 0.0, 0.0
            at = at + step if low < at + step < high else (low + min(high, 2 * low + 1)) / 2
        tails, margin = self._tails(at), 1e-10 * max(at, 1e-3)
        while tails.log_delta_and_slope(at)[0] > target:  # Newton ends near the root: take its safe side
            if at > (self.first + self.weights.size) * self.spacing:
                return math.inf, 0.0
            at, margin = at + margin, 2 * margin
        return at, tails.density_ratio(at)

    def true_positive_rate(self, rate: float) -> float:
        """Return P's mass, rounded up, on the largest losses that hold `rate` of Q's mass (Neyman–Pearson)."""
        losses = (self.first + np.arange(self.weights.size)) * self.spacing
        log_p = self.log_scale - self.tilt * losses
        p = np.cumsum((self.weights * np.exp(np.minimum(log_p, REACH)))[::-1])
        q = np.cumsum((self.weights * np.exp(np.minimum(log_p - losses, REACH)))[::-1])
        at = int(np.searchsorted(q, rate))
        if at == q.size:
            return 1.0
        before_p, before_q = (p[at - 1], q[at - 1]) if at else (0.0, 0.0)
        recognised = before_p + (rate - before_q) / (q[at] - before_q) * (p[at] - before_p)
        threshold = float(losses[-1 - at])
        lost = self.left_out + min(self.noise * math.sqrt(self.weights.size), MOST_NOISE)
        return min(1.0, float(recognised) * (1 + self.rounding) + lost * _exp(self.log_scale - self.tilt * threshold))

    @cached_property
    def lost(self) -> float:
        """The most that δ(ε) may lack, in units of e^(log_scale − tilt·ε).

        Tilted mass at a loss x above ε adds its g(x) = e^(−tilt·x)·(1 − e^(−x)) to δ in these units. So what was left
        out adds at most the maximum of g, and errors of a Euclidean norm at most that norm times the norm of g at the
        grid's points (Cauchy–Schwarz): ∫g² = 1/(2t(2t + 1)(t + 1)), and a sum of a unimodal function's values is at
        most its integral and its maximum.
        """
        t = self.tilt
        most = math.pow(t / (t + 1), t) / (t + 1)
        norm = most * math.sqrt(self.weights.size)
        if t > 0:
            norm = min(norm, math.sqrt(1 / (2 * t * (2 * t + 1) * (t + 1)) / self.spacing + most**2))
        return self.left_out * most + min(self.noise * norm, MOST_NOISE * most)

    def _tails(self, around: float) -> "_Tails":
        start = max(0, math.floor((around - BEHIND / (1 + abs(self.tilt))) / self.spacing) - self.first)
        start = min(start, self.weights.size)
        losses = (self.first + np.arange(start, self.weights.size)) * self.spacing - around
        p = self.weights[start:] * np.exp(-self.tilt * losses)
        return _Tails(
            spectrum=self,
            around=around,
            floor=(self.first + start) * self.spacing,
            first=self.first + start,
            excess=_sum_from_above(p * -np.expm1(-losses)),
            q=_sum_from_above(p * np.exp(-losses)),
        )


@dataclass(frozen=True)
class _Tails:
    """Σ over losses from each grid point up, in units that suit losses near `around`: of Q's mass times e^around, and
    of P's mass less that, which keeps its digits where all losses above ε are close to it.
    """

    spectrum: Spectrum
    around: float
    floor: float
    first: int
    excess: Array
    q: Array

    def log_delta_and_slope(self, epsilon: float) -> tuple[float, float]:
        whole, tilt = self.spectrum, self.spectrum.tilt
        at = min(max(0, math.floor(epsilon / whole.spacing) + 1 - self.first), self.q.size - 1)
        shift = epsilon - self.around
        lost = whole.lost * _exp(-tilt * shift)
        lowered = float(self.q[at]) * _exp(shift)
        excess = max(0.0, float(self.excess[at]) - float(self.q[at]) * math.expm1(min(shift, 700.0)))
        value = excess * (1 + whole.rounding) + lowered * LAST_DIGITS * abs(epsilon) + lost  # each loss may be rounded
        value = max(5e-324, value)
        return math.log(value) + whole.log_scale - tilt * self.around, -(lowered + abs(tilt) * lost) / value

    def density_ratio(self, epsilon: float) -> float:
        """Return f(ε)/(−δ'(ε)), where f is the density of the loss under P, roughly: averaged over four points."""
        spacing = self.spectrum.spacing
        at = math.floor(epsilon / spacing) + 1 - self.first
        low, high = max(0, at - 2), min(at + 2, self.q.size - 1)
        if not low < high:
            return 0.0
        slope = float(self.q[min(max(at, 0), self.q.size - 1)]) * _exp(epsilon - self.around)
        mass = float(self.excess[low] - self.excess[high] + self.q[low] - self.q[high])
        return mass / (4 * spacing) / slope if slope > 0 else 0.0


def _sum_from_above(terms: Array) -> Array:
    """Return the sum of each term and all after it, and 0 at the end."""
    return np.append(np.cumsum(terms[::-1])[::-1], 0.0)


def compose(
    atoms: Callable[[int, Array], Atoms],
    pilots: Sequence[Atoms],
    counts: Sequence[int],
    *,
    tilt: float,
    spacing: float,
    near: float,
    largest_step: int = LARGEST_STEP,
) -> Spectrum:
    """Put each step on the grid, tilted, and raise their transforms to their counts."""
    ranges = [_significant_range(pilot, tilt) for pilot in pilots]
    lost = sum(count * span.lost for count, span in zip(counts, ranges, strict=True))
    kept = [span.restrict(pilot) for span, pilot in zip(ranges, pilots, strict=True)]
    _, half = _window([(pilot.losses, tilt_masses(pilot, tilt)) for pilot in kept], counts, spacing)
    longest = max(span.high - span.low for span in ranges)
    finest = max(2.2 * half / LARGEST_GRID, longest / largest_step)
    spacing = max(spacing, finest)
    gridded = [_put_on_grid(atoms(i, span.edges(spacing)), span, tilt, spacing) for i, span in enumerate(ranges)]
    middle, half = _window([(step.losses(spacing), step.weights) for step in gridded], counts, spacing)
    points = 2 * half / spacing + 2
    size = _fast_size(math.ceil(points))
    single = sum(counts) == 1  # a step alone needs no transform, and so no window
    fits = single or sum(count * (step.weights.size - 1) for count, step in zip(counts, gridded, strict=True)) < size
    lowest = sum(count * step.first for count, step in zip(counts, gridded, strict=True))
    first = lowest if fits else math.floor((middle - half) / spacing)
    if single:
        weights, noise = gridded[0].weights, 0.0
    else:
        weights = np.roll(_compose_transforms(gridded, counts, size), -(first % size))
        noise = TRANSFORM * (30 + sum(counts))
    return Spectrum(
        spacing=spacing,
        first=first,
        weights=np.maximum(weights, 0.0),
        tilt=tilt,
        log_scale=sum(count * step.log_total for count, step in zip(counts, gridded, strict=True)),
        left_out=lost + (0.0 if fits else 2 * LEFT_OUT),
        noise=noise,
        near=near,
        rounding=_rounding(sum(counts)) + LAST_DIGITS * abs(tilt) * (abs(middle) + half),
        is_finest=spacing <= finest,
    )


def _rounding(steps: int) -> float:
    return ROUNDING * max(1.0, steps / 1e6) + (QUADRATURE * steps if steps <= MANY_STEPS else 0.0)


@dataclass(frozen=True)
class _Range:
    """The range of losses that is kept. At an end beyond which the pilot has no atoms, everything is kept."""

    low: float
    high: float
    lost: float
    open_below: bool
    open_above: bool

    def restrict(self, atoms: Atoms) -> Atoms:
        keep = (self.open_below | (atoms.losses >= self.low)) & (self.open_above | (atoms.losses <= self.high))
        return Atoms(atoms.losses[keep], atoms.log_masses[keep])

    def edges(self, spacing: float) -> Array:
        return spacing * np.arange(math.floor(self.low / spacing), math.ceil(self.high / spacing) + 1, dtype=np.float64)


def tilt_masses(atoms: Atoms, tilt: float) -> Array:
    """Return the atoms' masses under P, weighted by e^(tilt·loss) and normalised to 1."""
    logs = atoms.log_masses + tilt * atoms.losses
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _significant_range(pilot: Atoms, tilt: float) -> _Range:
    """Return the range that holds the tilted mass, and the share of it outside."""
    weights = tilt_masses(pilot, tilt)
    kept = pilot.losses[weights >= weights.max() * math.exp(-DEEP)]
    below, above = pilot.losses[pilot.losses < kept.min()], pilot.losses[pilot.losses > kept.max()]
    # one atom more on each side: a pilot's atoms are coarse, and a steep tilt may stand on one alone
    low = below.max() if below.size else kept.min()
    high = above.min() if above.size else kept.max()
    outside = (pilot.losses < low) | (pilot.losses > high)
    return _Range(
        float(low), float(high), float(weights[outside].sum()), open_below=not below.size, open_above=not above.size
    )


@dataclass(frozen=True)
class _GridMasses:
    first: int
    weights: Array  # sums to 1
    log_total: float

    def losses(self, spacing: float) -> Array:
        return spacing * (self.first + np.arange(self.weights.size, dtype=np.float64))


def _put_on_grid(atoms: Atoms, within: _Range, tilt: float, spacing: float) -> _GridMasses:
    """Split each atom onto its two neighbours on the grid, keeping its mass under P and under Q, and tilt."""
    losses, log_masses = within.restrict(atoms)
    cell = np.floor(losses / spacing)
    beyond = np.clip(losses - cell * spacing, 0.0, spacing)
    up = np.expm1(-beyond) / math.expm1(-spacing)
    down = np.exp(-beyond) * np.expm1(beyond - spacing) / math.expm1(-spacing)
    logs = log_masses + tilt * spacing * (cell + 1)  # at the upper neighbour, so that the lower one can't overflow
    peak = float(logs.max())
    mass = np.exp(logs - peak)
    first = int(cell.min())
    index = cell.astype(np.int64) - first
    length = int(index.max()) + 2
    lower, upper = mass * down * math.exp(-tilt * spacing), mass * up
    weights = np.bincount(index, lower, length) + np.bincount(index + 1, upper, length)
    # bincount adds one by one, and loses digits that matter for 10⁹ steps; sum() adds in pairs
    total = float((lower + upper).sum())
    return _GridMasses(first, weights / weights.sum(), peak + math.log(total))


def _window(parts: Sequence[tuple[Array, Array]], counts: Sequence[int], spacing: float) -> tuple[float, float]:
    """Return the middle and half-width of an interval that holds all but LEFT_OUT on each side, by Chernoff's bound.

    `parts` are the losses of each step and their weights.
    """
    middle = variance = 0.0
    centred = []
    for (losses, weights), count in zip(parts, counts, strict=True):
        mean = float((weights * losses).sum())
        middle += count * mean
        variance += count * float((weights * (losses - mean) ** 2).sum())
        centred.append((losses - mean, weights))
    deviation = math.sqrt(variance) + spacing
    longest = max(float(np.abs(losses).max()) for losses, _ in centred) + spacing
    rate = min(0.5 / deviation, 30 / longest)  # rare large losses need the second, as many small ones need the first
    right = left = math.inf
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        growth = [np.exp(rate * losses) for losses, _ in centred]
        while rate <= 10 / deviation:
            up = [(weights * grown).sum() for (_, weights), grown in zip(centred, growth, strict=True)]
            down = [(weights / grown).sum() for (_, weights), grown in zip(centred, growth, strict=True)]
            right = min(right, _chernoff(up, counts, rate))
            left = min(left, _chernoff(down, counts, rate))
            growth, rate = [grown * grown for grown in growth], 2 * rate
    return middle, max(left, right) + spacing


def _chernoff(moments: Sequence[float], counts: Sequence[int], rate: float) -> float:
    """Return the distance from its mean that a sum exceeds with probability at most LEFT_OUT, by its moments."""
    logs = sum(count * float(np.log(moment)) for count, moment in zip(counts, moments, strict=True))
    return (logs - math.log(LEFT_OUT)) / rate if math.isfinite(logs) else math.inf


def _compose_transforms(gridded: Sequence[_GridMasses], counts: Sequence[int], size: int) -> Array:
    """Return the composition's weights, cyclic in `size`: the product of the transforms, each to its count."""
    transform = np.ones(1, dtype=np.complex128)
    for step, count in zip(gridded, counts, strict=True):
        index = (step.first + np.arange(step.weights.size)) % size
        one = np.fft.rfft(np.bincount(index, step.weights, size))
        alive = np.abs(one) > math.exp(-100 / count)  # the rest would be below rounding anyway
        one[alive] **= count
        one[~alive] = 0
        transform = transform * one
    return np.fft.irfft(transform, size)


def _fast_size(points: int) -> int:
    """Return the next even length with small factors, which FFTs handle quickly."""
    factors = (1, 3, 5, 9, 15, 25, 27, 45, 75, 81, 125)
    return min(factor << max(1, math.ceil(math.log2(points / factor))) for factor in factors)


def _exp(x: float) -> float:
    return math.exp(min(x, 700.0))
