"""What a user's own module and functions are tried for before training, so that a fault is a sentence.

A trial proves nothing: it helps people. What a guarantee needs, training keeps by its making.
"""

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from discreet.algorithms.training.isolation_check import fixed_randomness
from discreet.errors import DiscreetError, InvalidInput

T = TypeVar("T")
FEW = 8  # examples that are looked at one by one
REPEATS = 4  # calls with other random numbers, by which a module that draws some is recognised


def copy_module(module: nn.Module) -> nn.Module:
    """A deep copy of the module; what can't be copied is said in a sentence."""
    try:
        return copy.deepcopy(module)
    except Exception as error:  # anybody's objects may be in it
        raise InvalidInput(
            f"The model can't be copied: {_first_line(error)}",
            fix="Pass it as it was built, before any data went through it, without tensors kept from forward().",
        ) from error


def try_forward(module: nn.Module, inputs: Tensor, shape: tuple[int, ...]) -> Any:
    """What a copy of the module gives for a batch; whatever it raises or changes is said in a sentence."""
    tried = copy.deepcopy(module)
    before = copy.deepcopy(tried.state_dict())
    try:
        with torch.no_grad():
            outputs = tried(inputs)
    except DiscreetError:
        raise
    except Exception as error:  # it may fail in any way
        raise InvalidInput(
            f"The model can't take inputs of the shape {shape} ({inputs.dtype}): {_first_line(error)}",
            fix="Its forward() gets a batch of them.",
        ) from error
    for name, value in tried.state_dict().items():
        if isinstance(value, Tensor) and not torch.equal(value.nan_to_num(), before[name].nan_to_num()):
            raise InvalidInput(
                f"The model's forward() changes its tensor {name!r}, and training keeps such tensors as they are.",
                fix="Leave out what forward() collects from the data, or freeze it with .eval().",
            )
    return outputs


def try_differentiate(compute: Callable[..., T], *given: Any) -> T:
    """What is computed by torch.func's grad and vmap through a user's code; whatever fails is said in a sentence."""
    try:
        return compute(*given)
    except DiscreetError:
        raise
    except Exception as error:  # the code is anybody's
        raise InvalidInput(
            f"The model can't be differentiated example by example: {_first_line(error)}",
            fix="Avoid .item(), branches on data, state that forward() changes, tensors on another device, and "
            "autograd functions without setup_context and generate_vmap_rule.",
        ) from error


def stateful_model_error() -> InvalidInput:
    return InvalidInput(
        "The model keeps state: what it computes for the same examples depends on those that it saw before, so one "
        "client's data would reach another client's update.",
        fix="Let forward() compute everything from its inputs and parameters, and change nothing in the module or in "
        "global variables.",
    )


def describe_verification(name: str, like: Tensor, *, own_code: bool) -> str:
    """What a card says of a user's own model."""
    trials = (
        f"The model {name} was verified before training, on {like.device.type} in {str(like.dtype).split('.')[1]}: "
        "replacing one example changed no other example's gradient, and replacing one client's data changed no other "
        "client's gradient."
    )
    if not own_code:
        return f"{trials} It runs nothing but torch's own layers, as they are shipped."
    return (
        f"{trials} Repeated calls agreed. Its code is the user's own, so it gets one example at a time where examples "
        "are protected, and a fresh copy of the module for every call, after which it may hold no new tensor. What it "
        "keeps in other ways, in files say, is covered by these trials only."
    )


def check_examples_independent(module: nn.Module, inputs: Tensor) -> None:
    """Refuse a module that gives an example something else when others are there; one that draws at random passes."""
    tried = copy.deepcopy(module).eval()
    few = inputs[:FEW]
    together, *again = (_call_with_seed(tried, few, seed) for seed in range(REPEATS))
    if not isinstance(together, Tensor) or not all(torch.equal(together, each) for each in again):
        return
    singles = [_call_with_seed(tried, few[i : i + 1], 0) for i in range(len(few))]
    if any(each.shape != (1, *together.shape[1:]) for each in singles):
        raise InvalidInput(
            f"The model gives {tuple(together.shape)} for {len(few)} examples, and {tuple(singles[0].shape)} for one.",
            fix="Its forward() must keep the first dimension, also of one example: squeeze(-1) instead of squeeze().",
        )
    alone = torch.cat(singles)
    scale = float(together.abs().max()) if together.numel() else 0.0
    if float((alone - together).abs().max()) > 1e-3 * scale + 1e-6:
        raise InvalidInput(
            "The model mixes examples: what it gives for one depends on the others in its batch.",
            fix="Its forward() must treat each example alone: no mean, softmax, sort or attention over dimension 0.",
        )


def _call_with_seed(module: nn.Module, inputs: Tensor, seed: int) -> Any:
    with torch.no_grad(), fixed_randomness(seed, inputs.device):
        return call_user_function("model", module, inputs)


def call_user_function(what: str, function: Callable[..., Any], *given: Any) -> Any:
    """What a user's function gives; whatever it raises is said in a sentence."""
    try:
        return function(*given)
    except DiscreetError:
        raise
    except Exception as error:  # it may fail in any way
        name = getattr(function, "__name__", what)
        shown = " ".join(str(error).split())[:200].rstrip(".")
        raise InvalidInput(f"The {what} {name!r} failed: {type(error).__name__}: {shown}.") from error


def metric_values(metric: Callable[..., Any], outputs: Tensor, targets: Tensor) -> dict[str, float]:
    """A metric's numbers by name: it gives one number, or several in a dict."""
    own = call_user_function("metric", metric, outputs, targets)
    named = own if isinstance(own, dict) else {getattr(metric, "__name__", "metric"): own}
    try:
        return {str(name): float(value) for name, value in named.items()}
    except (TypeError, ValueError, RuntimeError):
        got = {name: type(value).__name__ for name, value in named.items()}
        raise InvalidInput(f"A metric must give a number, or numbers by name, and gave {got}.") from None


def _first_line(error: Exception) -> str:
    lines = str(error).strip().split("\n")
    return (lines[0][:200].rstrip(".") or type(error).__name__) + "."
