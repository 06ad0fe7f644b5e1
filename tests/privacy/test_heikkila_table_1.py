"""Table 1 of Heikkilä 2025: the noise at which one local model is (5, 1e-5)-private, and ε of an average of N of them.

Its accountant: the published Skellam bound, Poisson sampling of a tenth, orders 2 … 255, Mironov's conversion; 32 bits.
"""

import math
from functools import lru_cache

import numpy as np
import pytest

from discreet.privacy import pld, rdp, skellam
from discreet.privacy.dominating_gaussians import dominating_gaussian
from discreet.privacy.events import GaussianNoise, PoissonSampled, Repeated, SkellamNoise

RATE, DELTA, DIMENSION, BITS = 0.1, 1e-5, 10_250, 32
ORDERS = np.arange(2.0, 256.0)
# steps, parties, σ and ε as printed; and the tight ε at the unrounded σ
ROWS = [
    (1, 1, 0.69, 5.0, 3.67),
    (1, 2, 0.98, 2.78, 1.78),
    (1, 5, 1.54, 1.22, 0.63),
    (1, 10, 2.18, 0.64, 0.31),
    (10, 1, 0.90, 5.0, 3.53),
    (10, 2, 1.28, 2.61, 1.75),
    (10, 5, 2.02, 1.19, 0.79),
    (10, 10, 2.85, 0.72, 0.48),
    (50, 1, 1.18, 5.0, 3.79),
    (50, 2, 1.67, 2.85, 2.15),
    (50, 5, 2.64, 1.55, 1.14),
    (50, 10, 3.73, 1.03, 0.74),
]


def noise_of(sigma: float, parties: int) -> SkellamNoise:
    """Return the sum's noise in lattice units, for a clip norm of 1 and the scale that fits 32 bits."""
    scale = skellam.scale_for_bits(BITS, 1.0, parties, DIMENSION, sigma / math.sqrt(parties))
    return SkellamNoise(
        variance=(scale * sigma) ** 2,
        l2_sensitivity=skellam.l2_after_rounding(scale, DIMENSION),
        dimension=DIMENSION,
    )


def papers_epsilon(steps: int, sigma: float, parties: int) -> float:
    event = Repeated(count=steps, event=PoissonSampled(sampling_rate=RATE, event=noise_of(sigma, parties)))
    return float(np.min(rdp.to_epsilon(ORDERS, rdp.curve(event, ORDERS), DELTA, "mironov")))


@lru_cache
def local_sigma(steps: int) -> float:
    low, high = 0.3, 3.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if papers_epsilon(steps, middle, 1) <= 5.0 else (middle, high)
    return high


@pytest.mark.parametrize(("steps", "parties", "sigma", "epsilon", "tight"), ROWS)
def test_the_row_comes_out_as_printed_and_its_tight_value_beside_it(steps, parties, sigma, epsilon, tight):
    total = math.sqrt(parties) * local_sigma(steps)
    assert round(total, 2) == sigma
    assert round(papers_epsilon(steps, total, parties), 2) == pytest.approx(epsilon)
    noise = noise_of(total, parties)
    dominating = dominating_gaussian(noise)
    assert dominating is not None
    assert dominating.noise_multiplier == pytest.approx(total, rel=1e-6)
    assert round(_tight(steps, dominating), 2) == pytest.approx(tight)


def _tight(steps: int, noise: GaussianNoise) -> float:
    return pld.epsilon(Repeated(count=steps, event=PoissonSampled(sampling_rate=RATE, event=noise)), DELTA)
