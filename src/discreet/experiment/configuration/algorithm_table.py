"""The [algorithm] table of a file: a recipe with its arguments, or the parts one by one."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.recipes.recipe import Recipe
from discreet.algorithms.recipes.registry import RECIPES
from discreet.errors import InvalidInput


def build_algorithm(given: Any) -> Any:
    """Build the algorithm of a recipe from its arguments. Data without a recipe is returned, to be read as parts."""
    if not isinstance(given, Mapping) or "recipe" not in given:
        return given
    name, arguments = given["recipe"], {key: value for key, value in given.items() if key != "recipe"}
    if not isinstance(name, str) or name not in RECIPES:
        raise InvalidInput(f"There is no recipe {name!r}.", fix=f"There are: {', '.join(RECIPES)}.")
    recipe = RECIPES[name]
    _check(name, recipe, arguments)
    return recipe(**arguments)


def _check(name: str, recipe: Recipe, arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that the recipe doesn't take, and name those that are missing."""
    parameters = recipe.parameters
    for key in arguments:
        if key not in parameters:
            near = get_close_matches(key, parameters, n=1)
            raise InvalidInput(
                f"algorithm: the recipe {name!r} takes no {key!r}"
                + (f" (did you mean {near[0]!r}?)." if near else "."),
                fix=f"It takes: {', '.join(parameters)}.",
            )
    missing = [key for key, each in parameters.items() if each.default is each.empty and key not in arguments]
    if missing:
        raise InvalidInput(
            f"algorithm: the recipe {name!r} needs {' and '.join(missing)}.",
            fix=f"It takes: {', '.join(parameters)}.",
        )


AnyAlgorithm: TypeAlias = Annotated[Algorithm, BeforeValidator(build_algorithm)]
