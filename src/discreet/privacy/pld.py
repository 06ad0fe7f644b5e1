"""Privacy-loss distributions: the tightest ε, δ and attack rates we can certify.

Each step's losses are put onto a grid, weighted by e^(tilt·loss) so that the part of the distribution that
decides the answer is in the middle, composed by FFT, and weighted back. The tilt keeps full relative
precision at any δ (1e-12 is no harder than 0.1) and lets the FFT's window cover only what matters.

Guarantee: every answer is an upper bound. An atom between two grid points is split onto both so that its mass
under P and under Q is kept, which spreads the likelihood ratio around the same mean and so can only make the
pair easier to tell apart (Doroshenko et al. 2022); what the window leaves out is added to δ.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.errors import Unsupported
from discreet.privacy import gaussian
from discreet.privacy.dominating_gaussians import replace_unpaired_noise
from discreet.privacy.dominating_pairs import Pair, RevealedMixture, SampledPair, dominating_pair
from discreet.privacy.events import Event, GaussianNoise, steps
from discreet.privacy.moments import Moments, approximate_log_moment, graded_edges, moment_atoms
from discreet.privacy.noise_pairs import LARGEST_SHIFT, Array, GaussianBase
from discreet.privacy.release import Relation
from discreet.privacy.sampling_schemes import Atoms, Directions, NoSampling
from discreet.privacy.spectrum import MANY_STEPS, Spectrum, compose, tilt_masses
from discreet.privacy.staged_composition import LONG, compose_in_stages

TOLERANCE = 2e-4  # how much the grid may add to ε, absolutely above 1 and relatively below
TOO_MUCH = 2.0  # times TOLERANCE: from here on a finer grid is tried
FINER = 1 / 64  # at most this much finer at once, since the estimate is rough where a grid is far too coarse
MOST_GRIDS = 5
IGNORED = 1e-5  # of δ: what losses too rare to matter may have
COARSE_THEN_FINE = (4.0, 0.8)  # times the spacing, where ε is only compared; a finer grid than that of a search passes
ANALYTIC = 1e-11  # relative error of the closed form of a Gaussian's δ
FINE_PANELS = 60.0  # to a standard deviation; a step's mass is then off by the last digit of a double
SMALLEST = 5e-324  # a δ that is not 0 is reported as this double at least
LAST_DIGITS = 2e-15  # relative error of a term of a bound, which is added to the bound


def supports(event: Event, relation: Relation) -> bool:
    """Return whether a dominating pair is proven for every step of the event."""
    try:
        _pairs(event, relation)
    except Unsupported:
        return False
    return True


def epsilon(event: Event, delta: float, relation: Relation = "add_or_remove") -> float:
    """Return the smallest ε that is certified at this δ."""
    sides = _sides(event, relation)
    if isinstance(sides, float):
        return gaussian.epsilon(sides, delta)
    best = 0.0
    roughly = [(*side.rough_epsilon(delta), side) for side in (side.cut(IGNORED * delta) for side in sides)]
    for near, tilt, side in sorted(roughly, key=lambda entry: entry[0], reverse=True):
        if near > best:  # else this direction can't be the worse one
            best = max(best, side.epsilon(delta, near, tilt))
    return best


def delta(event: Event, epsilon: float, relation: Relation = "add_or_remove") -> float:
    """Return the smallest δ that is certified at this ε."""
    sides = _sides(event, relation)
    if isinstance(sides, float):
        return gaussian.delta(sides, epsilon)
    return max(side.delta(epsilon) for side in sides)


def holds(event: Event, epsilon: float, delta: float, relation: Relation = "add_or_remove") -> bool:
    """Return whether (ε, δ) is certified by a grid or two; if not, a search for ε may still certify it."""
    sides = _sides(event, relation)
    if isinstance(sides, float):
        return gaussian.delta(sides, epsilon) * (1 + ANALYTIC) <= delta
    return all(side.cut(IGNORED * delta).holds(epsilon, delta) for side in sides)


def true_positive_rate(event: Event, false_positive_rate: float, relation: Relation = "add_or_remove") -> float:
    """Return how often the best attack detects the unit at this false positive rate."""
    sides = _sides(event, relation)
    if isinstance(sides, float):
        return gaussian.true_positive_rate(sides, false_positive_rate)
    if false_positive_rate >= 1:
        return 1.0
    if false_positive_rate <= 0:
        return 0.0  # every pair has finite losses: no output is possible with the unit and impossible without it
    rate = false_positive_rate  # the attack finds at least as much, so this is what "negligible" is measured by
    return max(side.cut(IGNORED * rate).true_positive_rate(rate) for side in sides)


@dataclass(frozen=True)
class _Side:
    """One direction of a composition: pilot atoms of each distinct step, its pair, and how often it happens.

    Losses above a step's ceiling are counted as infinite, and their whole probability as δ: `infinite`.
    """

    pilots: tuple[Atoms, ...]
    pairs: tuple[Pair, ...]
    counts: tuple[int, ...]
    forward: bool
    ceilings: tuple[float, ...]
    infinite: float = 0.0

    def cut(self, allowed: float) -> "_Side":
        """Lower the ceilings until losses above them have the probability `allowed` over all steps.

        Rare huge losses would otherwise decide which losses the tilt brings to the middle.
        """
        pilots, ceilings, infinite = [], [], 0.0
        for atoms, pair, count in zip(self.pilots, self.pairs, self.counts, strict=True):
            order = np.argsort(-atoms.losses)
            above = np.cumsum(np.exp(atoms.log_masses[order]))
            rare = int(np.searchsorted(above, allowed / (count * len(self.counts))))
            ceiling = float(atoms.losses[order[rare - 1]]) if rare else math.inf
            if rare:
                atoms = self._choose_direction(pair.atoms(graded_edges(ceiling, _steepest_tilt(pair, ceiling))))
                infinite += count * float(np.exp(atoms.log_masses[atoms.losses > ceiling]).sum())
            pilots.append(_keep_below(atoms, ceiling))
            ceilings.append(ceiling)
        return replace(self, pilots=tuple(pilots), ceilings=tuple(ceilings), infinite=infinite)

    def rough_epsilon(self, delta: float) -> tuple[float, float]:
        """Return the bound by the best Rényi divergence, never below `epsilon`, and the tilt that gives it."""
        if self.advantage() <= delta:
            return 0.0, 0.0
        rest = delta - self.infinite
        tilt = self._best_tilt(lambda tilt: _convert_to_epsilon(tilt, self.cumulant(tilt), rest))
        return max(0.0, _convert_to_epsilon(tilt, self.cumulant_bound(tilt), rest)), tilt

    def epsilon(self, delta: float, near: float, tilt: float) -> float:
        """Return the smallest bound of a few grids: finer ones as long as the last one added too much.

        Splits add a variance V to the loss, and with it about V/2·f(ε) to δ, where f is the density of the loss. So
        they add V/2·f(ε)/(−δ'(ε)) to ε. With light tails this ratio is tilt + 1, as `_spacing` assumes.
        """
        best, spacing = min(near, self.top), self._spacing(tilt, near)  # `near` is a bound too
        for _ in range(MOST_GRIDS):
            spectrum = self._spectrum(tilt, near, spacing)
            found, density_ratio = spectrum.solve(delta - self.infinite)
            best = min(best, found)
            added = max(found - best, self._added_variance(spectrum.tilt, spectrum.spacing) / 2 * density_ratio)
            allowed = TOLERANCE * min(1.0, best)
            if added <= TOO_MUCH * allowed:
                break
            if spectrum.is_finest:
                if added > TOO_MUCH * TOLERANCE * best and max(self.counts) >= LONG:
                    best = min(best, self._staged_spectrum(best).epsilon(delta - self.infinite))
                break
            spacing = spectrum.spacing * max(FINER, math.sqrt(allowed / added))
            near, tilt = best, self._tilt_at(best)
        return best

    def delta(self, epsilon: float) -> float:
        if epsilon >= self.top:
            return 0.0
        value = bound = min(self.advantage(), _exp(self._chernoff(epsilon)[0]))
        while value > 0:  # what is negligible is known only once δ is: each turn brings it down to where it is
            side = self.cut(IGNORED * value)
            tilt = side._chernoff(epsilon)[1]
            spectrum = side._spectrum(tilt, epsilon, side._spacing(tilt, epsilon))
            value, before = spectrum.delta(epsilon) + side.infinite, value
            if side.infinite <= 100 * IGNORED * value or not value < before / 2:
                break
        return max(SMALLEST, min(1.0, value, bound))

    def holds(self, epsilon: float, delta: float) -> bool:
        """Return whether δ(ε) is at most `delta`: by Chernoff's bound, a coarse grid or a fine one."""
        rest = delta - self.infinite
        if epsilon >= self.top:
            return rest >= 0
        log_bound, tilt = self._chernoff(epsilon)
        if _exp(log_bound) <= rest:
            return True
        spacing = self._spacing(tilt, epsilon)
        return any(self._spectrum(tilt, epsilon, spacing * each).delta(epsilon) <= rest for each in COARSE_THEN_FINE)

    def true_positive_rate(self, rate: float) -> float:
        # Under Q the cumulant at s is ours at s − 1; look where Q's tail holds `rate`, untilted below P's middle.
        shifted = self._best_tilt(lambda s: (self.cumulant(s - 1) - math.log(rate)) / s)
        near = (self.cumulant(shifted - 1) - math.log(rate)) / shifted
        tilt = max(0.0, shifted - 1)
        share = self._spectrum(tilt, near, self._spacing(tilt, near)).true_positive_rate(rate)
        return min(1.0, share + self.infinite)

    @property
    def top(self) -> float:
        """The largest loss of the whole composition: a pure ε if it is finite."""
        return sum(count * top for count, top in zip(self.counts, self.tops, strict=True))

    @property
    def tops(self) -> list[float]:
        return [pair.tops[0 if self.forward else 1] for pair in self.pairs]

    def advantage(self) -> float:
        """Return an upper bound of δ at ε = 0, since total variation is subadditive.

        The kink at 0 costs the pilot's quadrature some 1e-5, which the factor covers.
        """
        return self.infinite + 1.001 * sum(
            count * float(np.sum(np.exp(pilot.log_masses) * -np.expm1(-np.maximum(pilot.losses, 0.0))))
            for count, pilot in zip(self.counts, self.pilots, strict=True)
        )

    def cumulant(self, tilt: float) -> float:
        """Return log E e^(tilt·loss) of the composition: tilt times its Rényi divergence of order tilt + 1.

        Approximate: it decides where to look, and never what is reported.
        """
        return sum(n * approximate_log_moment(a, tilt) for n, a in zip(self.counts, self.pilots, strict=True))

    def cumulant_bound(self, tilt: float) -> float:
        """Return an upper bound of the cumulant, too large by a relative 1e-9 or so."""
        return sum(n * Moments(a).log_moment(tilt) for n, a in zip(self.counts, self.pilots, strict=True))

    def _chernoff(self, epsilon: float) -> tuple[float, float]:
        """Return an upper bound of log P[loss ≥ ε], and the tilt that gives it."""
        tilt = self._best_tilt(lambda tilt: self.cumulant(tilt) - tilt * epsilon)
        cumulant, threshold = self.cumulant_bound(tilt), tilt * epsilon
        return cumulant - threshold + LAST_DIGITS * (cumulant + threshold), tilt

    def _best_tilt(self, objective: Callable[[float], float]) -> float:
        """Return the tilt that minimises a unimodal objective, by golden section on a log scale."""
        steepest = min(_steepest_tilt(pair, ceiling) for pair, ceiling in zip(self.pairs, self.ceilings, strict=True))
        low, high = math.log(1e-6), math.log(steepest)
        ratio = (math.sqrt(5) - 1) / 2
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        at_left, at_right = objective(math.exp(left)), objective(math.exp(right))
        while high - low > 0.02:
            if at_left <= at_right:
                high, right, at_right = right, left, at_left
                left = high - ratio * (high - low)
                at_left = objective(math.exp(left))
            else:
                low, left, at_left = left, right, at_right
                right = low + ratio * (high - low)
                at_right = objective(math.exp(right))
        return math.exp((low + high) / 2)

    def _tilt_at(self, epsilon: float) -> float:
        """Return the tilt at which δ(ε) = 1/(2πi) ∫ e^(cumulant(s) − sε)/(s(s + 1)) ds has its saddle point."""
        return self._best_tilt(lambda s: self.cumulant(s) - s * epsilon - math.log(s) - math.log1p(s))

    def _spectrum(self, tilt: float, near: float, spacing: float) -> Spectrum:
        if len(self.tops) == 1 and math.isfinite(self.tops[0]):  # a largest loss between two points would be split
            spacing = self.tops[0] / math.ceil(self.tops[0] / spacing) * (1 + LAST_DIGITS)  # not just above a point
        return compose(self._atoms, self.pilots, self.counts, tilt=tilt, spacing=spacing, near=near)

    def _staged_spectrum(self, near: float) -> Spectrum:
        tilt = self._tilt_at(near)
        variance = 2 * TOLERANCE * min(1.0, near) / (tilt + 1)
        return compose_in_stages(self._atoms, self.pilots, self.counts, tilt=tilt, variance=variance, near=near)

    def _spacing(self, tilt: float, near: float) -> float:
        """Return the spacing of a grid that adds about TOLERANCE to ε.

        A split at distance b from the lower point adds (tilt+1)/2·b(h − b) to ε: h²/6 on average for b, or
        |loss|·h for the many losses that are far smaller than h when the sampling rate is small.
        """
        share, size = self._shares(tilt)
        spread = math.sqrt(float((share * size**2).sum()))
        allowed = 2 * TOLERANCE * min(1.0, max(abs(near), 0.1 * spread)) / (tilt + 1)
        spacing = math.sqrt(6 * allowed / sum(self.counts))
        largest = max(abs(near), spread) / 20
        while spacing < largest and _variance_of_splits(share, size, 2 * spacing) <= allowed:
            spacing *= 2
        return spacing

    def _added_variance(self, tilt: float, spacing: float) -> float:
        return _variance_of_splits(*self._shares(tilt), spacing)

    def _shares(self, tilt: float) -> tuple[Array, Array]:
        """Return the tilted masses of all steps' losses, times the counts, and the sizes of these losses."""
        shares = [count * tilt_masses(pilot, tilt) for count, pilot in zip(self.counts, self.pilots, strict=True)]
        return np.concatenate(shares), np.abs(np.concatenate([pilot.losses for pilot in self.pilots]))

    def _atoms(self, which: int, edges: Array) -> Atoms:
        ceiling, pair = self.ceilings[which], self.pairs[which]
        if sum(self.counts) > MANY_STEPS:
            pair = _refine_panels(pair)
        return _keep_below(self._choose_direction(pair.atoms(np.append(edges, ceiling))), ceiling)

    def _choose_direction(self, both: Directions) -> Atoms:
        return both.forward if self.forward else both.backward


def _refine_panels(pair: Pair) -> Pair:
    """Return the same pair, integrated so finely that 10¹² steps keep their digits; only noise with panels has them."""
    match pair:
        case SampledPair(base=GaussianBase() as base):
            return replace(pair, base=replace(base, panels_per_unit=FINE_PANELS))
        case RevealedMixture():
            return replace(pair, pairs=tuple(_refine_panels(each) for each in pair.pairs))
    return pair


def _variance_of_splits(share: Array, size: Array, spacing: float) -> float:
    """Return what splitting onto a grid adds to the variance: h²/6 for each loss, or |loss|·h if that is less."""
    return float((share * np.minimum(spacing * size, spacing**2 / 6)).sum())


def _keep_below(atoms: Atoms, ceiling: float) -> Atoms:
    keep = atoms.losses <= ceiling
    return Atoms(atoms.losses[keep], atoms.log_masses[keep])


def _sides(event: Event, relation: Relation) -> Sequence[_Side] | float:
    """Return both directions; one if they are equal; only μ if the event is one Gaussian."""
    counted = _pairs(event, relation)
    if isinstance(counted, float):
        return counted
    pairs, counts, unlimited = tuple(counted), tuple(counted.values()), (math.inf,) * len(counted)
    both = [moment_atoms(pair) for pair in pairs]
    forward = _Side(tuple(each.forward for each in both), pairs, counts, forward=True, ceilings=unlimited)
    if all(each.forward is each.backward for each in both):
        return [forward]
    return [forward, replace(forward, pilots=tuple(each.backward for each in both), forward=False)]


def _steepest_tilt(pair: Pair, ceiling: float) -> float:
    """Return the largest tilt that is tried on a step's pilot; the lower its ceiling, the larger."""
    return max(pair.max_tilt, 2000 / max(ceiling, 1e-12))


def _pairs(event: Event, relation: Relation) -> dict[Pair, int] | float:
    """Return the event's dominating pairs and their counts. Unsampled Gaussians compose to one, of μ² = Σ 1/z²."""
    counts = steps(replace_unpaired_noise(event, relation))
    squared = sum(n / step.noise_multiplier**2 for step, n in counts.items() if isinstance(step, GaussianNoise))
    mu = math.sqrt(squared) * (2.0 if relation == "replace" else 1.0)
    pairs = {dominating_pair(step, relation): n for step, n in counts.items() if not isinstance(step, GaussianNoise)}
    if not pairs:
        return mu
    if mu > LARGEST_SHIFT:
        raise Unsupported("So much Gaussian noise among other steps is beyond the grid.", fix="Use the Rényi bound.")
    return pairs | {SampledPair(GaussianBase(mu), NoSampling()): 1} if mu else pairs


def _convert_to_epsilon(tilt: float, cumulant: float, delta: float) -> float:
    """Return ε by the Rényi divergence of order tilt + 1 (Canonne, Kamath, Steinke 2020, Prop. 12), rounded up."""
    terms = (cumulant / tilt, -math.log(delta) / tilt, -math.log1p(tilt) / tilt, -math.log1p(1 / tilt))
    return math.fsum(terms) + LAST_DIGITS * math.fsum(map(abs, terms))


def _exp(x: float) -> float:
    return math.exp(min(x, 0.0))
