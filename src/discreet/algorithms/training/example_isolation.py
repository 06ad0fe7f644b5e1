"""Decide whether a network treats the examples of a batch independently, so that DP-SGD may pass whole batches.

Any other network gets one example at a time: whatever it does, one example changes one gradient.
"""

from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.algorithms.training.shipped_modules import runs_only_shipped_code


def isolates_examples(loss: ModuleLoss) -> bool:
    """Return whether the network is known to treat examples independently.

    Guarantee: true only if no example's loss depends on another example, whatever the batch. That is known of networks
    that run only layers of torch and of this package, unchanged. Other code could read the whole batch, and no trial
    would show it with certainty.
    """
    return loss.independent and runs_only_shipped_code(loss.module)


class WithoutDropout(TorchFunctionMode):
    """Turn dropout off, so that two ways to compute the same gradients can be compared."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        keywords = kwargs or {}
        if func in DROPOUTS:
            return args[0] if args else keywords["input"]
        return func(*args, **keywords)


DROPOUTS = frozenset(
    {
        functional.dropout,
        functional.dropout1d,
        functional.dropout2d,
        functional.dropout3d,
        functional.alpha_dropout,
        functional.feature_alpha_dropout,
        torch.dropout,
    }
)
