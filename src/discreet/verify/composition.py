"""Enclose δ(ε) of a composition of dominating pairs, in one direction.

δ(ε) is the mean under P of f(Π v_i), with v_i = e^(−loss of step i) and f(v) = max(0, 1 − e^ε·v), which is convex and
decreasing. The lattice spreads each v_i around its mean, which can only raise δ. docs/notes/verify.md has the proofs.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb

from discreet.verify.balls import lower, upper
from discreet.verify.fourier import Spectrum
from discreet.verify.lattice import LatticeStep, put_on_lattice
from discreet.verify.loss_pairs import ROUNDINGS, Array, Pair

LEVELS = ((2e-5, 20), (4e-6, 21), (4e-7, 22))  # what the lattice may add to ε, and the most bits of its size
MOST_STEP_POINTS = 2**19  # of one step
NEGLIGIBLE = 1e-9  # of δ: what losses above the lattice may have
TAIL = 25.0  # −log of the tilted probability outside the window
SHIFT_TAIL = 10.0  # −log of the tilted probability that the lattice adds more to the loss than is allowed for below


@dataclass(frozen=True)
class Enclosure:
    """Bounds on δ at one ε."""

    low: float
    high: float


def enclose_delta(steps: Sequence[tuple[Pair, int]], epsilon: float, delta: float) -> Enclosure:
    """Enclose δ(ε) of pairs that are composed so often.

    The lattice becomes finer until the enclosure tells on which side `delta` is, or the lattice is as fine as it gets.
    """
    tops = [max((atom.loss for atom in pair.atoms), default=0.0) or math.inf for pair, _ in steps]
    if epsilon >= sum(top * count for top, (_, count) in zip(tops, steps, strict=True)) * (1 + ROUNDINGS * len(steps)):
        return Enclosure(0.0, 0.0)
    sketch, low, high = _Sketch(steps, delta), 0.0, 1.0
    for cost, bits in LEVELS:
        plan = sketch.plan(epsilon, cost, bits, tops[0] if len(set(tops)) == 1 else math.inf)
        found = _compose(steps, plan, epsilon)
        low, high = max(low, found.low), min(high, found.high)
        if not low <= delta < high:
            break
    return Enclosure(low, high)


@dataclass(frozen=True)
class _Plan:
    """Where to look: it decides how tight the enclosure is, and never whether it holds."""

    tilt: float
    spacing: float
    bits: int
    ranges: tuple[tuple[int, int], ...]


class _Sketch:
    """Rough losses and masses of every step, without those too rare to matter, from which a plan is made."""

    def __init__(self, steps: Sequence[tuple[Pair, int]], delta: float) -> None:
        self.counts = [count for _, count in steps]
        self.losses: list[Array] = []
        self.masses: list[Array] = []
        for pair, count in steps:
            losses, masses = pair.sketch()
            order = np.argsort(losses)
            kept = np.cumsum(masses[order][::-1])[::-1] * count * len(steps) > NEGLIGIBLE * delta
            kept &= masses[order] > 1e-300
            self.losses.append(losses[order][kept])
            self.masses.append(masses[order][kept] / masses[order][kept].sum())

    def cumulant(self, tilt: float) -> float:
        """Return about log E e^(tilt·loss) of the composition."""
        total = 0.0
        for losses, masses, count in zip(self.losses, self.masses, self.counts, strict=True):
            top = float(np.abs(tilt * losses).max())
            if top < 1:
                total += count * math.log1p(float((masses * np.expm1(tilt * losses)).sum()))
            else:
                logs = np.log(masses) + tilt * losses
                total += count * (float(logs.max()) + math.log(float(np.exp(logs - logs.max()).sum())))
        return total

    def plan(self, epsilon: float, cost: float, most_bits: int, top: float) -> _Plan:
        tilt = _minimise(lambda t: self.cumulant(t) - t * epsilon - math.log(t) - math.log1p(t))
        deviation = max(self._deviation(self.masses), self._deviation(self._tilt_masses(tilt)))
        tilt = max(tilt, 3 / deviation)  # a smaller one would need a wide window
        weights = self._tilt_masses(tilt)
        rates = [tilt * factor for factor in (0.1, 0.3, 1.0, 3.0)] + [2.0**k for k in range(-8, 12)]
        centre, decay = self.cumulant(tilt), TAIL / tilt
        left = max((centre - self.cumulant(tilt - s) - TAIL) / s for s in rates)
        right = min((self.cumulant(tilt + s) - centre + TAIL) / s for s in rates)
        window = max(epsilon - left + decay, right - epsilon, 1.2 * decay)
        steps = list(zip(self.losses, weights, self.counts, strict=True))
        allowed, spacing = 2 * cost * min(1.0, max(epsilon, 0.1 * self._deviation(weights))) / (tilt + 1), window / 2
        ends = [(float(x[int(np.searchsorted(np.cumsum(w), 1e-13 / n))]), float(x[-1])) for x, w, n in steps]
        longest = max(max(high, 0.0) - min(low, 0.0) for low, high in ends)
        finest = max(window / 2**most_bits, longest / MOST_STEP_POINTS)
        while spacing > finest and sum(n * _added_variance(x, w, spacing) for x, w, n in steps) > allowed:
            spacing /= 1.25
        spacing = max(spacing, finest)
        spacing = top / max(1, math.floor(top / spacing)) if top < math.inf else spacing
        bits = max(8, math.ceil(math.log2(max(window, longest / 4) / spacing)))  # a step wraps around at most 8 times
        ranges = [(min(-1, math.floor(a / spacing) - 1), max(1, math.ceil(b / spacing) + 1)) for a, b in ends]
        return _Plan(tilt, spacing, bits, tuple(ranges))

    def _tilt_masses(self, tilt: float) -> list[Array]:
        logs = [np.log(masses) + tilt * losses for losses, masses in zip(self.losses, self.masses, strict=True)]
        weights = [np.exp(log - log.max()) for log in logs]
        return [weight / weight.sum() for weight in weights]

    def _deviation(self, weights: list[Array]) -> float:
        """Return about the standard deviation of the composed loss with these weights."""
        steps = zip(self.losses, weights, self.counts, strict=True)
        return math.sqrt(sum(n * float((w * x**2).sum() - (w * x).sum() ** 2) for x, w, n in steps) + 1e-18)


def _added_variance(losses: Array, weights: Array, spacing: float) -> float:
    size = np.abs(losses)
    return float((weights * np.where(size < spacing, size * (spacing - size), spacing**2 / 6)).sum())


def _minimise(objective: Callable[[float], float]) -> float:
    """Return where a unimodal function of a tilt is smallest, by golden section on a logarithmic scale."""
    low, high, ratio = math.log(1e-4), math.log(1e6), (math.sqrt(5) - 1) / 2
    while high - low > 0.02:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if objective(math.exp(left)) <= objective(math.exp(right)) else (left, high)
    return math.exp((low + high) / 2)


def _compose(steps: Sequence[tuple[Pair, int]], plan: _Plan, epsilon: float) -> Enclosure:
    """Enclose δ(ε) on the lattice of the plan."""
    tilt, ranges = plan.tilt, zip(steps, plan.ranges, strict=True)
    counted = [(put_on_lattice(pair, plan.spacing, *ends, tilt), count) for (pair, count), ends in ranges]
    spectrum = Spectrum(counted, plan.spacing, tilt, plan.bits)
    log_total = sum((count * step.log_total for step, count in counted), arb(0))
    slack = 1.001 * sum(count * step.slack for step, count in counted)
    near = math.nextafter(epsilon - slack, -math.inf)
    value, error = spectrum.tail(near)
    unbounded = sum((count * arb(step.unbounded) for step, count in counted), arb(0))
    high = (log_total - arb(tilt) * near).exp() * (arb(value) + error) + unbounded
    far = math.nextafter(epsilon + slack + _lattice_shift(counted, plan), math.inf)
    value, error = spectrum.tail(far)
    excess = 2.02 * sum(count * step.excess for step, count in counted)
    lost = error + _wrapped_share(counted, plan, far) + math.exp(-SHIFT_TAIL) / (1 + tilt)
    lost += excess * math.exp(min((1 + tilt) * plan.spacing, 700.0))
    low = lower((log_total - arb(tilt) * far).exp() * (arb(value) - lost))
    return Enclosure(max(0.0, low), min(1.0, upper(high)))


def _lattice_shift(counted: list[tuple[LatticeStep, int]], plan: _Plan) -> float:
    """Return a shift that the lattice adds to the composed loss with a tilted probability of at most e^(−SHIFT_TAIL).

    The least of three: no step adds more than the spacing; each adds as much as a variable within an interval of this
    length may (Hoeffding); or by the variance that it was seen to add, times what tilting may change of it.
    """
    spacing, order, steps = plan.spacing, plan.tilt + 1, sum(count for _, count in counted)

    def shift(variance: float, rate: float) -> float:
        return variance * (order + rate / 2) + SHIFT_TAIL / rate

    widest = steps * spacing**2 / 4
    known = min(steps * spacing, shift(widest, math.sqrt(2 * SHIFT_TAIL / widest)))
    variance = 1.001 * sum(count * (step.variance + 2 * spacing * step.excess) for step, count in counted)
    rate = min(math.sqrt(2 * SHIFT_TAIL / variance), 1 / spacing)
    growth = (order + rate) * spacing
    growth += (rate * order + rate**2 / 2) * spacing**2 / 4 * math.exp(min(growth, 50.0))
    return min(known, shift(variance * math.exp(growth), rate)) if growth < 50 else known


def _wrapped_share(counted: list[tuple[LatticeStep, int]], plan: _Plan, epsilon: float) -> float:
    """Bound what wrapping around the window adds to the sum, by Chernoff's bound on both tilted tails."""
    window = plan.spacing * 2**plan.bits
    behind = min(TAIL / plan.tilt, window / 2)
    centre, variance, centred = 0.0, 0.0, []
    for step, count in counted:
        x = plan.spacing * (step.first + np.arange(step.weights.size))
        mean = float((x * step.weights).sum())
        centre, variance = centre + count * mean, variance + count * float(((x - mean) ** 2 * step.weights).sum())
        centred.append((x - mean, step.weights, count))

    def log_tail(distance: float, sign: int) -> float:
        best = 0.0
        for rate in (distance / variance, 0.5 * distance / variance, 6 / math.sqrt(variance), TAIL / distance):
            with np.errstate(over="ignore", invalid="ignore"):  # a moment that is not finite bounds nothing
                logs = sum(n * math.log(float((w * np.exp(sign * rate * x)).sum())) for x, w, n in centred)
            best = min(best, logs - rate * distance * (1 - 1e-9) + 0.01)
        return best

    distances = ((centre - epsilon + window - behind, -1), (epsilon + window - centre, 1))
    tails = [math.exp(log_tail(distance, sign)) if distance > 0 else 1.0 for distance, sign in distances]
    return 1.01 / -math.expm1(-plan.tilt * window) * (sum(tails) + math.exp(-plan.tilt * behind))
