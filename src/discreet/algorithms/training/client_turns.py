"""Decide whether the clients of a block take a local step together, or one after the other.

Together they need few operations. But a convolution whose weights differ by client takes longer than ordinary ones,
except where Triton's kernels compute it. On a CPU, what large ones give for all clients leaves its caches, too.
"""

from __future__ import annotations

from discreet.algorithms.training.batches import Batches
from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.algorithms.training.round_batches import RoundBatches
from discreet.algorithms.training.trainer import Loss
from discreet.client_layers.precision import precision_in_force
from discreet.lazy_torch import Tensor, nn, torch
from discreet.params import ClientModels, Params
from discreet.randomness.torch_seed import seed_torch

# Values that convolutions give for one client's batch, from which on taking turns was faster.
LARGE = {"cpu": 2**18, "cuda": 2**23}


def take_turns(loss: Loss, params: Params, batches: RoundBatches) -> bool:
    """Return whether clients are to step one after the other. It depends on the network, shapes and settings alone."""
    device = batches.data.inputs.device.type
    if batches.data.clients == 1 or not isinstance(loss, ModuleLoss) or isinstance(params, ClientModels):
        return False
    if precision_in_force() != "float32" or device not in LARGE:
        return False
    return batches.width * _count_outputs(loss, params, batches.data) >= LARGE[device]


def _count_outputs(loss: ModuleLoss, params: Params, data: Batches) -> int:
    """Count the values that a network's convolutions give for one example; found once for each shape."""
    from discreet.algorithms.training.layer_recording import register_hooks  # these need torch
    from discreet.algorithms.training.shipped_modules import Tap

    key = ("outputs of convolutions", data.inputs.shape[1:])
    if key not in loss.plans:
        counts: list[int] = []

        def count(inputs: tuple[Tensor, ...], output: Tensor) -> None:
            counts.append(output.numel())

        taps = {
            name: (layer, Tap(count))
            for name, layer in loss.module.named_modules()
            if isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Conv3d)
        }
        if taps:
            with torch.no_grad(), seed_torch(0, data.inputs.device), register_hooks(taps):  # its dropout is not used
                loss(params, *data.first_example)
        loss.plans[key] = sum(counts)
    found: int = loss.plans[key]
    return found
