"""Sampling schemes: how the atoms of an unsampled release become those of a sampled one."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from discreet.privacy.noise_pairs import Array, log_binomial, log_expm1

OVERFLOW = 700.0  # e^x is a double up to here
LARGE = 30.0  # from here on e^x − 1 is e^x, but for the last digits
SMALL_LOSS = 0.1  # below it a loss is summed as differences from 1
NEGLIGIBLE = -700.0  # log of the chance below which so many members of a group count as all
MOST_NEWTON_STEPS = 60


class Atoms(NamedTuple):
    """Privacy losses and the logs of their masses under P."""

    losses: Array
    log_masses: Array


class Directions(NamedTuple):
    """The atoms of a pair in both directions: P (with the unit) against Q, and Q against P."""

    forward: Atoms
    backward: Atoms


class Sampling(Protocol):
    """A sampling scheme, as a map from the base pair's atoms to the sampled pair's."""

    def directions(self, losses: Array, log_q: Array) -> Directions:
        """Return the sampled pair's atoms, from the base pair's losses and log masses under Q."""

    def base_losses(self, losses: Array) -> Array:
        """Return the base losses at which the sampled pair has these losses; NaN where there is none."""


@dataclass(frozen=True)
class NoSampling:
    """No sampling: every unit joins."""

    def directions(self, losses: Array, log_q: Array) -> Directions:
        both = Atoms(losses, log_q + losses)
        return Directions(both, both)

    def base_losses(self, losses: Array) -> Array:
        return losses


@dataclass(frozen=True)
class OrderedPair:
    """A base pair as it is, with P and Q that differ in kind: backward, it has the opposite losses, under Q."""

    def directions(self, losses: Array, log_q: Array) -> Directions:
        return Directions(Atoms(losses, log_q + losses), Atoms(-losses, log_q))

    def base_losses(self, losses: Array) -> Array:
        return np.concatenate([losses, -losses])


@dataclass(frozen=True)
class Poisson:
    """Poisson sampling: (1−q)Q + qP against Q, and backwards (Zhu, Dong, Wang 2022, Thm 11)."""

    rate: float

    def directions(self, losses: Array, log_q: Array) -> Directions:
        mixed = _mix_losses(self.rate, losses)
        return Directions(Atoms(mixed, log_q + mixed), Atoms(-mixed, log_q))

    def base_losses(self, losses: Array) -> Array:
        both_ways = np.concatenate([losses, -losses])
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            small = np.log1p(np.expm1(both_ways) / self.rate)
            return np.where(both_ways > 500, both_ways - math.log(self.rate), small)


@dataclass(frozen=True)
class PoissonGroup:
    """A group under Poisson sampling and Gaussian noise: Σ_j P[j join]·N(jμ) against N(0), and backwards.

    Guarantee: the worst for vectors too. Members move the sum by vectors of norm at most μ, and j of them by at most
    jμ; equal vectors are the worst (Ganesh 2024, Thm 4.1). In units of the base pair's loss ℓ the mixture's loss is
    log Σ_j P[j join]·e^(a_j) with a_j = jℓ − j(j−1)μ²/2: it grows with ℓ, as that of a single unit does.
    """

    rate: float
    size: int
    mu: float

    def directions(self, losses: Array, log_q: Array) -> Directions:
        mixed = self._mix(losses)
        return Directions(Atoms(mixed, log_q + mixed), Atoms(-mixed, log_q))

    def base_losses(self, losses: Array) -> Array:
        """Solve log Σ_(j ≥ 1) P[j join]·e^(a_j) = log(e^L − P[none joins]), by Newton's method from the right.

        The left side is convex, and its slope is between 1 and the size: no step passes the solution.
        """
        both_ways = np.concatenate([losses, -losses])
        with np.errstate(invalid="ignore", divide="ignore"):
            small = np.log(np.expm1(np.minimum(both_ways, LARGE)) - math.expm1(self._log_none))
            target = np.where(both_ways > LARGE, both_ways, small)
        solvable = np.isfinite(target)
        target = target[solvable]
        at = np.min([(target - log_chance + offset) / j for j, log_chance, offset in self._terms], axis=0)
        for _ in range(MOST_NEWTON_STEPS):
            total, slope = np.full_like(at, -np.inf), np.zeros_like(at)
            for j, log_chance, offset in self._terms:
                term = log_chance + j * at - offset
                together = np.logaddexp(total, term)
                slope = slope * np.exp(total - together) + j * np.exp(term - together)
                total = together
            step = (total - target) / slope
            at = at - step
            if not step.size or np.abs(step).max() <= 1e-13 * max(1.0, np.abs(at).max()):
                break
        solved = np.full(both_ways.shape, np.nan)
        solved[solvable] = at
        return solved

    @property
    def _log_none(self) -> float:
        return self.size * math.log1p(-self.rate)

    @cached_property
    def _terms(self) -> list[tuple[int, float, float]]:
        """The numbers of members that may join, each with the log of its chance and its offset j(j−1)μ²/2.

        Where it is all but impossible that so many join, they count as if all had joined, which is worse.
        """
        logs = log_binomial(self.size, np.arange(1.0, self.size + 1), self.rate).tolist()
        likely = [j for j, log_chance in enumerate(logs, 1) if log_chance > NEGLIGIBLE or j <= self.size * self.rate]
        most = max(likely, default=1)
        rest = np.logaddexp.reduce([-np.inf, *logs[most:]])
        listed = dict(zip(range(1, most + 1), logs, strict=False))
        listed[self.size] = float(np.logaddexp(listed.get(self.size, -math.inf), rest))
        return [
            (j, log_chance, j * (j - 1) * self.mu**2 / 2)
            for j, log_chance in listed.items()
            if math.isfinite(log_chance)
        ]

    def _mix(self, losses: Array) -> Array:
        """Return log Σ_j P[j join]·e^(a_j): as 1 + Σ P[j join]·(e^(a_j) − 1) where it is small, to keep its digits."""
        total = np.full(losses.shape, self._log_none)
        excess = np.zeros(losses.shape)
        for j, log_chance, offset in self._terms:
            total = np.logaddexp(total, log_chance + j * losses - offset)
            excess += math.exp(log_chance) * np.expm1(np.minimum(j * losses - offset, LARGE))
        return np.where(np.abs(total) < SMALL_LOSS, np.log1p(np.maximum(excess, -0.9)), total)


@dataclass(frozen=True)
class Replacement:
    """Replacing a unit under sampling: δ'(log(1 + q(e^ε − 1))) = q·δ(ε) for ε ≥ 0, and symmetric.

    Guarantee: for sampling without replacement this is Balle, Barthe, Gaboardi 2018, Thm 9; for Poisson
    sampling the same bound follows by advanced joint convexity, at the doubled sensitivity. Each base atom with
    loss ℓ > 0 keeps what is drawn at ±log(1 − q + q e^ℓ); what is not drawn, (1−q)(p − q), has loss 0.
    """

    rate: float

    def directions(self, losses: Array, log_q: Array) -> Directions:
        above, still = losses > 0, losses == 0
        mixed, log_above = _mix_losses(self.rate, losses[above]), log_q[above]
        undrawn = log_above + math.log1p(-self.rate) + log_expm1(losses[above])
        both = Atoms(
            np.concatenate([mixed, -mixed, np.zeros(undrawn.size + int(still.sum()))]),
            np.concatenate([log_above + mixed, log_above, undrawn, log_q[still]]),
        )
        return Directions(both, both)

    def base_losses(self, losses: Array) -> Array:
        return np.append(Poisson(self.rate).base_losses(losses), 0.0)


@dataclass(frozen=True)
class Antipodal:
    """Replacing a unit under Poisson sampling and Gaussian noise: (1−q)N(0) + qN(μ) against (1−q)N(0) + qN(−μ).

    Guarantee: the worst for vectors too. A test that fires with probability β on N(0) fires with at most
    Φ(Φ⁻¹β + μ) on N(a) and with at least Φ(Φ⁻¹β − μ) on N(b), for any a and b of norm at most μ (Neyman–Pearson); on
    the line with a = μ, b = −μ one threshold attains both (docs/notes/replace.md).
    """

    rate: float
    mu: float

    def directions(self, losses: Array, log_q: Array) -> Directions:
        ahead = _mix_losses(self.rate, losses)
        both = Atoms(ahead - _mix_losses(self.rate, -losses - self.mu**2), log_q + ahead)
        return Directions(both, both)

    def base_losses(self, losses: Array) -> Array:
        """Solve c u² − a(e^L − 1)u − c e^L = 0 for u > 0, in logs, with u = e^(μx), a = 1−q, c = q e^(−μ²/2)."""
        size = np.maximum(np.abs(losses), 1e-300)
        log_a = math.log1p(-self.rate)
        log_c = math.log(self.rate) - self.mu**2 / 2
        linear = log_a + log_expm1(size)
        root = np.logaddexp(2 * linear, math.log(4) + 2 * log_c + size) / 2
        log_u = np.sign(losses) * (np.logaddexp(linear, root) - math.log(2) - log_c)
        return np.asarray(log_u - self.mu**2 / 2)


def _mix_losses(rate: float, losses: Array) -> Array:
    """Return log(1 − q + q e^ℓ), to full relative precision for any small q or ℓ."""
    small = np.log1p(rate * np.expm1(np.minimum(losses, OVERFLOW)))
    large = np.maximum(losses, OVERFLOW)
    return np.where(losses < OVERFLOW, small, large + math.log(rate) + np.log1p((1 - rate) / rate * np.exp(-large)))
