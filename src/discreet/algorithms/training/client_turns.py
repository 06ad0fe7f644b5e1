"""Decide whether the clients of a block take a local step together, or one after the other.

Together they need few operations. But on a CPU, what large convolutions give for all clients leaves its caches, and a
convolution whose weights differ by client takes longer there than ordinary ones.
"""

from __future__ import annotations

from discreet.algorithms.training.batches import Batch
from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.algorithms.training.trainer import Loss
from discreet.lazy_torch import Tensor, nn, torch
from discreet.params import ClientModels, Params, repeat_for_clients
from discreet.randomness.torch_seed import seed_torch

LARGE = 2**18  # values that convolutions give for one client's batch, from which on taking turns was faster


def take_turns(loss: Loss, params: Params, batch: Batch) -> bool:
    """Return whether clients are to step one after the other. It depends on the network and on shapes alone."""
    several, examples = len(batch.mask) > 1, batch.mask.shape[1]
    if not several or batch.inputs.device.type != "cpu" or isinstance(params, ClientModels):
        return False
    return isinstance(loss, ModuleLoss) and examples * _count_outputs(loss, params, batch) >= LARGE


def copy_for_clients(params: Params, clients: int) -> Params:
    """Return the model once for each client, in memory that can be written."""
    rows = repeat_for_clients(params, clients)
    return {name: value.clone(memory_format=torch.contiguous_format) for name, value in rows.items()}


def _count_outputs(loss: ModuleLoss, params: Params, batch: Batch) -> int:
    """Count the values that a network's convolutions give for one example; found once for each shape."""
    from discreet.algorithms.training.layer_recording import register_hooks  # these need torch
    from discreet.algorithms.training.shipped_modules import Tap

    key = ("outputs of convolutions", batch.inputs.shape[2:])
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
            with torch.no_grad(), seed_torch(0, batch.inputs.device), register_hooks(taps):  # its dropout is not used
                loss(params, batch.inputs[0, :1], batch.targets[0, :1])
        loss.plans[key] = sum(counts)
    found: int = loss.plans[key]
    return found
