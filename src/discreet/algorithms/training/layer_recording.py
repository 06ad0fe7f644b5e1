"""Record what goes into each layer and the gradient of what comes out, by hooks and zeros that are added to outputs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.algorithms.training.shipped_modules import Tap
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
            seen[name] = inputs[0]
            return layout(output) + taps[name]

        return Tap(record)

    with _register_hooks({name: (layer, tap(name)) for name, layer in layers.items()}):
        yield


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
    """Return the shapes of the layers' outputs; None if a layer is used twice or not at all, or has another form."""
    found: dict[str, list[torch.Size]] = {name: [] for name in layers}

    def tap(name: str) -> Tap:
        return Tap(lambda inputs, output: found[name].append(output.shape))

    taps = {name: (layer, tap(name)) for name, layer in layers.items()}
    with torch.no_grad(), seed_torch(0, inputs.device), _register_hooks(taps):  # what dropout draws here is not used
        loss(params, inputs[:1], targets[:1])
    if any(len(shapes) != 1 for shapes in found.values()):
        return None
    unbatched = frozenset(name for name, (shape,) in found.items() if shape[:1] != (1,))
    if any(not isinstance(layers[name], WITHOUT_EXAMPLES) for name in unbatched):
        return None
    shapes = {name: shape if name in unbatched else shape[1:] for name, (shape,) in found.items()}
    return OutputShapes(shapes, unbatched)


@contextmanager
def _register_hooks(taps: dict[str, tuple[nn.Module, Tap]]) -> Iterator[None]:
    handles = [layer.register_forward_hook(tap) for layer, tap in taps.values()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
