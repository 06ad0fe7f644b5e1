"""The weights of a trained network as a safetensors file, with what new rows need in its metadata."""

from collections.abc import Mapping

import safetensors.torch
from torch import Tensor


def safetensors_bytes(weights: Mapping[str, Tensor], facts: Mapping[str, str]) -> bytes:
    """Return the weights, with centre and spread of the inputs if they were standardised, and these facts."""
    tensors = {name: value.contiguous() for name, value in weights.items()}
    return safetensors.torch.save(tensors, {"format": "pt", **facts})
