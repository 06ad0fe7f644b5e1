"""Noise on a sum: added in double precision, and only then rounded to the model's precision."""

from __future__ import annotations

from discreet.lazy_torch import Tensor, torch
from discreet.params import Params, align_axes


def add_noise(total: Params, drawn: Params, deviation: float | Tensor) -> Params:
    """Return total + deviation·drawn, computed in double precision and rounded to the types of `drawn`.

    Guarantee: what is rounded has its noise, so rounding is post-processing. To round a sum first would move it by up
    to 2⁻²⁴ of all that is in it, which no accountant counts.

    Args:
        total: What the noise hides.
        drawn: Standard noise in the same shapes.
        deviation: Its deviation, one for all or one for each row.
    """
    return {name: _add(value, drawn[name], deviation) for name, value in total.items()}


def _add(value: Tensor, drawn: Tensor, deviation: float | Tensor) -> Tensor:
    noise = drawn.to(torch.float64, copy=True)
    noise *= align_axes(deviation, noise) if isinstance(deviation, torch.Tensor) else deviation
    noise += value
    return noise.to(drawn.dtype)
