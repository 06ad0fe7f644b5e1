"""In which types noise is drawn: single and double precision, and no other."""

from __future__ import annotations

from discreet.errors import InvalidInput
from discreet.lazy_torch import torch
from discreet.params import Params


def check_noise_types(like: Params) -> None:
    """Refuse tensors in whose type noise would have too few digits.

    Args:
        like: The tensors in whose shapes and types noise is drawn.

    Raises:
        InvalidInput: One of them is neither float32 nor float64.
    """
    for name in sorted(like):
        if like[name].dtype not in (torch.float32, torch.float64):
            raise InvalidInput(
                f"Noise is drawn for float32 or float64, and {name!r} is "
                f"{str(like[name].dtype).removeprefix('torch.')}: fewer digits would leave gaps in it that show what "
                "it hides.",
                fix="Train in float32 or float64.",
            )
