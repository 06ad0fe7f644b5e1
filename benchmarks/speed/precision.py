"""The precision that both sides compute in: the one place that says how each of them is told."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from discreet.client_layers.precision import GradientPrecision

PRECISIONS: tuple[GradientPrecision, ...] = ("float32", "tf32", "bf16")
ON_GPU: dict[str, tuple[GradientPrecision, ...]] = {"cpu": ("float32",), "cuda": PRECISIONS}


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
