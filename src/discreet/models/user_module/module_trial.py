"""Try a user's module and functions before training, so that a mistake is reported in one sentence.

A trial proves nothing: it only helps the user. What a guarantee needs is ensured by how training is built.
"""

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from discreet.algorithms.training.isolation_check import fixed_randomness
from discreet.algorithms.training.tensor_uses import TensorUses
from discreet.errors import DiscreetError, InvalidInput
from discreet.words import fill

T = TypeVar("T")
FEW = 8  # examples that are tried one by one
REPEATS = 4  # calls with different random numbers, to recognise a module that uses some


def copy_module(module: nn.Module) -> nn.Module:
    """Return a deep copy of the module, and refuse a module that can't be copied."""
    with _explain_failure(
        "The model can't be copied",
        fix="Pass it as it was built, before any data went through it, without tensors kept from forward().",
    ):
        return copy.deepcopy(module)


def try_forward(module: nn.Module, inputs: Tensor, shape: tuple[int, ...]) -> Any:
    """Return the outputs of a copy of the module for a batch. Refuse a module that fails or changes its tensors."""
    trial = copy.deepcopy(module)
    before = copy.deepcopy(trial.state_dict())
    problem = f"The model can't take inputs of the shape {shape} ({inputs.dtype})"
    fix = "Its forward() gets a batch of them."
    if not inputs.is_floating_point():
        fix += " Whole numbers stay whole, as an embedding needs them; for any other layer pass inputs.float()."
    with torch.no_grad(), _explain_failure(problem, fix=fix):
        outputs = trial(inputs)
    for name, value in trial.state_dict().items():
        if isinstance(value, Tensor) and not torch.equal(value.nan_to_num(), before[name].nan_to_num()):
            raise InvalidInput(
                f"The model's forward() changes its tensor {name!r}, and training keeps such tensors as they are.",
                fix="Leave out what forward() collects from the data, or freeze it with .eval().",
            )
    return outputs


def check_nothing_trained_is_kept_apart(reachable: Mapping[int, Tensor], compute: Callable[[], Tensor]) -> None:
    """Refuse a model or loss that computes with a parameter where training doesn't replace it.

    Args:
        reachable: All tensors that the model and its loss refer to.
        compute: Computes a loss with other tensors in the place of all parameters of the model.
    """
    trained = {str(key): value for key, value in reachable.items() if type(value) is nn.Parameter}
    uses = TensorUses({key: value for key, value in trained.items() if value.requires_grad})
    with torch.no_grad(), uses:
        compute()
    for key, count in uses.counts.items():
        if count:
            raise InvalidInput(
                f"The model or its loss computes with a parameter of the shape {tuple(trained[key].shape)} that it "
                "keeps beside its layers, such as in a list or a closure, where training would not change it.",
                fix="Register it in the model (nn.ParameterList, nn.ModuleList), and compute penalties in forward().",
            )


def try_differentiate(compute: Callable[..., T], *arguments: Any) -> T:
    """Call a function that uses torch.func's grad and vmap on a user's code. Refuse code that fails there."""
    with _explain_failure(
        "The model can't be differentiated example by example",
        fix="Avoid .item(), branches on data, state that forward() changes, tensors on another device, and "
        "autograd functions without setup_context and generate_vmap_rule.",
    ):
        return compute(*arguments)


def stateful_model_error() -> InvalidInput:
    """Return the error about a model that keeps state between calls."""
    return InvalidInput(
        "The model keeps state: its outputs for the same examples depend on earlier examples, so one "
        "client's data would reach another client's update.",
        fix="Let forward() compute everything from its inputs and parameters, and change nothing in the module or in "
        "global variables.",
    )


def describe_verification(name: str, like: Tensor, *, own_code: bool) -> str:
    """Say on the card what was verified about a user's own model."""
    return fill(
        "assumes.verified_own_model" if own_code else "assumes.verified_model",
        name=name,
        device=like.device.type,
        dtype=str(like.dtype).split(".")[1],
    )


def check_examples_independent(module: nn.Module, inputs: Tensor) -> None:
    """Refuse a module whose output for one example depends on the others. A module that uses random numbers passes."""
    trial = copy.deepcopy(module).eval()
    few = inputs[:FEW]
    together, *repeats = (_call_with_seed(trial, few, seed) for seed in range(REPEATS))
    if not isinstance(together, Tensor) or not all(torch.equal(together, repeat) for repeat in repeats):
        return
    singles = [_call_with_seed(trial, few[i : i + 1], 0) for i in range(len(few))]
    if any(single.shape != (1, *together.shape[1:]) for single in singles):
        raise InvalidInput(
            f"The model gives {tuple(together.shape)} for {len(few)} examples, but {tuple(singles[0].shape)} for one.",
            fix="Its forward() must keep the first dimension, also of one example: squeeze(-1) instead of squeeze().",
        )
    alone = torch.cat(singles)
    scale = float(together.abs().max()) if together.numel() else 0.0
    if float((alone - together).abs().max()) > 1e-3 * scale + 1e-6:
        raise InvalidInput(
            "The model mixes examples: its output for one example depends on the others in the batch.",
            fix="Its forward() must treat each example alone: no mean, softmax, sort or attention over dimension 0.",
        )


def _call_with_seed(module: nn.Module, inputs: Tensor, seed: int) -> Any:
    with torch.no_grad(), fixed_randomness(seed, inputs.device):
        return call_user_function("model", module, inputs)


def call_user_function(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a user's function, and report any error that it raises in one sentence."""
    try:
        return function(*arguments)
    except DiscreetError:
        raise
    except Exception as error:  # a user's code may fail in any way
        name = getattr(function, "__name__", what)
        message = " ".join(str(error).split())[:200].rstrip(".")
        raise InvalidInput(f"The {what} {name!r} failed: {type(error).__name__}: {message}.") from error


def metric_name(metric: Callable[..., Any]) -> str:
    """Return the name of a metric: that of the function, or of the class of an object that is called."""
    return getattr(metric, "__name__", type(metric).__name__)


def metric_values(metric: Callable[..., Any], outputs: Tensor, targets: Tensor) -> dict[str, float]:
    """Return a metric's values by name. The metric returns one number, or several in a dict."""
    result = call_user_function("metric", metric, outputs, targets)
    values = result if isinstance(result, dict) else {metric_name(metric): result}
    try:
        return {str(name): float(value) for name, value in values.items()}
    except (TypeError, ValueError, RuntimeError):
        got = {name: type(value).__name__ for name, value in values.items()}
        raise InvalidInput(f"A metric must return a number, or numbers by name, and returned {got}.") from None


@contextmanager
def _explain_failure(problem: str, *, fix: str) -> Iterator[None]:
    """Turn any error but ours into one that states the problem and the first line of the error."""
    try:
        yield
    except DiscreetError:
        raise
    except Exception as error:  # a user's code may fail in any way
        first_line = str(error).strip().split("\n")[0][:200].rstrip(".")
        raise InvalidInput(f"{problem}: {first_line or type(error).__name__}.", fix=fix) from error
