"""Dominating pairs: two distributions that are at least as easy to tell apart as any neighbours' outputs.

A pair is given as atoms, each a privacy loss log(P/Q) and the log of its mass under P. Sampling maps the atoms
of an unsampled release to those of a sampled one.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from discreet.errors import Unsupported
from discreet.privacy.events import GaussianNoise, PoissonSampled, SampledWithoutReplacement, Step
from discreet.privacy.noise_pairs import Array, Base, base_pair, log_expm1
from discreet.privacy.release import Relation

OVERFLOW = 700.0  # e^x is a double up to here
ROUNDING = 4e-15  # relative, of a loss that was computed through sampling: some twenty roundings of a double


class Atoms(NamedTuple):
    losses: Array
    log_masses: Array


class Directions(NamedTuple):
    """The pair read both ways: with the unit against without it, and without against with."""

    forward: Atoms
    backward: Atoms


class Sampling(Protocol):
    """Who took part, as a map from the base's atoms to the sampled pair's."""

    def directions(self, losses: Array, log_q: Array) -> Directions: ...

    def unsampled(self, losses: Array) -> Array:
        """The base loss at which the sampled pair has this one; NaN where it has none."""


@dataclass(frozen=True)
class Pair:
    base: Base
    sampling: Sampling

    def atoms(self, edges: Array) -> Directions:
        """The pair's atoms, none of whose panels straddles a loss in `edges`, in either direction."""
        inner = self.sampling.unsampled(edges)
        return self.sampling.directions(*self.base.nodes(inner[np.isfinite(inner)]))

    @property
    def tops(self) -> tuple[float, float]:
        """The largest loss forward, and backward; rounded up where sampling makes it a computed one."""
        both = self.sampling.directions(np.array([-self.base.top, self.base.top]), np.zeros(2))
        forward, backward = float(both.forward.losses.max()), float(both.backward.losses.max())
        return self._rounded_up(forward), self._rounded_up(backward)

    def _rounded_up(self, loss: float) -> float:
        return loss if loss == self.base.top else loss * (1 + ROUNDING)


def dominating_pair(step: Step, relation: Relation) -> Pair:
    """The dominating pair of `step` between neighbours under `relation`.

    Zeroing a unit out leaves the sum that removing it leaves, so both have the add-or-remove pair. Replacing one
    moves the sum out by its sensitivity and in again by as much: twice as far.
    """
    replace = relation == "replace"
    match step:
        case PoissonSampled(sampling_rate=rate, event=GaussianNoise(noise_multiplier=z) as noise) if replace:
            return Pair(base_pair(noise), Antipodal(rate, 1 / z))
        case PoissonSampled(sampling_rate=rate, event=noise):
            return Pair(base_pair(noise, 2.0 if replace else 1.0), Replaced(rate) if replace else Poisson(rate))
        case SampledWithoutReplacement(sampling_rate=rate, event=noise):
            require_replace(relation)
            return Pair(base_pair(noise, 2.0), Replaced(rate))
        case _:
            return Pair(base_pair(step, 2.0 if replace else 1.0), Whole())


def require_replace(relation: Relation) -> None:
    """A fixed number drawn: nobody can be added, and whoever is zeroed out leaves a smaller sum in the draw only."""
    if relation != "replace":
        raise Unsupported(
            f"Sampling a fixed number is counted under the relation replace only, and got {relation}.",
            fix="Ask for replace, or sample by Poisson.",
        )


@dataclass(frozen=True)
class Whole:
    """Everyone took part."""

    def directions(self, losses: Array, log_q: Array) -> Directions:
        both = Atoms(losses, log_q + losses)
        return Directions(both, both)

    def unsampled(self, losses: Array) -> Array:
        return losses


@dataclass(frozen=True)
class Poisson:
    """Each unit by its own coin: (1−q)Q + qP against Q, and backwards (Zhu, Dong, Wang 2022, Thm 11)."""

    rate: float

    def directions(self, losses: Array, log_q: Array) -> Directions:
        mixed = _mixed(self.rate, losses)
        return Directions(Atoms(mixed, log_q + mixed), Atoms(-mixed, log_q))

    def unsampled(self, losses: Array) -> Array:
        both_ways = np.concatenate([losses, -losses])
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            small = np.log1p(np.expm1(both_ways) / self.rate)
            return np.where(both_ways > 500, both_ways - math.log(self.rate), small)


@dataclass(frozen=True)
class Replaced:
    """A unit replaced, seen through sampling: δ'(log(1 + q(e^ε − 1))) = q·δ(ε) for ε ≥ 0, and symmetric.

    Guarantee: for sampling without replacement this is Balle, Barthe, Gaboardi 2018, Thm 9; for Poisson
    sampling the same bound follows by advanced joint convexity, at the doubled sensitivity. Each base atom with
    loss ℓ > 0 keeps what is drawn at ±log(1 − q + q e^ℓ); what is not drawn, (1−q)(p − q), has loss 0.
    """

    rate: float

    def directions(self, losses: Array, log_q: Array) -> Directions:
        above, still = losses > 0, losses == 0
        mixed, log_above = _mixed(self.rate, losses[above]), log_q[above]
        undrawn = log_above + math.log1p(-self.rate) + log_expm1(losses[above])
        both = Atoms(
            np.concatenate([mixed, -mixed, np.zeros(undrawn.size + int(still.sum()))]),
            np.concatenate([log_above + mixed, log_above, undrawn, log_q[still]]),
        )
        return Directions(both, both)

    def unsampled(self, losses: Array) -> Array:
        return np.append(Poisson(self.rate).unsampled(losses), 0.0)


@dataclass(frozen=True)
class Antipodal:
    """A unit replaced under Poisson sampling and Gaussian noise: (1−q)N(0) + qN(μ) against (1−q)N(0) + qN(−μ).

    Guarantee: the worst for vectors too. A test that fires with probability β on N(0) fires with at most
    Φ(Φ⁻¹β + μ) on N(a) and with at least Φ(Φ⁻¹β − μ) on N(b), for any a and b of norm at most μ (Neyman–Pearson); on
    the line with a = μ, b = −μ one threshold attains both (docs/notes/replace.md).
    """

    rate: float
    mu: float

    def directions(self, losses: Array, log_q: Array) -> Directions:
        ahead = _mixed(self.rate, losses)
        both = Atoms(ahead - _mixed(self.rate, -losses - self.mu**2), log_q + ahead)
        return Directions(both, both)

    def unsampled(self, losses: Array) -> Array:
        """With u = e^(μx), a = 1−q, c = q e^(−μ²/2): the positive root of c u² − a(e^L − 1)u − c e^L = 0, in logs."""
        size = np.maximum(np.abs(losses), 1e-300)
        log_a = math.log1p(-self.rate)
        log_c = math.log(self.rate) - self.mu**2 / 2
        linear = log_a + log_expm1(size)
        root = np.logaddexp(2 * linear, math.log(4) + 2 * log_c + size) / 2
        log_u = np.sign(losses) * (np.logaddexp(linear, root) - math.log(2) - log_c)
        return np.asarray(log_u - self.mu**2 / 2)


def _mixed(rate: float, losses: Array) -> Array:
    """log(1 − q + q e^ℓ), to full relative precision however small q or ℓ."""
    small = np.log1p(rate * np.expm1(np.minimum(losses, OVERFLOW)))
    large = np.maximum(losses, OVERFLOW)
    return np.where(losses < OVERFLOW, small, large + math.log(rate) + np.log1p((1 - rate) / rate * np.exp(-large)))
