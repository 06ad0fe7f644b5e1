"""Options that several commands share, and how their values are read: numbers, relations, units and views."""

from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import click
import typer

from discreet.errors import InvalidInput
from discreet.part import Count, Positive, Probability, Rate, from_plain
from discreet.privacy.release import Person, Relation, Unit, View

RelationWord: TypeAlias = Literal["add-or-remove", "zero-out", "replace"]

UnitOption: TypeAlias = Annotated[
    str, typer.Option(metavar="UNIT", help="Unit that is protected: example, client or person:COLUMN:ROWS.")
]
ViewOption: TypeAlias = Annotated[
    View, typer.Option(help="Against whom it is protected: the server, another client or the public.")
]
DataDir: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="DIR", show_default="$DISCREET_DATA, or your cache", help="Folder of the data sets."),
]
Device: TypeAlias = Annotated[
    Literal["auto", "cpu", "cuda"] | None,
    typer.Option(show_default="as in FILE, or auto", help="Where to compute; auto takes a GPU if there is one."),
]
OutputDir: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="DIR", show_default="a folder in runs/", help="Folder to write the results to.")
]
Overrides: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Override a field of FILE, such as privacy.epsilon=1."),
]
AcceptDataRanges: TypeAlias = Annotated[
    bool,
    typer.Option("--accept-data-ranges", help="Train on ranges taken from the data; no guarantee covers them."),
]


class Number(click.ParamType):  # type: ignore[type-arg]  # click has a type argument only since 8.5
    """A number on the command line, checked by the same strict types as the fields of the records.

    Args:
        name: The name of the type in click's messages.
        kind: The type to check, such as `discreet.part.Positive`.
    """

    def __init__(self, name: str, kind: Any) -> None:
        self.name = name
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return from_plain(self.kind, _parse_number(value) if isinstance(value, str) else value)
        except ValueError:
            self.fail(f"must be a number, and got {value!r}.", param, ctx)
        except InvalidInput as error:
            self.fail(error.problem, param, ctx)


def _parse_number(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        number = float(text)
        return int(number) if number.is_integer() else number  # 1e6 is a valid number of steps


def number_option(kind: Number, metavar: str, text: str, *, default: str | bool = True) -> Any:
    """Return an option that takes a number, with its help text; `default` replaces the default that the help shows."""
    return typer.Option(click_type=kind, metavar=metavar, help=text, show_default=default)


POSITIVE, RATE, PROBABILITY = Number("positive", Positive), Number("rate", Rate), Number("probability", Probability)
COUNT = Number("count", Count)


def parse_relation(word: RelationWord) -> Relation:
    """Return the neighbouring relation that a word on the command line stands for."""
    relations: dict[RelationWord, Relation] = {
        "add-or-remove": "add_or_remove",
        "zero-out": "zero_out",
        "replace": "replace",
    }
    return relations[word]


def parse_unit(text: str) -> Unit:
    """Read a unit: `example`, `client`, or `person:COLUMN:ROWS`.

    COLUMN identifies the person of a row, and ROWS is the largest number of rows of one person.

    Raises:
        InvalidInput: If the text is none of these.
    """
    match text.split(":"):
        case ["example"]:
            return "example"
        case ["client"]:
            return "client"
        case ["person", column, rows] if column and rows.isascii() and rows.isdigit():
            return Person(column=column, max_examples=int(rows))
    raise InvalidInput(f"--unit must be example, client or person:COLUMN:ROWS, and got {text!r}.")
