"""Where a module holds its tensors: several layers may share a tensor, and several names a layer."""

from torch import nn


def find_tensor_places(module: nn.Module) -> dict[str, str]:
    """Return the name of the parameter or buffer at each place that holds one; a layer with several names has one.

    `functional_call` finds shared tensors by itself, but fills a layer with two names twice, and then leaves it with
    the values of the call.
    """
    known: dict[int, str] = {}
    places = {}
    for layer_name, layer in module.named_modules():
        for own, tensor in [*layer._parameters.items(), *layer._buffers.items()]:
            if tensor is not None:
                place = f"{layer_name}.{own}" if layer_name else own
                places[place] = known.setdefault(id(tensor), place)
    return places
