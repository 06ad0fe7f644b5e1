"""The precision that both sides compute in: the one place that says how each of them is told."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

PRECISIONS = ("float32", "tf32", "bf16")
ON_GPU = {"cpu": ("float32",), "cuda": PRECISIONS}


def our_settings(precision: str) -> dict[str, Any] | None:
    """Return what tells ours to compute in this precision; None if it can't yet.

    THE PLACE TO CHANGE once ours has a setting `precision`: return {"precision": precision}, and pass it on in
    `averaging.ours` and `dp_sgd.ours`, which take these settings. Until then ours follows torch's own switches for
    float32 and tf32, which `both_sides_in` sets, and has no bf16.
    """
    return None if precision == "bf16" else {}


@contextmanager
def both_sides_in(precision: str) -> Iterator[None]:
    """Set torch's switches for matrix products and convolutions, which both sides follow."""
    products, convolutions = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "float32"
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = products, convolutions


def peer_autocast(setting_device: str, precision: str) -> torch.autocast:
    """Return the context in which a peer computes its loss: bfloat16 by autocast, or as it is."""
    return torch.autocast(setting_device, dtype=torch.bfloat16, enabled=precision == "bf16")
