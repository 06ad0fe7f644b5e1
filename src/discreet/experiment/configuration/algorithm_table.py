"""The [algorithm] table of a file: a recipe with its arguments, or the parts one by one."""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.recipes.argument_names import check_recipe_arguments
from discreet.algorithms.recipes.recipe_arguments import validate_arguments
from discreet.algorithms.recipes.registry import RECIPES
from discreet.errors import InvalidInput
from discreet.trust import Trust
from discreet.user_code import call_factory, find_code, run_code


def build_algorithm(given: Any) -> Any:
    """Build the algorithm of a recipe from its arguments. Data without a recipe is returned, to be read as parts."""
    if not isinstance(given, Mapping) or "recipe" not in given:
        return given
    name, arguments = given["recipe"], {key: value for key, value in given.items() if key != "recipe"}
    if not isinstance(name, str) or name not in RECIPES:
        raise InvalidInput(
            f"There is no recipe {name!r}.", fix=f"There are: {', '.join(RECIPES)}; or your own: file.py:function."
        )
    recipe = RECIPES[name]
    check_recipe_arguments(f"algorithm: the recipe {name!r}", recipe.parameters, arguments)
    return recipe(**arguments)


def build_own_algorithm(reference: str, arguments: Mapping[str, Any], folder: Path, trust: Trust) -> Algorithm:
    """Build an algorithm by a recipe of the user's own: a function that returns an `Algorithm` made of parts.

    Args:
        reference: The function, as `file.py:function`.
        arguments: Its arguments. A table becomes a part where the function's annotation says so.
        folder: File names are relative to this folder.
        trust: What may run.
    """
    function = run_code(find_code(reference, folder, arguments), trust)
    if not callable(function):
        raise InvalidInput(f"{reference} must be a function that returns an Algorithm, and is no function.")
    check_recipe_arguments(f"algorithm: the recipe {reference!r}", inspect.signature(function).parameters, arguments)
    try:
        validated = validate_arguments(function, arguments)
    except NameError as error:  # an annotation that is only a text
        raise InvalidInput(f"{reference} has an annotation that can't be read: {error}.") from None
    algorithm = call_factory(reference, function, validated)
    if type(algorithm) is not Algorithm:
        raise InvalidInput(f"{reference} must return an Algorithm, and returned a {type(algorithm).__name__}.")
    return algorithm


def takes_field(table: Any, field: str) -> bool:
    """Return whether an [algorithm] table can have this field. Only for the recipes of this package that is known."""
    name = table.get("recipe") if isinstance(table, Mapping) else None
    return name not in RECIPES or field in RECIPES[name].parameters


AnyAlgorithm: TypeAlias = Annotated[Algorithm, BeforeValidator(build_algorithm)]
