"""Whether a network keeps its examples apart: then a whole batch may go through it at once under DP-SGD.

What is not known to is taken example by example, so that whatever it does, one example moves one gradient.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from discreet.training.module_loss import ModuleLoss

APART: frozenset[type[nn.Module]] = frozenset(
    {
        nn.Sequential,
        nn.Identity,
        nn.Linear,
        nn.Conv2d,
        nn.GroupNorm,
        nn.LayerNorm,
        nn.MaxPool2d,
        nn.AvgPool2d,
        nn.AdaptiveAvgPool2d,
        nn.Dropout,
        nn.Dropout2d,
        nn.ReLU,
        nn.LeakyReLU,
        nn.ELU,
        nn.SELU,
        nn.GELU,
        nn.SiLU,
        nn.Tanh,
        nn.Sigmoid,
        nn.Softplus,
    }
)


def keeps_apart(loss: ModuleLoss) -> bool:
    """Guarantee: true only if no example's loss depends on another, whatever the batch.

    A row of torch's own layers is known to, and so are our networks. Any other code could look at the whole batch, and
    no trial would show it for sure.
    """
    return loss.apart and all(_known(module) for module in loss.module.modules())


def _known(module: nn.Module) -> bool:
    if module._forward_hooks or module._forward_pre_hooks:  # anybody's code
        return False
    if type(module) is nn.Flatten:
        return module.start_dim == 1
    return type(module) in APART or type(module).__module__.startswith("discreet.models.")


class Undropped(TorchFunctionMode):
    """Within it nothing is dropped out, so that two ways through a network can be compared."""

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
