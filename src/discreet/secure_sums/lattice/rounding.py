"""Round real vectors to integers, and bound what one of them then adds to a sum."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from discreet.errors import InvalidInput
from discreet.lazy_torch import Tensor, torch

Uniform: TypeAlias = Callable[[Sequence[int]], Tensor]  # `Streams.uniform`

LARGEST = 2.0**52  # above, a double has no halves left to round
TRIES = 400  # each succeeds with probability 1 − β at least, 0.39: all fail with probability below 1e-85
SUMMING = 1e-12  # what summing squares in doubles may add to a norm, relatively


def round_stochastically(values: Tensor, uniform: Tensor) -> Tensor:
    """Round each coordinate y to ⌊y⌋, or to ⌊y⌋ + 1 with probability y − ⌊y⌋, as int64.

    `uniform` holds a number in [0, 1) for each. Guarantee: the expectation is y, to 2^-53; a vector of norm b becomes
    one of norm below b + √d, each coordinate moved by less than 1. See `l2_of_rounded_sum` for rounding a sum.
    """
    exact = _to_doubles(values)
    below = exact.floor()
    return (below + (uniform.to(exact.device) < exact - below)).to(torch.int64)


def round_conditionally(values: Tensor, bound: float, limit: float, uniform: Uniform) -> Tensor:
    """Round each whole vector stochastically, again and again, until its norm is at most `limit`.

    `values` is [clients, d], or [clients, examples, d] for several vectors of each client, all of norm at most `bound`;
    `limit` is l2_after_rounding(bound, d) for a chance of 0.39 or more at every try (Kairouz, Liu, Steinke 2021,
    Prop. 22). `uniform` is the clients' own `Streams.uniform`: each draws for its own vectors only, so nobody's result
    depends on who shares the block. Guarantee: no norm above `limit`. The result is slightly biased towards 0.
    """
    exact = _to_doubles(values).reshape(len(values), -1, values.shape[-1])
    largest = float(exact.norm(dim=-1).max()) if exact.numel() else 0.0
    if not largest <= bound * (1 + SUMMING):
        raise InvalidInput(
            f"Vectors of norm at most {bound:g} are rounded here, and one has {largest:g}.", fix="Clip before scaling."
        )
    result = torch.zeros(exact.shape, dtype=torch.int64, device=exact.device)
    pending = torch.ones(exact.shape[:2], dtype=torch.bool, device=exact.device)
    for _ in range(TRIES):
        result[pending] = round_stochastically(exact[pending], _draw_uniform(pending, exact.shape[-1], uniform))
        pending &= ~(result.to(torch.float64).norm(dim=-1) <= limit * (1 - SUMMING))
        if not bool(pending.any()):
            return result.reshape(values.shape)
    raise InvalidInput(
        f"Vectors of norm {largest:g} were rounded {TRIES} times and never had a norm of at most {limit:g}.",
        fix="Take the limit from l2_after_rounding.",
    )


def l2_of_rounded_sum(norm: float, dimension: int, vectors: int = 1) -> float:
    """Return the L2 sensitivity of rounding a sum y of up to `vectors` vectors of this norm, one more or less.

    Proof. Stochastic rounding is ⌈y − u⌉, with u independent of the data: 1 − u makes it ⌊y + u⌋. Couple two
    neighbours by the same u; what is private for every fixed u is private on average, since divergences are jointly
    convex. For fixed u let y' = y + g, ‖g‖ ≤ b, and k = ⌈y' − u⌉ − ⌈y − u⌉. As x ≤ ⌈x⌉ < x + 1, each |k_j − g_j| < 1;
    hence ‖k‖ ≤ ‖g‖ + ‖k − g‖ < b + √d, for one vector more or less. In doubles, u < y − ⌊y⌋ is decided to 2^-53, and
    a sum of m vectors is off by at most m·2^-53·Σ‖y_i‖ ≤ m²·2^-53·b, for either neighbour.
    """
    in_doubles = 1 + 2.0**-50
    return norm + vectors * vectors * 2.0**-52 * norm + in_doubles * math.sqrt(dimension)


def _draw_uniform(pending: Tensor, dimension: int, uniform: Uniform) -> Tensor:
    """Draw a uniform vector for each pending one, in their order. Clients without pending vectors draw nothing."""
    sizes = [int(count) * dimension for count in pending.sum(dim=1).tolist()]
    numbers = uniform(sizes)
    return torch.cat([row[:size] for row, size in zip(numbers, sizes, strict=True)]).reshape(-1, dimension)


def _to_doubles(values: Tensor) -> Tensor:
    """Convert to doubles; refuse values without fractions or that are not numbers, which int64 would corrupt."""
    exact = values.to(torch.float64)
    if not bool((exact.abs() < LARGEST).all()):
        raise InvalidInput(
            f"A coordinate must lie within ±2^52 to be rounded, and the largest is {float(exact.abs().max()):g}.",
            fix="Choose a smaller scale, and clip before it.",
        )
    return exact
