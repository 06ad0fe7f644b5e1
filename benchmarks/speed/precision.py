"""The precision that both sides compute in: the one place that says how each of them is told."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch

PRECISIONS = ("float32", "tf32", "bf16")
ON_GPU = {"cpu": ("float32",), "cuda": PRECISIONS}


# Whether ours has the setting `precision`. THE PLACE TO CHANGE: once it always has, import it and drop this.
OURS_HAS_PRECISION = find_spec("discreet.client_layers") is not None


def is_offered_by_ours(precision: str) -> bool:
    """Whether ours can compute in this precision. Without its setting it follows torch's switches, and has no bf16."""
    return OURS_HAS_PRECISION or precision != "bf16"


def simulation_settings(precision: str) -> dict[str, Any]:
    """Return the arguments of a `Simulation` that make ours compute in this precision."""
    return {"precision": precision} if OURS_HAS_PRECISION else {}


def our_context(precision: str, device: torch.device) -> AbstractContextManager[Any]:
    """Return the context in which a trainer of ours computes in this precision, where no simulation sets it."""
    if not OURS_HAS_PRECISION:
        return nullcontext()
    entered: AbstractContextManager[Any] = import_module("discreet.client_layers.precision").gradient_precision(
        precision, device
    )
    return entered


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
