"""A loss that exposes its network, so that per-example gradients can be computed layer by layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from discreet.algorithms.training.cuda_graphs import Recordings
from discreet.algorithms.training.trainer import Loss
from discreet.lazy_torch import Tensor, nn, torch
from discreet.params import Params


@dataclass(frozen=True)
class ModuleLoss:
    """A `Loss` that passes each example through `module` once.

    Attributes:
        module: The network.
        loss: Loss of a model on examples.
        independent: Whether each example's loss is computed from the module's output for that example alone.
        plans: How its gradients are computed, found once for each shape.
        recordings: CUDA graphs of its steps.
    """

    module: nn.Module
    loss: Loss
    independent: bool = False
    plans: dict[object, Any] = field(default_factory=dict, repr=False, compare=False)
    recordings: Recordings = field(default_factory=Recordings, repr=False, compare=False)

    @classmethod
    def from_module(cls, module: nn.Module, losses: Callable[[Tensor, Tensor], Tensor]) -> ModuleLoss:
        """Return the loss of a module's outputs, where `losses` gives one loss for each example."""
        return cls(
            module,
            lambda params, inputs, targets: losses(torch.func.functional_call(module, params, (inputs,)), targets),
        )

    def __call__(self, params: Params, inputs: Tensor, targets: Tensor) -> Tensor:
        return self.loss(params, inputs, targets)
