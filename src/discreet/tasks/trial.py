"""What a user's own module and functions are tried for before training, so that a fault is a sentence.

A trial proves nothing: it helps people. What a guarantee needs, training keeps by its making.
"""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from discreet.errors import DiscreetError, InvalidInput

FEW = 8  # examples that are looked at one by one


def check_apart(module: nn.Module, inputs: Tensor) -> None:
    """Refuse a module that gives an example something else when others are there; one that draws at random passes."""
    tried = copy.deepcopy(module).eval()
    few = inputs[:FEW]
    with torch.no_grad():
        together, again = tried(few), tried(few)
        if not isinstance(together, Tensor) or not torch.equal(together, again):
            return
        alone = torch.cat([tried(few[i : i + 1]) for i in range(len(few))])
    scale = float(together.abs().max()) if together.numel() else 0.0
    if alone.shape != together.shape or float((alone - together).abs().max()) > 1e-3 * scale + 1e-6:
        raise InvalidInput(
            "The model mixes examples: what it gives for one depends on the others in its batch.",
            fix="Its forward() must treat each example alone: no mean, softmax, sort or attention over dimension 0.",
        )


def of_own(what: str, function: Callable[..., Any], *given: Any) -> Any:
    """What a user's function gives; whatever it raises is said in a sentence."""
    try:
        return function(*given)
    except DiscreetError:
        raise
    except Exception as error:  # it may fail in any way
        name = getattr(function, "__name__", what)
        shown = " ".join(str(error).split())[:200].rstrip(".")
        raise InvalidInput(f"The {what} {name!r} failed: {type(error).__name__}: {shown}.") from error


def numbers(metric: Callable[..., Any], outputs: Tensor, targets: Tensor) -> dict[str, float]:
    """A metric's numbers by name: it gives one number, or several in a dict."""
    own = of_own("metric", metric, outputs, targets)
    named = own if isinstance(own, dict) else {getattr(metric, "__name__", "metric"): own}
    try:
        return {str(name): float(value) for name, value in named.items()}
    except (TypeError, ValueError, RuntimeError):
        got = {name: type(value).__name__ for name, value in named.items()}
        raise InvalidInput(f"A metric must give a number, or numbers by name, and gave {got}.") from None
