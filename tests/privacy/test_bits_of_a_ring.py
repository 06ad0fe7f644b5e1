"""How many bits a coordinate of a sum needs before rounding costs nothing: Heikkilä 2025's Fashion-MNIST network.

Ten clients, clip norm 1, σ = 6.822, rate 1/11, 220 steps, δ = 1e-5; three standard deviations in the ring; the
published Skellam bound at orders 2 … 255 with Mironov's conversion, with the norms after rounding.
"""

import math

import numpy as np
import pytest

from discreet.privacy import rdp, skellam
from discreet.privacy.events import PoissonSampled, Repeated, SkellamNoise
from discreet.privacy.skellam import l2_after_rounding

ORDERS = np.arange(2.0, 256.0)
SIGMA, CLIENTS = 6.822, 10
# coordinates, bits, scale and inflation of the norm where they were noted, ε
ROWS = [
    (26_010, 10, 25.0, 3.400, 3.979),
    (26_010, 12, 100.1, 1.2913, 1.3046),
    (26_010, 14, 400.3, 1.0216, 1.0170),
    (26_010, 16, 1601.0, 1.0016, 0.9959),
    (26_010, 18, None, None, 0.9944),
    (26_010, 20, None, None, 0.9943),
    (26_010, 32, None, None, 0.9942),
    (10_250, 10, None, None, 2.4544),
    (10_250, 12, None, None, 1.1287),
    (10_250, 14, None, None, 1.0040),
    (10_250, 16, None, None, 0.9951),
    (10_250, 24, None, None, 0.9942),
]


@pytest.mark.parametrize(("dimension", "bits", "scale", "inflation", "epsilon"), ROWS)
def test_so_many_bits_cost_so_much(
    dimension: int, bits: int, scale: float | None, inflation: float | None, epsilon: float
) -> None:
    found = skellam.scale_for_bits(bits, 1.0, CLIENTS, dimension, SIGMA / math.sqrt(CLIENTS))
    norm = l2_after_rounding(found, dimension)
    if scale is not None and inflation is not None:
        assert found == pytest.approx(scale, rel=1e-3)
        assert norm / found == pytest.approx(inflation, abs=1e-3)
    noise = SkellamNoise(variance=(found * SIGMA) ** 2, l2_sensitivity=norm, dimension=dimension)
    event = Repeated(count=220, event=PoissonSampled(sampling_rate=1 / 11, event=noise))
    values = rdp.to_epsilon(ORDERS, rdp.curve(event, ORDERS), 1e-5, "mironov")
    assert float(values.min()) == pytest.approx(epsilon, abs=6e-4 if bits == 10 else 1e-4)
