"""The precision in which gradients are computed on a GPU, and the context that puts it into force for one step.

It reaches products inside gradients only. Norms, clips, sums and noise are as before (docs/notes/numerics.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Literal, TypeAlias

from discreet.errors import InvalidInput
from discreet.lazy_torch import torch

GradientPrecision: TypeAlias = Literal["float32", "tf32", "bf16"]
IN_FORCE: ContextVar[GradientPrecision] = ContextVar("precision of gradients", default="float32")


def precision_in_force() -> GradientPrecision:
    """Return the precision of the step that this thread is in; float32 outside of steps."""
    return IN_FORCE.get()


@contextmanager
def gradient_precision(precision: GradientPrecision, device: torch.device) -> Iterator[None]:
    """Compute the gradients of one step in this precision. On a CPU nothing changes.

    float32 is true float32: TF32 is off, also where torch allows it by default (cuDNN's convolutions) or the caller
    switched it on.
    """
    if device.type != "cuda":
        yield
        return
    from discreet.client_layers.layer_mode import LayerMode
    from discreet.client_layers.tensor_core_switches import tensor_cores

    with ExitStack() as stack:
        stack.enter_context(precision_context(precision))
        stack.enter_context(tensor_cores(allowed=precision != "float32"))
        if precision != "float32":
            stack.enter_context(LayerMode())
        yield


@contextmanager
def precision_context(precision: GradientPrecision) -> Iterator[None]:
    """Put a precision into force for this thread. A `LayerMode` that is active follows it."""
    token = IN_FORCE.set(precision)
    try:
        yield
    finally:
        IN_FORCE.reset(token)


@contextmanager
def in_float32() -> Iterator[None]:
    """Compute in float32 inside a step of another precision, for a trial that compares two ways to the last digits."""
    if precision_in_force() == "float32":
        yield
        return
    from discreet.client_layers.tensor_core_switches import tensor_cores

    with precision_context("float32"), tensor_cores(allowed=False):
        yield


def check_precision(precision: GradientPrecision, dtype: str, device: torch.device | None) -> None:
    """Refuse a precision that this run can't have.

    Args:
        precision: The precision of gradients.
        dtype: The precision of the model.
        device: Where clients train. None if on machines of their own, where a CPU computes in float32.

    Raises:
        InvalidInput: The model is in double precision, or trains on a CPU.
    """
    if precision == "float32":
        return
    if dtype != "float32":
        raise InvalidInput(
            f'precision must be "float32" with dtype = "{dtype}", whose digits tensor cores don\'t keep, and got '
            f'"{precision}".',
            fix='Leave precision out, or use dtype = "float32".',
        )
    if device is not None and device.type != "cuda":
        raise InvalidInput(
            f'precision = "{precision}" needs a GPU, and this run trains on a CPU, which computes in float32.',
            fix="Leave precision out, or run on a machine with a GPU.",
        )
