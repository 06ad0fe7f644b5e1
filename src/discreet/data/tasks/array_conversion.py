"""Convert arrays that a caller passed in to tensors, or say what is wrong with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.errors import InvalidInput
from discreet.lazy_torch import Tensor, torch


def named_pair(which: str, pair: Any) -> tuple[Tensor, Tensor]:
    """Convert a pair (inputs, targets) that was passed as the argument `which`."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        kind = f"an object of the class {type(pair).__name__}"
        got = f"{len(pair)} values" if isinstance(pair, tuple | list) else kind
        raise InvalidInput(
            f"{which} must be a pair (inputs, targets), and got {got}.", fix=f"Write {which}=(inputs, targets)."
        )
    return as_pair(f"{which} inputs", *pair)


def as_pair(which: str, inputs: Any, targets: Any) -> tuple[Tensor, Tensor]:
    """Convert inputs and targets to tensors, and check that they count the same examples."""
    all_inputs, all_targets = as_tensor(which, inputs), as_tensor(f"targets of the {which}", targets)
    if all_inputs.dim() == 0 or all_targets.dim() == 0 or len(all_inputs) != len(all_targets):
        raise InvalidInput(
            f"The {which} and their targets must count the same examples, and have the shapes "
            f"{tuple(all_inputs.shape)} and {tuple(all_targets.shape)}."
        )
    return all_inputs, all_targets


def as_tensor(which: str, values: Any) -> Tensor:
    """Copy values to a CPU tensor: floating-point numbers as float32, whole numbers as int64."""
    if isinstance(values, torch.utils.data.Dataset | torch.utils.data.DataLoader):
        raise InvalidInput(
            f"The {which} must be an array, and got an object of the class {type(values).__name__}.",
            fix="Use clients_from_datasets, which takes datasets and data loaders.",
        )
    tensor = values.detach() if isinstance(values, torch.Tensor) else _from_numpy(which, values)
    if tensor.is_complex():
        raise InvalidInput(f"The {which} are complex numbers.", fix="Pass real and imaginary parts as two numbers.")
    if tensor.layout != torch.strided:
        raise InvalidInput(f"The {which} are a sparse tensor.", fix="Pass tensor.to_dense().")
    return tensor.to("cpu", torch.float32 if tensor.is_floating_point() else torch.int64, copy=True)


def _from_numpy(which: str, values: Any) -> Tensor:
    """Convert lists, numpy arrays and data frames."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"The {which} must be one array of numbers, and its rows differ in length.",
            fix="Crop or pad them to one length.",
        ) from None
    if array.dtype.kind not in "fiubc":
        raise InvalidInput(
            f"The {which} must be numbers, and are {_name_type(array)}.",
            fix="Number categories from 0, and turn text into numbers; clients_from_csv encodes columns of a table.",
        )
    return torch.tensor(array)


def _name_type(array: np.ndarray[Any, Any]) -> str:
    if array.ndim == 0:
        return f"an object of the class {type(array.item()).__name__}"
    return {"U": "text", "S": "bytes", "M": "dates", "m": "durations"}.get(array.dtype.kind, "objects of mixed types")


def refuse_lists_of_arrays(inputs: Any) -> None:
    """Refuse one array for each client, which would be read as one example each."""
    if isinstance(inputs, list | tuple) and inputs and all(getattr(one, "ndim", 0) >= 2 for one in inputs):
        raise InvalidInput(
            f"The inputs must be one array of all examples, and got a list of {len(inputs)} arrays.",
            fix="Join them with torch.cat and pass their lengths as sizes=, or stack them if each is one example.",
        )
