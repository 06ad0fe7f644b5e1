"""A small convolution that shows whether Triton compiles on this machine: it needs a driver and a C compiler."""

import torch

from discreet.client_layers import kernel_operators
from discreet.client_layers.convolution_shape import ConvolutionSettings


def try_kernels(device: torch.device) -> None:
    """Compile and run each kernel once. Whatever the compiler raises goes to the caller."""
    settings = ConvolutionSettings((1, 1), (1, 1), (1, 1), 1, "tf32")
    x, w = torch.ones(2, 1, 16, 4, 4, device=device), torch.ones(2, 16, 16, 3, 3, device=device)
    y = kernel_operators.outputs(x, w, None, settings)
    kernel_operators.input_gradients(y, w, settings, (4, 4))
    kernel_operators.weight_gradients(x, y, settings, (3, 3))
