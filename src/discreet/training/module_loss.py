"""A loss that shows its network, so that per-example gradients can be had layer by layer."""

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor, nn
from torch.func import functional_call

from discreet.params import Params


@dataclass(frozen=True)
class ModuleLoss:
    """The losses of `module`'s outputs, one an example. `fixed` are its buffers and frozen parameters."""

    module: nn.Module
    losses: Callable[[Tensor, Tensor], Tensor]
    fixed: Params = field(default_factory=dict)

    def __call__(self, params: Params, inputs: Tensor, targets: Tensor) -> Tensor:
        return self.losses(functional_call(self.module, self.fixed | params, (inputs,)), targets)
