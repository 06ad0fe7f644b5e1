"""torch's switches of TF32 and of repeatable convolutions, set for the time of one step and put back after it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch


class Switch(NamedTuple):
    """A setting of torch that allows TF32 in one library.

    Attributes:
        place: What holds the setting under its old name, `allow_tf32`.
        newer: Returns what holds it under its new name, `fp32_precision`, from torch 2.9 on.
    """

    place: Any
    newer: Callable[[], Any]

    def read(self) -> tuple[str, Any]:
        """Return the name that the caller uses, and its value. torch refuses to read one after the other was set."""
        try:
            return "allow_tf32", self.place.allow_tf32
        except RuntimeError:
            return "fp32_precision", self.newer().fp32_precision

    def write(self, name: str, value: Any) -> None:
        """Set the switch under the name that was read."""
        setattr(self.place if name == "allow_tf32" else self.newer(), name, value)


SWITCHES = (
    Switch(torch.backends.cuda.matmul, lambda: torch.backends.cuda.matmul),
    Switch(torch.backends.cudnn, lambda: torch.backends.cudnn.conv),  # type: ignore[attr-defined]
)


@contextmanager
def tensor_cores(*, allowed: bool) -> Iterator[None]:
    """Let matrix products and cuDNN's convolutions of float32 use TF32, or not.

    Sums inside a product of bfloat16 stay in float32 too, where cuBLAS divides a product among several blocks. cuDNN
    adds up nothing in an order that changes from one run to the next.
    """
    before = [switch.read() for switch in SWITCHES]
    matmul = torch.backends.cuda.matmul
    reduced, deterministic = matmul.allow_bf16_reduced_precision_reduction, torch.backends.cudnn.deterministic
    try:
        for switch, (name, _) in zip(SWITCHES, before, strict=True):
            switch.write(name, allowed if name == "allow_tf32" else "tf32" if allowed else "ieee")
        matmul.allow_bf16_reduced_precision_reduction, torch.backends.cudnn.deterministic = False, True
        yield
    finally:
        for switch, (name, value) in zip(SWITCHES, before, strict=True):
            switch.write(name, value)
        matmul.allow_bf16_reduced_precision_reduction, torch.backends.cudnn.deterministic = reduced, deterministic
