"""How people write on a command line what our records hold: numbers, relations, units and views."""

from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import click
import typer

from discreet.errors import InvalidInput
from discreet.part import Count, Positive, Probability, Rate, from_plain
from discreet.privacy.release import Person, Relation, Unit, View

T = TypeVar("T")

RelationWord: TypeAlias = Literal["add-or-remove", "zero-out", "replace"]

UnitOption: TypeAlias = Annotated[
    str,
    typer.Option(metavar="WHO", show_default=False, help="example (default), client or person:COLUMN:ROWS."),
]
ViewOption: TypeAlias = Annotated[
    View, typer.Option(metavar="WHO", show_default=False, help="Who looks: server (default), client or public.")
]
DataDir: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where data sets lie; default: $DISCREET_DATA, else your cache."),
]

AcceptDataRanges: TypeAlias = Annotated[
    bool, typer.Option("--accept-data-ranges", help="Train on ranges taken from the data; no guarantee covers them.")
]


class Number(click.ParamType):  # type: ignore[type-arg]  # it takes one only from click 8.5 on
    """A number that is checked where it is typed, by the same strict types that the records are made of."""

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
        return int(number) if number.is_integer() else number  # 1e6 steps are whole


POSITIVE, RATE, PROBABILITY = Number("positive", Positive), Number("rate", Rate), Number("probability", Probability)
COUNT = Number("count", Count)


def needed(flag: str, value: T | None) -> T:
    """An option that can't be left out. typer's own way to say so garbles the help page."""
    if value is None:
        raise InvalidInput(f"{flag} is missing.")
    return value


def parse_relation(word: RelationWord) -> Relation:
    relations: dict[RelationWord, Relation] = {
        "add-or-remove": "add_or_remove",
        "zero-out": "zero_out",
        "replace": "replace",
    }
    return relations[word]


def parse_unit(text: str) -> Unit:
    """`example`, `client`, or a person by the column that names them and the most rows they may have."""
    match text.split(":"):
        case ["example"]:
            return "example"
        case ["client"]:
            return "client"
        case ["person", column, rows] if column and rows.isascii() and rows.isdigit():
            return Person(column=column, max_examples=int(rows))
    raise InvalidInput(f"--unit must be example, client or person:COLUMN:ROWS, and got {text!r}.")
