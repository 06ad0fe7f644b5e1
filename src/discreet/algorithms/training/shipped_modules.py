"""Decide whether a network runs only code that torch and this package ship.

Anything else, such as a subclass, a patched method or a hook, is user code: it may read the whole batch, or keep what
it saw for the next call.
"""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, WrapperDescriptorType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules import module as torch_module
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from discreet.client_layers.layer_mode import LayerMode

INDEPENDENT_LAYERS: Mapping[type[nn.Module], tuple[str, ...]] = {
    # In these layers no example's output depends on another example, whatever settings `_is_known` accepts.
    # Beside each: the functions of torch.nn.functional that it calls.
    nn.Sequential: (),
    nn.Identity: (),
    nn.Linear: ("linear",),
    nn.Conv1d: ("conv1d", "pad"),
    nn.Conv2d: ("conv2d", "pad"),
    nn.Embedding: ("embedding",),
    nn.GroupNorm: ("group_norm",),
    nn.LayerNorm: ("layer_norm",),
    nn.MaxPool2d: ("max_pool2d",),
    nn.AvgPool2d: ("avg_pool2d",),
    nn.AdaptiveAvgPool2d: ("adaptive_avg_pool2d",),
    nn.Dropout: ("dropout",),
    nn.Dropout2d: ("dropout2d",),
    nn.Flatten: (),
    nn.ReLU: ("relu",),
    nn.LeakyReLU: ("leaky_relu",),
    nn.ELU: ("elu",),
    nn.SELU: ("selu",),
    nn.GELU: ("gelu",),
    nn.SiLU: ("silu",),
    nn.Tanh: (),
    nn.Sigmoid: (),
    nn.Softplus: ("softplus",),
}
FUNCTIONAL_NAMES = (*(name for names in INDEPENDENT_LAYERS.values() for name in names), "cross_entropy")
CALLED_FUNCTIONS: tuple[tuple[Any, tuple[str, ...]], ...] = (  # called by those layers and by our models
    (functional, FUNCTIONAL_NAMES),
    (torch, ("tanh", "sigmoid", "relu", "group_norm", "layer_norm", "conv1d", "conv2d", "embedding")),
    (Tensor, ("flatten", "mean", "sum", "softmax", "reshape", "relu", "tanh", "__add__", "__mul__", "__sub__")),
)
GLOBAL_HOOKS = tuple(  # hooks on all modules of the process
    value for name, value in vars(torch_module).items() if name.startswith("_global_") and isinstance(value, dict)
)
OUR_MODELS = "discreet.models.networks."
TORCH, DISCREET = Path(torch.__file__).parent, Path(__file__).parents[2]
SHIPPED_FOLDERS = (f"{TORCH}{os.sep}", f"{DISCREET}{os.sep}")


@dataclass(frozen=True)
class Tap:
    """A forward hook of this package: it records what passes through one layer, and doesn't mix examples."""

    record: Callable[[tuple[Tensor, ...], Tensor], Tensor | None]

    def __call__(self, layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor | None:
        return self.record(inputs, output)


def runs_only_shipped_code(network: nn.Module) -> bool:
    """Return whether the network runs only shipped code.

    Guarantee: true only if every module is exactly of a class in INDEPENDENT_LAYERS or of our models, and nothing on
    the instance, on its class or in the process replaces what it does.
    """
    modules = list(network.modules())
    return (
        not has_global_overrides()
        and all(_is_known(module) and not _is_overridden(module) for module in modules)
        and all(_is_unpatched(kind) for kind in {type(module) for module in modules})
        and all(_is_shipped(getattr(place, name)) for place, names in CALLED_FUNCTIONS for name in names)
    )


def is_shipped_layer(layer: nn.Module) -> bool:
    """Return whether this layer of a torch class does what torch documents."""
    return not _is_overridden(layer) and _is_unpatched(type(layer))


def has_global_overrides() -> bool:
    """Return whether hooks on all modules are active, or a mode that rewrites torch functions and is not ours."""
    hooks = any(GLOBAL_HOOKS)
    modes = [*_get_current_function_mode_stack(), *_get_current_dispatch_mode_stack()]  # type: ignore[no-untyped-call]
    return hooks or any(type(mode) not in (DeviceContext, LayerMode) for mode in modes)


def _is_known(module: nn.Module) -> bool:
    kind = type(module)
    if isinstance(module, nn.Embedding) and (module.max_norm is not None or module.scale_grad_by_freq):
        return False  # it changes its weights, or divides by how often a word is in the batch
    if isinstance(module, nn.Flatten):
        return kind is nn.Flatten and module.start_dim == 1
    if kind.__module__.startswith(OUR_MODELS):  # and is really defined there
        return getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind
    return kind in INDEPENDENT_LAYERS


def _is_overridden(module: nn.Module) -> bool:
    """Return whether this instance has a method, a hook or a tensor type of its own."""
    own = vars(module)
    shadowed = any(callable(getattr(type(module), name, None)) for name in own if name != "training")
    called = any(callable(value) for name, value in own.items() if not name.startswith("_"))
    hooks = [hook for name, value in own.items() if name.endswith("_hooks") and value for hook in value.values()]
    tensors = [*own["_parameters"].values(), *own["_buffers"].values()]
    return (
        shadowed
        or called
        or any(type(hook) is not Tap for hook in hooks)
        or own.get("_compiled_call_impl") is not None
        or any(value is not None and type(value) not in (Tensor, nn.Parameter) for value in tensors)
    )


def _is_unpatched(kind: type[nn.Module]) -> bool:
    """Return whether all functions of the class and its bases are defined in shipped files."""
    return all(
        _is_shipped(value)
        for owner in kind.__mro__[:-1]
        for value in vars(owner).values()
        if callable(value) and not isinstance(value, type)
    )


def is_shipped_function(function: FunctionType) -> bool:
    """Return whether its code is in a file of torch or of this package."""
    return function.__code__.co_filename.startswith(SHIPPED_FOLDERS)


def _is_shipped(function: Any) -> bool:
    if isinstance(function, FunctionType):
        torchs_own = function.__module__ == "torch._tensor"  # its wrappers are shipped too
        return is_shipped_function(function) and (torchs_own or not hasattr(function, "__wrapped__"))
    return isinstance(function, BuiltinFunctionType | MethodDescriptorType | WrapperDescriptorType)
