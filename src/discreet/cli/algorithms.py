"""`discreet algorithms`: the catalog, from what its recipes say of themselves."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeAlias

import typer
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from discreet.cli.output import Json, emit
from discreet.errors import InvalidInput

EPILOG = """\b
Examples:
  discreet algorithms
  discreet algorithms pfl
  discreet algorithms --json
"""

Name: TypeAlias = Annotated[str | None, typer.Argument(metavar="[NAME]", hidden=True)]


def algorithms(name: Name = None, as_json: Json = False) -> None:
    """The algorithms that a file can name, or NAME in full.

    Each with its paper, whom it protects and from whom, and its knobs. NAME shows its formula, all its parameters and
    an [algorithm] table to start from.
    """
    from discreet.algorithms.recipes.registry import RECIPES

    if name is not None and name not in RECIPES:
        raise InvalidInput(f"There is no algorithm {name!r}.", fix=f"There are: {', '.join(RECIPES)}.")
    if name is not None:
        one = recipe_data(name)
        emit(lambda: one, lambda: _recipe_page(one), as_json=as_json)
        return
    found = [recipe_data(each) for each in RECIPES]
    emit(lambda: {"names": list(RECIPES), "algorithms": found}, lambda: _list_page(found), as_json=as_json)


def recipe_data(name: str) -> dict[str, Any]:
    """All that the recipe says of itself, as plain data."""
    from discreet.algorithms.recipes.registry import RECIPES
    from discreet.experiment.configuration import toml_document
    from discreet.privacy.wording import unit_name

    recipe = RECIPES[name]
    return {
        "name": name,
        "paper": recipe.paper or None,
        "summary": recipe.summary,
        "description": recipe.description,
        "protects": [{"unit": unit_name(each.unit), "against": each.view} for each in recipe.protects],
        "parameters": [
            {"name": knob.name, "type": knob.kind, "required": knob.required, "default": knob.default}
            for knob in recipe.arguments
        ],
        "example": toml_document.format_toml({"algorithm": {"recipe": name, **recipe.example}}),
    }


def _list_page(found: list[dict[str, Any]]) -> Iterator[RenderableType]:
    for each in found:
        optional = [knob for knob in each["parameters"] if not knob["required"]]
        yield _title(each)
        grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
        grid.add_row("what", each["summary"])
        grid.add_row("protects", _describe_protection(each))
        grid.add_row("needs", ", ".join(knob["name"] for knob in each["parameters"] if knob["required"]))
        grid.add_row("takes", ", ".join(knob["name"] + _format_assignment(knob["default"]) for knob in optional))
        yield Padding(grid, (0, 0, 0, 2))
        yield ""
    yield "One in full, with an [algorithm] table to start from: discreet algorithms NAME"


def _recipe_page(one: dict[str, Any]) -> Iterator[RenderableType]:
    yield _title(one)
    yield ""
    yield from _paragraphs(one["description"])
    yield f"Protects {_describe_protection(one)}."
    yield ""
    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading in ("parameter", "default", "type"):
        grid.add_column(heading, no_wrap=heading != "type")
    for knob in one["parameters"]:
        grid.add_row(knob["name"], "needed" if knob["required"] else _format_default(knob["default"]), knob["type"])
    yield Padding(grid, (0, 0, 0, 2))
    yield ""
    yield from one["example"].rstrip().split("\n")
    if one["protects"]:
        yield ""
        yield "Without noise_multiplier, the noise is computed from the promise in [privacy]."


def _paragraphs(text: str) -> Iterator[str]:
    """As it was written, with lines of any length: one that ends no sentence goes on in the next."""
    for paragraph in text.split("\n\n"):
        yield from re.sub(r"(?<![.:\n])\n", " ", paragraph).split("\n")
        yield ""


def _title(one: dict[str, Any]) -> str:
    return f"{one['name']} · " + (one["paper"] or "baseline")


def _describe_protection(one: dict[str, Any]) -> str:
    said = [f"one {each['unit']} against the {each['against']}" for each in one["protects"]]
    return " and ".join(dict.fromkeys(said)) or "nobody"


def _format_assignment(default: Any) -> str:
    return "" if default is None else f" = {_format_default(default)}"


def _format_default(default: Any) -> str:
    """As a file would write it; of a part, its kind."""
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
