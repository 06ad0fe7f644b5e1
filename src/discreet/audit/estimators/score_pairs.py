"""The two distributions of a canary's scores, present and absent, and the smallest ε that both allow."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.audit.estimators.binomial_tails import binomial_masses
from discreet.privacy import gaussian

Array = NDArray[np.float64]
Noise: TypeAlias = Literal["gaussian", "laplace"]

REACH = 9.0  # deviations of noise to each side that get cells of their own
CELL = 0.01  # width of a cell, in deviations of noise
LONGEST = 2**21  # points of a transform
WIDTH = 12.0  # deviations of the sum of losses to each side that a transform holds


@dataclass(frozen=True)
class Design:
    """How a present canary enters what is seen: in a round, x = signal·K + noise with K ~ Bin(trials, rate).

    Attributes:
        rounds: Rounds in which it may be seen.
        trials: How often it may enter a round: its rows, times the steps whose sum is seen.
        rate: Probability that it enters, each time by an independent secret draw.
        opposite: Whether an absent canary is replaced by its opposite, so that x = −signal·K + noise.
        noise: The kind of noise.
    """

    rounds: int
    trials: int = 1
    rate: float = 1.0
    opposite: bool = False
    noise: Noise = "gaussian"

    @property
    def mean(self) -> float:
        """By how many entries present and absent canaries differ in the mean of a round."""
        return self.trials * self.rate * (2 if self.opposite else 1)

    @property
    def is_normal_shift(self) -> bool:
        """Whether present and absent canaries differ by a constant shift of normal noise: the Gaussian mechanism."""
        return self.rate == 1 and self.noise == "gaussian"

    def epsilon(self, signal: float, delta: float) -> float:
        """Return an ε that no guarantee of all rounds can go below at this δ.

        Args:
            signal: What one entry moves x by, in deviations of a round's noise.
            delta: The δ.

        Guarantee: never above the exact ε of the pair, up to rounding in double precision.
        """
        if signal <= 0:
            return 0.0
        if self.is_normal_shift:
            return gaussian.epsilon(signal * self.mean * math.sqrt(self.rounds), delta)
        return max(_Losses.compose(self, signal, forward).epsilon(delta) for forward in (True, False))

    def delta(self, signal: float, epsilon: float) -> float:
        """Return a δ that no guarantee of all rounds can go below at this ε; never above the exact δ."""
        if signal <= 0:
            return 0.0
        if self.is_normal_shift:
            return gaussian.delta(signal * self.mean * math.sqrt(self.rounds), epsilon)
        return max(_Losses.compose(self, signal, forward).delta(epsilon) for forward in (True, False))


@dataclass(frozen=True)
class _Losses:
    """The privacy losses of all rounds together, each rounded down to a grid: first + k·step with mass masses[k]."""

    first: float
    step: float
    masses: Array

    @classmethod
    def compose(cls, design: Design, signal: float, forward: bool) -> "_Losses":
        return _compose(design, signal, forward)

    def delta(self, epsilon: float) -> float:
        losses = self.first + self.step * np.arange(len(self.masses))
        above = losses > epsilon
        return float((self.masses[above] * -np.expm1(epsilon - losses[above])).sum())

    def epsilon(self, delta: float) -> float:
        low, high = 0.0, self.first + self.step * len(self.masses)
        if self.delta(0.0) <= delta:
            return 0.0
        while high - low > 1e-9 * max(1.0, high):
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return low


@lru_cache(maxsize=8)
def _compose(design: Design, signal: float, forward: bool) -> _Losses:
    """Compose the rounds. Looking at cells of x only is post-processing, and a loss rounded down gives a smaller δ."""
    present = _cell_masses(design, signal, 1.0)
    absent = _cell_masses(design, signal, -1.0 if design.opposite else 0.0)
    here, there = (present, absent) if forward else (absent, present)
    used = (here > 0) & (there > 0)  # what only one of them shows is left out, which lowers δ
    here, losses = here[used], np.log(here[used] / there[used])
    mean = float((here * losses).sum() / here.sum())
    deviation = math.sqrt(float((here * (losses - mean) ** 2).sum() / here.sum()))
    span = 2 * WIDTH * deviation * math.sqrt(design.rounds) + 2 * (float(losses.max()) - float(losses.min()))
    points = 2 ** math.ceil(math.log2(min(LONGEST, max(4096, 4000 * design.rounds))))
    step = span / points
    places = np.floor((losses - mean) / step).astype(np.int64)
    one = np.bincount(places % points, weights=here, minlength=points)
    every = np.maximum(0.0, np.fft.irfft(np.fft.rfft(one) ** design.rounds, points))
    lowest = -points // 2  # the transform is periodic: its window begins half a span below the sum of the means
    return _Losses(design.rounds * mean + lowest * step, step, np.roll(every, -lowest))


def _cell_masses(design: Design, signal: float, sign: float) -> Array:
    """Return the mass of each cell of x, whose noise has deviation 1."""
    farthest = signal * design.trials
    cells = math.ceil((farthest * (2 if design.opposite else 1) + 2 * REACH) / CELL)
    lowest = -REACH - (farthest if design.opposite else 0.0)
    edges = np.asarray(lowest + CELL * np.arange(1, cells), dtype=np.float64)
    masses = np.zeros(cells)
    for count, weight in enumerate(binomial_masses(design.trials, design.rate)):
        if weight > 1e-14:
            masses += weight * _noise_masses(edges - sign * signal * count, design.noise)
    return masses


def _noise_masses(edges: Array, noise: Noise) -> Array:
    """Return the mass of noise between the edges and outside them, each from the tail that it is nearer to."""
    if noise == "gaussian":
        upper = np.array([math.erfc(edge / math.sqrt(2)) / 2 for edge in np.abs(edges)])
    else:
        upper = np.exp(-np.abs(edges) * math.sqrt(2)) / 2
    below = np.where(edges < 0, upper, 1 - upper)
    above = np.where(edges < 0, 1 - upper, upper)
    inner = np.where(edges[1:] <= 0, np.diff(below), -np.diff(above))
    return np.concatenate([[below[0]], inner, [above[-1]]])
