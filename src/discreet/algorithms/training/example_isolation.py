"""Whether a network treats the examples of a batch independently: then DP-SGD may pass whole batches through it.

Any other network gets one example at a time, so that whatever it does, one example changes one gradient.
"""

from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.algorithms.training.shipped_modules import runs_only_shipped_code


def isolates_examples(loss: ModuleLoss) -> bool:
    """Guarantee: true only if no example's loss depends on another, whatever the batch.

    Known of networks that run nothing but torch's own layers and ours, unchanged. Any other code could look at the
    whole batch, and no trial would show it for sure.
    """
    return loss.independent and runs_only_shipped_code(loss.module)


class WithoutDropout(TorchFunctionMode):
    """Turns dropout off, so that two ways to compute the same gradients can be compared."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if func in DROPOUTS:
            return args[0] if args else given["input"]
        return func(*args, **given)


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
