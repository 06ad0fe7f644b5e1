"""Random events for the accountants, and the ε of each by an inversion that shares nothing with them."""

import math
import random
from dataclasses import dataclass

import numpy as np

from discreet.privacy import accountant
from discreet.privacy.events import (
    Composed,
    Event,
    GaussianNoise,
    LaplaceNoise,
    PoissonSampled,
    PoissonSampledGroup,
    Repeated,
    SampledWithoutReplacement,
    steps,
)
from discreet.privacy.events import Step as EventStep
from discreet.privacy.release import Relation
from tests.privacy.loss_inversion import Array, Reference, Step, invert, is_far_below, spread

KINDS = ("gaussian", "tiny", "laplace", "fixed_size", "group", "replaced", "mixed")
LONGEST = 40.0  # standard deviations of a Gaussian that are integrated over
SMALLEST = 1e-12  # an ε below it counts as 0


@dataclass(frozen=True)
class Point:
    """One question: an event, its relation and δ."""

    kind: str
    event: Event
    delta: float
    relation: Relation


@dataclass(frozen=True)
class Measurement:
    """A point with the ε that is reported, and the reference."""

    point: Point
    reported: float
    reference: Reference

    @property
    def is_low(self) -> bool:
        """Whether the reported ε is below what the reference allows."""
        return self.reported < self.reference.epsilon - self.reference.uncertainty

    @property
    def is_certain(self) -> bool:
        """Whether the reference is known to a thousandth."""
        return self.reference.uncertainty <= 1e-3 * self.reported or self.reported == 0

    @property
    def excess(self) -> float:
        """The share by which the reported ε is above the reference."""
        return self.reported / self.reference.epsilon - 1 if self.reference.epsilon else 0.0


def measure(point: Point) -> Measurement:
    """Compute a point by the accountant and by the reference."""
    reported = accountant.epsilon(point.event, point.delta, point.relation)
    return Measurement(point, reported, reference(point, reported))


def random_points(count: int, seed: int) -> list[Point]:
    """Return so many points, of every kind in turn."""
    source = random.Random(seed)
    return [_draw(KINDS[i % len(KINDS)], source) for i in range(count)]


def _log_uniform(source: random.Random, low: float, high: float) -> float:
    return float(f"{math.exp(source.uniform(math.log(low), math.log(high))):.4g}")


def _draw(kind: str, source: random.Random) -> Point:
    delta = _log_uniform(source, 1e-12, 1e-2)
    if kind == "tiny":  # δ must be below what any step can lose, or ε is 0
        event = _draw_event(kind, source)
        most = sum(n * step.sampling_rate for step, n in steps(event).items() if isinstance(step, PoissonSampled))
        return Point(kind, event, float(f"{most * 10 ** source.uniform(-7, -0.5):.4g}"), "add_or_remove")
    if kind == "mixed":
        kinds = [source.choice(("gaussian", "tiny", "laplace")) for _ in range(source.choice((2, 3)))]
        parts = tuple(_draw_event(each, source) for each in kinds)
        return Point(kind, Composed(events=parts), delta, source.choice(("add_or_remove", "zero_out")))
    relation: Relation = "replace" if kind in ("fixed_size", "replaced") else "add_or_remove"
    return Point(kind, _draw_event(kind, source), delta, relation)


def _draw_event(kind: str, source: random.Random) -> Event:
    """Draw an event whose ε is neither 0 nor beyond all use, roughly: its μ² = T·q²(e^(1/z²) − 1) decides."""
    while True:
        noise = _log_uniform(source, 0.4, 30)
        rate = source.choice((1.0, _log_uniform(source, 1e-5, 1), _log_uniform(source, 1e-2, 1)))
        times = int(_log_uniform(source, 1, 10 ** source.choice((1, 3, 5, 12))))
        if kind == "tiny":
            rate, times = _log_uniform(source, 1e-7, 1e-2), int(_log_uniform(source, 1, 100))
        size = source.choice((2, 3, 5, 8)) if kind == "group" else 1
        squared = times * (size * rate) ** 2 * math.expm1(min(600.0, (size * rate if rate == 1 else 1) / noise**2))
        if squared < 1e3 and (kind == "tiny" or squared > 1e-6):
            break
    gaussian = GaussianNoise(noise_multiplier=noise)
    match kind:
        case "laplace":
            sampled: Event = PoissonSampled(sampling_rate=rate, event=LaplaceNoise(noise_multiplier=noise))
        case "fixed_size":
            population = source.choice((100, 5000, 200_000))
            cohort = max(1, min(population - 1, round(rate * population)))
            sampled = SampledWithoutReplacement(cohort=cohort, population=population, event=gaussian)
        case "group":
            sampled = PoissonSampledGroup(sampling_rate=rate, group_size=size, event=gaussian)
        case _:
            sampled = PoissonSampled(sampling_rate=rate, event=gaussian)
    return Repeated(count=times, event=sampled)


def reference(point: Point, near: float) -> Reference:
    """Return the point's ε, searched from `near` (which only decides where to look)."""
    sides = [True] if point.relation == "replace" else [True, False]
    composed = [
        [_density(step, n, point.relation, forward=forward) for step, n in steps(point.event).items()]
        for forward in sides
    ]
    near = near or 0.1 * min(spread(each) for each in composed)  # of an ε of 0 it is checked that δ(0) is enough
    while all(is_far_below(each, near, point.delta) for each in composed):
        near *= 0.8
        if near < SMALLEST:
            return Reference(0.0, SMALLEST)
    return max(invert(each, near, point.delta) for each in composed if not is_far_below(each, near, point.delta))


def _density(step: EventStep, count: int, relation: Relation, *, forward: bool) -> Step:
    """Return one step's loss and density, from the definitions of the noise and of the sampling."""
    factor = 2.0 if relation == "replace" else 1.0
    match step:
        case GaussianNoise(noise_multiplier=z):
            return _mixture([(1.0, factor / z)], count, forward=forward)
        case LaplaceNoise(noise_multiplier=b):
            return _laplace(1.0, factor / b, count, forward=forward)
        case PoissonSampled(sampling_rate=q, event=LaplaceNoise(noise_multiplier=b)) if relation != "replace":
            return _laplace(q, 1 / b, count, forward=forward)
        case PoissonSampled(sampling_rate=q, event=GaussianNoise(noise_multiplier=z)) if relation == "replace":
            return _antipodal(q, 1 / z, count)
        case PoissonSampled(sampling_rate=q, event=GaussianNoise(noise_multiplier=z)):
            return _mixture([(1 - q, 0.0), (q, 1 / z)], count, forward=forward)
        case PoissonSampledGroup(sampling_rate=q, group_size=size, event=GaussianNoise(noise_multiplier=z)):
            chances = [math.comb(size, j) * q**j * (1 - q) ** (size - j) for j in range(size + 1)]
            return _mixture([(chance, j / z) for j, chance in enumerate(chances)], count, forward=forward)
        case SampledWithoutReplacement(sampling_rate=q, event=GaussianNoise(noise_multiplier=z)):
            return _fixed_size(q, 2 / z, count)
    raise NotImplementedError(step)


def _log_ratio(parts: list[tuple[float, float]], x: Array) -> Array:
    """Return log Σ chance·N(x; mean)/N(x; 0), by differences from 1 where it is small."""
    exponents = [mean * x - mean * mean / 2 for _, mean in parts]
    largest = np.max(exponents, axis=0)
    plain = np.maximum(largest, 0.0)
    total = sum(chance * np.exp(e - plain) for (chance, _), e in zip(parts, exponents, strict=True))
    excess = sum(
        chance * np.expm1(np.minimum(e, 1.0)) for (chance, mean), e in zip(parts, exponents, strict=True) if mean
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(largest < 1.0, np.log1p(np.maximum(excess, -1 + 1e-16)), plain + np.log(total))


def _log_normal(x: Array) -> Array:
    return -x * x / 2 - math.log(2 * math.pi) / 2


def _mixture(parts: list[tuple[float, float]], count: int, *, forward: bool) -> Step:
    """A mixture of normal distributions against the one around 0, or backwards."""
    furthest = max(mean for _, mean in parts)
    ends = (-LONGEST, 1.5 * LONGEST + furthest)
    width = 0.3 / max(1.0, furthest)
    lowest = math.log1p(-sum(chance for chance, mean in parts if mean)) if parts[0][1] == 0 else -math.inf
    if forward:
        return Step(
            lambda x: _log_ratio(parts, x),
            lambda x: _log_normal(x) + _log_ratio(parts, x),
            ends,
            width,
            count,
            lowest=lowest,
            unbounded=True,
        )
    certain = parts[0][1] > 0  # else losses are at most −log of the chance that nobody joins
    return Step(lambda x: -_log_ratio(parts, x), _log_normal, ends, width, count, unbounded=certain)


def _antipodal(rate: float, mean: float, count: int) -> Step:
    ahead, behind = [(1 - rate, 0.0), (rate, mean)], [(1 - rate, 0.0), (rate, -mean)]
    ends, width = (-1.5 * LONGEST - mean, 1.5 * LONGEST + mean), 0.3 / max(1.0, mean)
    return Step(
        lambda x: _log_ratio(ahead, x) - _log_ratio(behind, x),
        lambda x: _log_normal(x) + _log_ratio(ahead, x),
        ends,
        width,
        count,
        unbounded=True,
    )


def _laplace(rate: float, shift: float, count: int, *, forward: bool) -> Step:
    """(1−q)·Laplace(0) + q·Laplace(shift) against Laplace(0): constant losses outside [0, shift]."""

    def ratio(x: Array) -> Array:
        return np.log1p(rate * np.expm1(2 * x - shift))

    def log_q(x: Array) -> Array:
        return -x - math.log(2)

    below, above = float(ratio(np.array(0.0))), float(ratio(np.array(shift)))
    mass_below, mass_above = 0.5, 0.5 * math.exp(-shift)
    ends, width = (0.0, shift), min(0.3, shift / 4)
    if forward:
        atoms = ((below, mass_below * math.exp(below)), (above, mass_above * math.exp(above)))
        return Step(ratio, lambda x: log_q(x) + ratio(x), ends, width, count, atoms, lowest=below)
    return Step(lambda x: -ratio(x), log_q, ends, width, count, ((-below, mass_below), (-above, mass_above)), -above)


def _fixed_size(rate: float, shift: float, count: int) -> Step:
    """The pair with δ'(log(1 + q(e^ε − 1))) = q·δ(ε) for ε ≥ 0 that is symmetric (Balle, Barthe & Gaboardi 2018).

    On x > shift/2, where N(shift) exceeds N(0), the drawn part has the loss log(1 + q(e^ℓ − 1)) under both; mirrored
    below. The rest, (1 − q) of what N(shift) exceeds N(0) by, has the loss 0.
    """
    half = shift / 2

    def ratio(x: Array) -> Array:
        return np.log1p(rate * np.expm1(np.minimum(shift * np.abs(x), 600.0)))

    def loss(x: Array) -> Array:
        return np.sign(x) * ratio(x)

    def log_density(x: Array) -> Array:
        return _log_normal(np.abs(x) + half) + np.where(x > 0, ratio(x), 0.0)

    equal = (1 - rate) * math.erf(half / math.sqrt(2))
    far = 1.5 * LONGEST + shift
    return Step(loss, log_density, (-far, 0.0, far), 0.3 / max(1.0, shift), count, ((0.0, equal),), unbounded=True)
