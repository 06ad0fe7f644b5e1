"""Record what goes into each layer and the gradient of what comes out, by hooks and zeros that are added to outputs."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.algorithms.training.shipped_modules import Tap
from discreet.algorithms.training.tensor_uses import TensorUses
from discreet.errors import InvalidInput
from discreet.params import Params
from discreet.randomness.torch_seed import seed_torch

WITHOUT_EXAMPLES = (nn.Linear, nn.LayerNorm, nn.Embedding)  # they take inputs without an axis of examples too


def channels_last(value: Tensor) -> Tensor:
    """Return images in the memory layout in which pooling and convolutions are fastest."""
    return value.contiguous(memory_format=torch.channels_last) if value.dim() == 4 else value


def keep_layout(value: Tensor) -> Tensor:
    """Return the tensor in its own memory layout."""
    return value


Taps = dict[str, Tensor]
Layout = Callable[[Tensor], Tensor]


@contextmanager
def record_layers(layers: dict[str, nn.Module], taps: Taps, seen: Taps, layout: Layout) -> Iterator[None]:
    """Record each layer's input, and add a zero tap to its output: the tap's gradient is that of the output."""

    def tap(name: str) -> Tap:
        def record(inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
            if name in seen:
                raise changed_path(name)
            seen[name] = inputs[0]
            return layout(output) + taps[name]

        return Tap(record)

    with register_hooks({name: (layer, tap(name)) for name, layer in layers.items()}):
        yield


def changed_path(layer: str) -> InvalidInput:
    """Return the error of a network that calls a layer more often or less often than when it was tried."""
    return InvalidInput(
        f"The network calls its layer {layer!r} another number of times than when it was tried, so the gradients of "
        "single examples are not known.",
        fix="Call the same layers in every pass: draw with torch, as torch.nn.Dropout does, and multiply by the draw.",
    )


class OutputShapes(NamedTuple):
    """What the layers of a network give for one example.

    Attributes:
        shapes: Shape of each layer's output, without the axis of examples.
        unbatched: Layers whose inputs have no axis of examples, such as an embedding of positions.
    """

    shapes: dict[str, torch.Size]
    unbatched: frozenset[str]


def output_shapes(
    loss: ModuleLoss, layers: dict[str, nn.Module], params: Params, inputs: Tensor, targets: Tensor
) -> OutputShapes | None:
    """Return the shapes of the layers' outputs.

    None if a layer is used twice or not at all, if its weights are also used outside it, or if it has another form.
    """
    found: dict[str, list[tuple[tuple[Tensor, ...], torch.Size]]] = {name: [] for name in layers}

    def tap(name: str) -> Tap:
        return Tap(lambda inputs, output: found[name].append((inputs, output.shape)))

    taps = {name: (layer, tap(name)) for name, layer in layers.items()}
    uses = TensorUses(params)
    with torch.no_grad(), seed_torch(0, inputs.device), register_hooks(taps), uses:  # what dropout draws is not used
        loss(params, inputs[:1], targets[:1])
    if max(uses.counts.values(), default=0) > 1 or any(len(calls) != 1 for calls in found.values()):
        return None
    calls = {name: (given[0], shape) for name, ((given, shape),) in found.items() if given and shape.numel()}
    unbatched = frozenset(name for name, call in calls.items() if not _has_examples(layers[name], *call))
    if len(calls) < len(layers) or any(not isinstance(layers[name], WITHOUT_EXAMPLES) for name in unbatched):
        return None
    shapes = {name: shape if name in unbatched else shape[1:] for name, (_, shape) in calls.items()}
    return OutputShapes(shapes, unbatched)


def _has_examples(layer: nn.Module, inputs: Tensor, output: torch.Size) -> bool:
    """Return whether the first axis of a layer's inputs and outputs, which come from one example, is that of examples.

    Otherwise there is none, as of an embedding of positions.
    """
    if isinstance(layer, nn.Embedding):
        axes = 1
    elif isinstance(layer, nn.LayerNorm):
        axes = 1 + len(layer.normalized_shape)
    elif isinstance(layer, nn.Conv1d | nn.Conv2d):
        axes = 2 + len(layer.kernel_size)
    else:
        axes = 2
    return inputs.dim() >= axes and (inputs.shape[0], output[0]) == (1, 1)


@contextmanager
def register_hooks(taps: Mapping[str, tuple[nn.Module, Tap]]) -> Iterator[None]:
    """Let each tap see what passes through its layer while the block lasts."""
    handles = [layer.register_forward_hook(tap) for layer, tap in taps.values()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
