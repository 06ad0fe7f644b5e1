"""What a GPU can do: whether its tensor cores have TF32, Triton compiles there, and torch has products of bfloat16."""

from functools import cache

import torch
from torch import Tensor

from discreet.client_layers.convolution_shape import ConvolutionSettings
from discreet.logs import get_log

log = get_log(__name__)

FEWEST_CHANNELS = 16  # of a group: kernels for tensor cores would multiply zeros for smaller ones
AMPERE = (8, 0)  # the first GPUs with TF32 and bfloat16
LARGEST = 2**29  # values of one client: positions inside them are 32-bit numbers


def is_on_device(value: Tensor) -> bool:
    """Return whether the tensor is on a GPU whose tensor cores have TF32 and bfloat16."""
    return value.is_cuda and _has_tensor_cores(value.device)


def is_worthwhile(weight: Tensor, groups: int) -> bool:
    """Return whether groups have enough channels; depthwise convolutions have kernels of torch's own."""
    return groups == 1 or min(weight.shape[0] // groups, weight.shape[1]) >= FEWEST_CHANNELS


def serves(first: Tensor, second: Tensor, settings: ConvolutionSettings) -> bool:
    """Return whether Triton's kernels compute a product of these operands; torch's convolution does the others."""
    if settings.precision == "float32" or (len(first) == 1 and settings.precision == "tf32"):
        return False
    sizes = (first[0].numel(), second[0].numel())
    return is_on_device(first) and max(sizes) <= LARGEST and triton_works(first.device)


def prepare(device: torch.device) -> None:
    """Find out what a device can do, before something is traced or recorded that can't try it."""
    if device.type == "cuda" and _has_tensor_cores(device):
        triton_works(device)
        has_float32_results(device)


@cache
def _has_tensor_cores(device: torch.device) -> bool:
    return torch.version.cuda is not None and torch.cuda.get_device_capability(device) >= AMPERE


@cache
def triton_works(device: torch.device) -> bool:
    """Return whether Triton is installed and compiles here, found once by a small convolution."""
    try:
        from discreet.client_layers.kernel_trial import try_kernels

        try_kernels(device)
    except Exception as error:  # noqa: BLE001 - whatever a compiler raises, torch's convolutions do the same
        log.warning("kernels not available", error=type(error).__name__)
        return False
    return True


@cache
def has_float32_results(device: torch.device) -> bool:
    """Return whether torch multiplies matrices of bfloat16 into one of float32 here, found by trying it."""
    if torch.cuda.is_current_stream_capturing():
        return False
    a = torch.ones(1, 16, 16, device=device, dtype=torch.bfloat16)
    try:
        torch.bmm(a, a, out_dtype=torch.float32)
    except (RuntimeError, TypeError, NotImplementedError):
        return False
    return True
