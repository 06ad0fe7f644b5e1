"""Misuse of `train`, `session` and `load` in a sentence: which argument is wrong, what was got, and what to write."""

import inspect
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from discreet.algorithms.recipes.argument_names import OTHER_NAMES, suggest_argument
from discreet.algorithms.recipes.registry import RECIPES
from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput
from discreet.experiment.configuration.run_settings import SettingKeywords
from discreet.experiment.promise.promise import Privacy

RECIPE_FIX = "Use a recipe, such as discreet.pfl(...) or discreet.dp_fedavg(...)."
PRIVACY_FIX = 'Write discreet.Privacy(unit="example", against="server", epsilon=2, delta=1e-5).'
ONLY_TRAIN = ("callbacks", "progress")
MODULE_FIX = "Pass the network itself, such as torch.nn.Linear(4, 2)."


def check_arguments(
    model: Any,
    clients: Any,
    algorithm: Any,
    privacy: Any,
    functions: Mapping[str, Any],
    settings: Collection[str],
    arguments: Collection[str],
) -> None:
    """Refuse what can't be an argument of `train`. What may be one is checked where it is used.

    Args:
        model: The network.
        clients: The clients' data.
        algorithm: The algorithm.
        privacy: The promise.
        functions: The user's own loss and metric, by their names.
        settings: The names of all other keywords.
        arguments: The names of the other arguments, for suggestions.

    Raises:
        InvalidInput: One of them is not what it must be.
    """
    _check_names(settings, arguments)
    check_module(model)
    _check_clients(clients)
    _check_algorithm(algorithm)
    if isinstance(privacy, Mapping | float | int | str | type):
        raise InvalidInput(f"privacy must be a promise, and got {describe(privacy)}.", fix=PRIVACY_FIX)
    for name, function in functions.items():
        if isinstance(function, type):
            raise InvalidInput(
                f"{name} must be a function, and got the class {function.__name__}.",
                fix=f"Write {function.__name__}().",
            )
        if function is not None and not callable(function):
            fix = "Pass a function of (outputs, targets), such as torch.nn.CrossEntropyLoss(), or leave it out."
            raise InvalidInput(f"{name} must be a function, and got {describe(function)}.", fix=fix)


def check_module(model: Any, name: str = "model") -> None:
    """Refuse what is neither a module nor a model's record."""
    if isinstance(model, type):
        raise InvalidInput(
            f"{name} must be an object, and got the class {model.__name__}.", fix=f"Write {model.__name__}(...)."
        )
    if not isinstance(model, nn.Module) and not hasattr(model, "build"):
        raise InvalidInput(f"{name} must be a torch.nn.Module, and got {describe(model)}.", fix=MODULE_FIX)


def describe(value: Any) -> str:
    """Say what kind of object a value is."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if inspect.isroutine(value):
        return f"the function {value.__name__}"
    return f"an object of the class {type(value).__name__}"


def check_session_names(given: Collection[str], arguments: Collection[str], required: Collection[str]) -> None:
    """Refuse keywords of `session` that nothing takes, and name those that are missing.

    Raises:
        InvalidInput: The message says which.
    """
    _check_names([name for name in given if name not in arguments], arguments)
    if missing := [name for name in arguments if name in required and name not in given]:
        example = ", ".join(f"{name}=..." for name in missing)
        raise InvalidInput(f"session needs {' and '.join(missing)}.", fix=f"Write session(model, clients, {example}).")


def _check_names(settings: Collection[str], arguments: Collection[str]) -> None:
    """Refuse keywords that nothing takes, and say where they belong or which was meant."""
    known = [*arguments, *SettingKeywords.__annotations__]
    for name in settings:
        if name in known:
            continue
        place = _find_place(OTHER_NAMES.get(name, name))
        raise InvalidInput(f"There is no argument {name!r} here{suggest_argument(name, known)}.", fix=place)


def _find_place(name: str) -> str:
    """Say which other function has an argument of this name. Empty if none has."""
    if name in ONLY_TRAIN:
        return f"It belongs to discreet.train({name}=...); a session's own loop takes its place."
    if name == "server":
        return (
            "Clients step by the algorithm's learning_rate; the server's optimiser belongs to the algorithm, such as "
            "discreet.dp_fedavg(server=discreet.parts.ServerAdam(learning_rate=...))."
        )
    if name in Privacy.__dataclass_fields__:
        return f"It belongs to the promise: privacy=discreet.Privacy({name}=...)."
    recipes = [recipe for recipe in ("pfl", "dp_fedavg", *RECIPES) if name in RECIPES[recipe].parameters]
    return f"It belongs to the algorithm, such as discreet.{recipes[0]}({name}=...)." if recipes else ""


def _check_clients(clients: Any) -> None:
    if isinstance(clients, Task):
        return
    values = clients if isinstance(clients, list | tuple) else [clients]
    if isinstance(clients, type) or inspect.isroutine(clients):
        fix = f"Call it: {clients.__name__}(...)."
    elif values and all(isinstance(value, Dataset | DataLoader) for value in values):
        fix = "Write discreet.clients_from_datasets([...]), with one dataset or data loader for each client."
    elif isinstance(clients, Tensor | np.ndarray | list | tuple) or hasattr(clients, "__array__"):
        fix = "Write discreet.clients_from_arrays(inputs, targets, clients=...), with the client of each example."
    elif isinstance(clients, str | Path):
        fix = "Write discreet.clients_from_csv(path, client=..., label=..., ranges=...)."
    elif clients is None or isinstance(clients, float | int):
        fix = "Use clients_from_arrays, clients_from_datasets or clients_from_csv."
    else:
        return  # a task's record, or a task of the user's own
    raise InvalidInput(f"clients must be the clients' data, and got {describe(clients)}.", fix=fix)


def _check_algorithm(algorithm: Any) -> None:
    is_function = inspect.isroutine(algorithm)
    name = algorithm.__name__ if is_function else algorithm
    if isinstance(name, str) and name in RECIPES:
        got = "the recipe itself" if is_function else "its name"
        raise InvalidInput(
            f"algorithm must be what the recipe {name} returns, and got {got}.",
            fix=f"Call it with its settings: discreet.{name}(...).",
        )
    if algorithm is None or is_function or isinstance(algorithm, str | Mapping | float | int | type):
        raise InvalidInput(f"algorithm must be an algorithm, and got {describe(algorithm)}.", fix=RECIPE_FIX)


def check_weights(module: nn.Module, weights: Mapping[str, Tensor], directory: Path) -> None:
    """Refuse a module whose weights have other names or shapes than those of a run."""
    wanted, held = _describe_weights(weights), _describe_weights(module.state_dict())
    for name in sorted(wanted | held):
        in_run, here = wanted.get(name, f"no {name!r}"), held.get(name, f"no {name!r}")
        if in_run != here:
            raise InvalidInput(
                f"module must be the network that was trained in {directory}, which has {in_run}, and this one has "
                f"{here}.",
                fix="Build it as it was built for train.",
            )


def _describe_weights(weights: Mapping[str, Tensor]) -> dict[str, str]:
    return {name: f"{name!r} of the shape {tuple(value.shape)}" for name, value in weights.items()}
