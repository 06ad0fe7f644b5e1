"""`discreet algorithms`: the catalog of recipes, as the recipes describe themselves."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeAlias

import typer
from rich.console import RenderableType
from rich.padding import Padding

from discreet.cli.output import Json, emit
from discreet.cli.text_table import text_table
from discreet.errors import InvalidInput

EPILOG = """\b
Examples:
  discreet algorithms
  discreet algorithms pfl
  discreet algorithms --json
"""

Name: TypeAlias = Annotated[str | None, typer.Argument(metavar="[NAME]", hidden=True)]


def algorithms(name: Name = None, as_json: Json = False) -> None:
    """List the built-in algorithms, or describe the one called NAME.

    The list shows the paper of each algorithm, whom it protects from whom, and its parameters. With NAME, the command
    shows its formula, the type and default of each parameter, and an [algorithm] table to start from.
    """
    from discreet.algorithms.recipes.registry import RECIPES

    if name is not None and name not in RECIPES:
        raise InvalidInput(f"There is no algorithm {name!r}.", fix=f"Choose one of: {', '.join(RECIPES)}.")
    if name is not None:
        recipe = recipe_data(name)
        emit(lambda: recipe, lambda: _recipe_page(recipe), as_json=as_json)
        return
    recipes = [recipe_data(known) for known in RECIPES]
    emit(lambda: {"names": list(RECIPES), "algorithms": recipes}, lambda: _list_page(recipes), as_json=as_json)


def recipe_data(name: str) -> dict[str, Any]:
    """Return what a recipe says about itself, as plain data for JSON."""
    from discreet.algorithms.recipes.registry import RECIPES
    from discreet.experiment.configuration import toml_document
    from discreet.privacy.wording import unit_name

    recipe = RECIPES[name]
    return {
        "name": name,
        "paper": recipe.paper or None,
        "summary": recipe.summary,
        "description": recipe.description,
        "protects": [{"unit": unit_name(claim.unit), "against": claim.view} for claim in recipe.protects],
        "parameters": [
            {"name": knob.name, "type": knob.kind, "required": knob.required, "default": knob.default}
            for knob in recipe.arguments
        ],
        "example": toml_document.format_toml({"algorithm": {"recipe": name, **recipe.example}}),
    }


def _list_page(recipes: list[dict[str, Any]]) -> Iterator[RenderableType]:
    for recipe in recipes:
        parameters = recipe["parameters"]
        optional = (
            knob["name"] if knob["default"] is None else f"{knob['name']} = {_format_default(knob['default'])}"
            for knob in parameters
            if not knob["required"]
        )
        yield _title(recipe)
        table = text_table("", "", gap=2)
        table.add_row("summary", recipe["summary"])
        table.add_row("protects", _describe_protection(recipe))
        table.add_row("required", ", ".join(knob["name"] for knob in parameters if knob["required"]))
        table.add_row("optional", ", ".join(optional))
        yield Padding(table, (0, 0, 0, 2))
        yield ""
    yield "To see one in full, with an [algorithm] table to start from: discreet algorithms NAME"


def _recipe_page(recipe: dict[str, Any]) -> Iterator[RenderableType]:
    yield _title(recipe)
    yield ""
    yield from _paragraphs(recipe["description"])
    yield f"Protects {_describe_protection(recipe)}."
    yield ""
    table = text_table("parameter", "default", "type", gap=2)
    for knob in recipe["parameters"]:
        table.add_row(knob["name"], "required" if knob["required"] else _format_default(knob["default"]), knob["type"])
    yield Padding(table, (0, 0, 0, 2))
    yield ""
    yield from recipe["example"].rstrip().split("\n")
    if recipe["protects"]:
        yield ""
        yield "If noise_multiplier is left out, the noise is computed from the promise in [privacy]."


def _paragraphs(text: str) -> Iterator[str]:
    """Join the lines of each paragraph; a line that ends in a full stop or a colon is not joined with the next."""
    for paragraph in text.split("\n\n"):
        yield from re.sub(r"(?<![.:\n])\n", " ", paragraph).split("\n")
        yield ""


def _title(recipe: dict[str, Any]) -> str:
    source = "this package" if recipe["protects"] else "baseline"
    return f"{recipe['name']} · {recipe['paper'] or source}"


def _describe_protection(recipe: dict[str, Any]) -> str:
    protected = [f"one {claim['unit']} against the {claim['against']}" for claim in recipe["protects"]]
    return " and ".join(dict.fromkeys(protected)) or "nobody"


def _format_default(default: Any) -> str:
    """Write a default as an experiment file would; of a part, only its kind."""
    match default:
        case None:
            return "–"
        case Mapping():
            return str(default["kind"])
        case bool():
            return str(default).lower()
        case float():
            return f"{default:g}"
        case str():
            return f'"{default}"'
        case _:
            return str(default)
