"""A loss that shows its network, so that per-example gradients can be had layer by layer."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn
from torch.func import functional_call

from discreet.algorithms.training.cuda_graphs import Recordings
from discreet.algorithms.training.trainer import Loss
from discreet.params import Params


@dataclass(frozen=True)
class ModuleLoss:
    """A `Loss` that takes its examples through `module`, once each.

    `independent` says that each example's loss is computed from the module's output for that example alone.
    """

    module: nn.Module
    loss: Loss
    independent: bool = False
    plans: dict[object, Any] = field(default_factory=dict, repr=False, compare=False)  # how its gradients are had
    recordings: Recordings = field(default_factory=Recordings, repr=False, compare=False)  # live as long as it does

    @classmethod
    def from_module(cls, module: nn.Module, losses: Callable[[Tensor, Tensor], Tensor]) -> "ModuleLoss":
        """The losses of the module's outputs, one an example."""
        return cls(module, lambda params, inputs, targets: losses(functional_call(module, params, (inputs,)), targets))

    def __call__(self, params: Params, inputs: Tensor, targets: Tensor) -> Tensor:
        return self.loss(params, inputs, targets)
