"""How large what honest clients send can be, with their noise: longer uploads and sums are hostile or broken."""

import math
from typing import Literal, NamedTuple

FALSE_ALARM = 1e-30  # per upload: even 10⁶ clients in 10⁶ rounds lose an honest one with probability below 1e-17
SUM_ALARM = 1e-12  # per secure sum: it costs a round, and never privacy, since the sum has its noise already
ROUNDING = 1e-4  # room for single precision, relative to a limit


class HonestUpload(NamedTuple):
    """What an honest client's upload is made of, in the units in which it is sent.

    Attributes:
        norm: Largest norm of the update before the client's own noise.
        order: Order of that norm: 2, with Gaussian noise, or 1, with Laplace noise.
        deviation: Deviation of the Gaussian noise that the client adds to each coordinate, or scale of its Laplace
            noise; 0 if it adds none.
        extra: Largest size of each value that is sent beside the update.
    """

    norm: float
    order: int
    deviation: float
    extra: float = 0.0

    def scale_update(self, factor: float) -> "HonestUpload":
        """Return the same for updates that are this many times as long, with the same noise."""
        return self._replace(norm=self.norm * factor)

    def multiply(self, weight: float) -> "HonestUpload":
        """Return the same for uploads that are multiplied by a weight, together with their noise."""
        return self._replace(norm=self.norm * weight, deviation=self.deviation * weight)

    def limit(self, dimension: int, false_alarm: float = FALSE_ALARM) -> float:
        """Return the norm that an honest upload of this many coordinates exceeds with at most this probability.

        Without noise it is `norm` itself, and no honest upload exceeds it.
        """
        if not self.deviation:
            return self.norm
        tail = gaussian_norm if self.order == 2 else laplace_norm
        return (self.norm + self.deviation * tail(dimension, false_alarm)) * (1 + ROUNDING)


def gaussian_norm(dimension: int, probability: float) -> float:
    """Return √d + √(2·ln(1/p)), which the L2 norm of d standard normals exceeds with probability at most p.

    The norm is a 1-Lipschitz function with a mean of at most √d (Boucheron, Lugosi & Massart 2013, Thm 5.6).
    """
    return math.sqrt(dimension) + math.sqrt(-2 * math.log(probability))


def laplace_norm(dimension: int, probability: float) -> float:
    """Return d + √(2·d·x) + x with x = ln(1/p), which the L1 norm of d Laplace draws of scale 1 exceeds with at most p.

    The norm has a gamma distribution of shape d (Boucheron, Lugosi & Massart 2013, Sect. 2.4).
    """
    x = -math.log(probability)
    return dimension + math.sqrt(2 * dimension * x) + x


def integer_norm(
    noise: Literal["skellam", "discrete_gaussian"], dimension: int, deviation: float, probability: float
) -> float:
    """Return a number that the L2 norm of integer noise of this deviation exceeds with at most this probability.

    Sums of discrete Gaussians are sub-Gaussian (Canonne, Kamath & Steinke 2020), so ‖X‖² ≤ v·(d + 2√(dx) + 2x) but for
    e^−x (Hsu, Kakade & Zhang 2012). Skellam noise has longer tails: half of the probability is for a coordinate above t
    (Chernoff), the other half for a sum of squares of at most t² each, by `_log_moment`.
    """
    if not deviation:
        return 0.0
    if noise == "discrete_gaussian":
        x = -math.log(probability)
        return deviation * math.sqrt(dimension + 2 * math.sqrt(dimension * x) + 2 * x)
    x = -math.log(probability / 2)
    largest = _skellam_quantile(deviation**2, math.log(2 * dimension) + x)
    tilts = (number / (400 * deviation**2) for number in range(1, 200))  # any of them gives a bound
    return math.sqrt(min((dimension * _log_moment(deviation, tilt, largest) + x) / tilt for tilt in tilts))


def _skellam_quantile(variance: float, x: float) -> float:
    """Return a t with P[X ≥ t] ≤ e^−x for Skellam noise: √(2vx) + x, since v·(cosh λ − 1) ≤ v·λ²/(2·(1 − λ))."""
    return math.sqrt(2 * variance * x) + x


def _log_moment(deviation: float, tilt: float, largest: float) -> float:
    """Bound log E[e^(μX²); |X| ≤ t] for Skellam noise; infinite if the tilt μ is too large.

    e^(μx²) = E e^(√(2μ)·Zx) for a standard normal Z. Where |Z| > z = c + √(c² + 2·ln(1/τ)), c = √(2μ)·t, it is below
    τ, whatever |x| ≤ t. Elsewhere E e^(aX) ≤ e^(v'a²/2) for a up to √(2μ)·z, with v' from Skellam's cosh, and
    the expectation over Z is that of a Gaussian of variance v': 1/√(1 − 2μv').
    """
    rest = 1e-9
    slope = math.sqrt(2 * tilt)
    reach = slope * (slope * largest + math.sqrt((slope * largest) ** 2 - 2 * math.log(rest)))
    share = 2 * tilt * (2 * deviation * math.sinh(reach / 2) / reach) ** 2 if reach < 100 else math.inf
    return math.inf if share >= 1 else math.log(1 / math.sqrt(1 - share) + rest)
