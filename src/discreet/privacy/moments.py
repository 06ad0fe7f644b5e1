"""Moments E e^(tilt·loss) of a privacy loss, from above: what Rényi divergences and Chernoff's bound are made of."""

import math

import numpy as np

from discreet.privacy.dominating_pairs import Pair
from discreet.privacy.noise_pairs import Array
from discreet.privacy.sampling_schemes import Atoms, Directions

FIRST_PANEL = 0.25  # tilt × width of the panel next to the largest loss, at the steepest tilt
GROWTH = 1.1  # each panel further from the largest loss ends this many times as far from it
FURTHEST = 2.0  # from there on the panels of `bases` are narrow enough
MARGIN = 1e-9  # relative; the quadrature is off by 4e-10 at most, see `graded_edges`
LAST_DIGITS = 2e-15  # relative error of a logarithm of a moment, however large it is
SMALL = 0.05  # below it e^x − 1 − x is summed as a series
LARGE = 30.0  # above it e^x is kept as a logarithm


def moment_atoms(pair: Pair) -> Directions:
    """Return the pair's atoms, fine enough for `Moments` at every tilt up to the base's largest."""
    edges = [graded_edges(largest, pair.max_tilt) for largest in set(pair.tops)]
    return pair.atoms(np.concatenate(edges))


def graded_edges(largest: float, steepest_tilt: float) -> Array:
    """Return the losses at which panels must end to integrate e^(tilt·loss) well at every tilt up to the steepest.

    At a distance t below the largest loss the weight has fallen by e^(−tilt·t), and panels are at most t/10 wide.
    Three Gauss–Legendre nodes miss c⁶/2016000 of an exponential that changes by e^c over the panel. Hence they miss at
    most ∫ y⁶ e^(−y) dy · 0.1⁶ / 2016000 = 4e-10 of the whole, whatever the tilt.
    """
    if not math.isfinite(largest):
        return np.empty(0)
    nearest = FIRST_PANEL / steepest_tilt
    count = math.ceil(math.log(FURTHEST / nearest) / math.log(GROWTH))
    return largest - np.append(0.0, nearest * GROWTH ** np.arange(count))


class Moments:
    """log E e^(tilt·loss) of atoms, at any tilt above 0.

    Guarantee: never below the moment of the continuous pair, if its atoms have `graded_edges`. Of a pair whose losses
    are cut off above a ceiling, the moment is that of the rest, or more.

    With order = tilt + 1 the moment is 1 + E_Q[e^(order·loss) − 1 − order·(e^loss − 1)], since E_Q e^loss = 1. No term
    of this sum is negative, so losses as small as 1e-12 keep their digits.
    """

    def __init__(self, atoms: Atoms) -> None:
        self._losses = atoms.losses
        self._log_q = atoms.log_masses - atoms.losses
        self._q = np.exp(np.minimum(self._log_q, 0.0))
        self._curvature = exp_minus_line(np.minimum(atoms.losses, LARGE))

    def log_moment(self, tilt: float) -> float:
        order = 1 + tilt
        powers = order * self._losses
        small = powers < LARGE
        terms = exp_minus_line(np.minimum(powers, LARGE)) - order * self._curvature
        excess = float((self._q * np.where(small, terms, 0.0)).sum())
        if small.all():
            return math.log1p(excess * (1 + MARGIN))
        losses, powers = self._losses[~small], powers[~small]
        rest = np.exp(-powers) + order * (np.exp(losses - powers) - np.exp(-powers))
        logs = self._log_q[~small] + powers + np.log1p(-rest)
        peak = float(logs.max())
        log_large = peak + math.log(float(np.exp(logs - peak).sum()))
        log_excess = np.logaddexp(log_large, math.log(max(excess, 5e-324)))
        return float(np.logaddexp(0.0, log_excess + MARGIN)) * (1 + LAST_DIGITS)


def approximate_log_moment(atoms: Atoms, tilt: float) -> float:
    """Return log E e^(tilt·loss) at any tilt, quickly; it may be a little too small, so it certifies nothing.

    Where it is small it is log(1 + E(e^(tilt·loss) − 1)), since 10^12 of them may be added.
    """
    powers = tilt * atoms.losses
    if tilt >= 0 and powers.max() < 30:  # below 0 the sum may come as close to −1 as rounding goes
        return math.log1p(float((np.exp(atoms.log_masses) * np.expm1(powers)).sum()))
    logs = atoms.log_masses + powers
    peak = float(logs.max())
    return peak + math.log(float(np.exp(logs - peak).sum()))


def exp_minus_line(x: Array) -> Array:
    """Return e^x − 1 − x, to full relative precision however small x is."""
    values = np.expm1(x) - x
    small = np.abs(x) < SMALL
    near = x[small]
    series = np.ones_like(near)
    for n in range(10, 2, -1):
        series = 1 + near / n * series
    values[small] = near * near / 2 * series
    return np.asarray(values)
