"""Names of arguments that a recipe or `train` doesn't take: which one was meant, also by another library's word."""

import functools
import importlib
import inspect
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from discreet.errors import InvalidInput

R = TypeVar("R")

OTHER_NAMES = {  # of other libraries
    **dict.fromkeys(("lr", "learningrate", "step_size"), "learning_rate"),
    **dict.fromkeys(("optimizer", "optimiser", "server_optimizer", "optim"), "server"),
    **dict.fromkeys(("eps", "target_epsilon"), "epsilon"),
    **dict.fromkeys(("criterion", "loss_fn", "loss_function"), "loss"),
    **dict.fromkeys(("metrics", "metric_fn"), "metric"),
    **dict.fromkeys(("num_rounds", "n_rounds"), "rounds"),
    **dict.fromkeys(("max_grad_norm", "clip", "clipping_norm", "l2_norm_clip"), "clip_norm"),
    **dict.fromkeys(("sigma", "noise", "noise_scale"), "noise_multiplier"),
    **dict.fromkeys(("sample_rate", "q"), "sampling_rate"),
    **dict.fromkeys(("local_epochs", "num_epochs", "n_epochs"), "epochs"),
}


def suggest_argument(name: str, known: Collection[str]) -> str:
    """Return the argument that was probably meant, as a question in brackets. Empty if none is near."""
    meant = OTHER_NAMES.get(name, name)
    near = [meant] if meant in known else get_close_matches(name, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def check_recipe_arguments(title: str, parameters: Mapping[str, inspect.Parameter], given: Collection[str]) -> None:
    """Refuse arguments that a recipe doesn't take, and name those that are missing.

    Args:
        title: What the message calls the recipe.
        parameters: The parameters of its function.
        given: The names of the arguments.

    Raises:
        InvalidInput: A name is unknown, or a required one is missing.
    """
    takes = f"It takes: {', '.join(parameters)}."
    for name in given:
        if name not in parameters:
            raise InvalidInput(f"{title} takes no {name!r}{suggest_argument(name, parameters)}.", fix=takes)
    missing = [name for name, each in parameters.items() if each.default is each.empty and name not in given]
    if missing:
        raise InvalidInput(f"{title} needs {' and '.join(missing)}.", fix=takes)


CHECKS = "discreet.algorithms.recipes.recipe_arguments"  # which loads the parts, and so torch


@functools.cache
def explain_arguments(function: Callable[..., R]) -> Callable[..., R]:
    """Return a recipe's function that refuses wrong names of arguments in a sentence, and is the same otherwise."""
    parameters = inspect.signature(function).parameters
    title = f"discreet.{function.__name__}"

    @functools.wraps(function)
    def call_recipe(*positional: Any, **arguments: Any) -> R:
        if positional:
            first = next(iter(parameters))
            raise InvalidInput(
                f"{title} takes its arguments by name, and got a value without one.", fix=f"Write {first}=..."
            )
        check_recipe_arguments(title, parameters, arguments)
        importlib.import_module(CHECKS).check_plain_arguments(title, function, arguments)
        return function(**arguments)

    return call_recipe
