"""Layers that can't be trained client by client and example by example, and what to use instead."""

import math

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.parameter import is_lazy
from torch.nn.utils.spectral_norm import SpectralNorm

from discreet.errors import InvalidInput


def check_layers(module: nn.Module) -> None:
    """Refuse layers that mix examples, or whose state changes when data passes through them.

    Raises:
        InvalidInput: If the module has such a layer. The message names a replacement.
    """
    for name, layer in module.named_modules():
        problem = _problem(layer)
        if problem is not None:
            what, fix = problem
            place = f"{type(layer).__name__} at '{name}'" if name else type(layer).__name__
            raise InvalidInput(f"{place} {what}.", fix=fix.format(place=place))


def _problem(layer: nn.Module) -> tuple[str, str] | None:
    if any(is_lazy(value) for value in [*layer.parameters(recurse=False), *layer.buffers(recurse=False)]):
        return "has no shape yet", "Pass one batch of zeros through the module first."
    if hasattr(layer, "_orig_mod") or vars(layer).get("_compiled_call_impl") is not None:
        return (
            "is compiled, and can't be differentiated example by example",
            "Pass the module as it was before compile.",
        )
    match layer:
        case _BatchNorm() if layer.training or not layer.track_running_stats:
            groups = 1 if isinstance(layer, nn.BatchNorm1d) else math.gcd(32, layer.num_features)
            return (
                "mixes the examples of a batch and keeps statistics of them, which no clip bounds",
                f"Use GroupNorm({groups}, {layer.num_features}) instead of {{place}}, or freeze it with .eval().",
            )
        case _InstanceNorm() if layer.training and layer.track_running_stats:
            return "keeps statistics of the data, which no clip bounds", "Set track_running_stats=False."
        case nn.Embedding() | nn.EmbeddingBag() if layer.max_norm is not None:
            return "changes its weights in place while data passes through it", "Leave out max_norm."
        case nn.RReLU() if layer.training:
            return "can't be vectorised over examples", "Use LeakyReLU instead of {place}."
    if _has_spectral_norm(layer):
        return (
            "keeps a state (spectral normalisation) that changes when data passes through it",
            "Leave it out, or use torch.nn.utils.parametrizations.weight_norm.",
        )
    return None


def _has_spectral_norm(layer: nn.Module) -> bool:
    if type(layer).__name__ == "_SpectralNorm":  # the newer form, a private class of torch
        return True
    return any(isinstance(hook, SpectralNorm) for hook in layer._forward_pre_hooks.values())
