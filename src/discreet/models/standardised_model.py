"""A trained network with the standardisation of its inputs, so that it takes inputs as the task gives them."""

from torch import Tensor, nn

from discreet.algorithms.input_scale import InputScale


class StandardisedModel(nn.Module):
    """A network that standardises its inputs, and puts the outputs of a regression back into the target's units.

    Attributes:
        module: The network that was trained.
    """

    centre: Tensor
    spread: Tensor

    def __init__(self, module: nn.Module, input_scale: InputScale) -> None:
        super().__init__()
        self.module = module
        self.register_buffer("centre", input_scale.centre)
        self.register_buffer("spread", input_scale.spread)

    def forward(self, inputs: Tensor) -> Tensor:
        scale = InputScale(self.centre, self.spread)
        return scale.restore_outputs(self.module(scale.scale_inputs(inputs)))


def standardise_inputs(module: nn.Module, input_scale: InputScale | None) -> nn.Module:
    """Return the network with the standardisation before it; the network itself without one."""
    return module if input_scale is None else StandardisedModel(module, input_scale).eval()
