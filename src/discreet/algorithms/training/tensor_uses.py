"""See which tensors a network computes with."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

METHODS = frozenset({Tensor.size, Tensor.dim, Tensor.numel, Tensor.is_floating_point})  # these read no values
ATTRIBUTES = frozenset({"shape", "dtype", "device", "ndim", "is_cuda", "requires_grad", "layout"})  # nor do these


class TensorUses(TorchFunctionMode):
    """Counts, while it is active, how often each of these tensors is an argument of one of torch's functions.

    A layer's own function counts once, and so does the same function where a network calls it past the layer.
    """

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.counts = dict.fromkeys(tensors, 0)
        self._names = {id(value): name for name, value in tensors.items()}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        keywords = kwargs or {}
        if func not in METHODS and getattr(getattr(func, "__self__", None), "__name__", None) not in ATTRIBUTES:
            for value in torch.utils._pytree.tree_leaves((args, keywords)):
                if id(value) in self._names:
                    self.counts[self._names[id(value)]] += 1
        return func(*args, **keywords)
