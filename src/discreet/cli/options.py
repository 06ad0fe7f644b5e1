"""Options that several commands share, and how their values are read: numbers, relations, units and views."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import click
import typer

from discreet.errors import InvalidInput
from discreet.part import Category, Count, Positive, Probability, Rate, from_plain
from discreet.privacy import release
from discreet.privacy.release import Person, Relation, Unit, View

RelationWord: TypeAlias = Literal["add-or-remove", "zero-out", "replace"]

ViewWord: TypeAlias = Literal["server", "client", "clients", "public"]

UnitOption: TypeAlias = Annotated[
    str, typer.Option(metavar="UNIT", help="Unit that is protected: example, client or person:COLUMN:ROWS[:CLIENTS].")
]
ViewOption: TypeAlias = Annotated[
    ViewWord, typer.Option(help="Against whom it is protected: the server, another client (or clients) or the public.")
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


def number_option(  # click.ParamType has a type argument only since 8.5
    kind: click.ParamType,  # type: ignore[type-arg]
    metavar: str,
    text: str,
    *names: str,
    default: str | bool = True,
    **settings: Any,
) -> Any:
    """Return an option that takes a number.

    Args:
        kind: The type that checks the number.
        metavar: What stands for the number in the help.
        text: The help text.
        names: The names of the option, such as "--clip". None: the name of the parameter.
        default: A text to show in the help instead of the default.
        settings: More arguments of typer's Option.
    """
    return typer.Option(*names, click_type=kind, metavar=metavar, help=text, show_default=default, **settings)


def parse_view(word: ViewWord) -> View:
    """Return the view that a word names; clients are a client."""
    view: View = release.parse_view(word)
    return view


def expand_records(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take the fields of a record as options.

    Every parameter of `command` whose type is a dataclass is replaced by the fields of that dataclass, each declared
    as an option. The returned function takes all options as keywords.
    """
    signature = inspect.signature(command, eval_str=True)
    types = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    records: dict[str, Any] = {name: kind for name, kind in types.items() if is_dataclass(kind)}
    fields = {name: inspect.signature(record, eval_str=True).parameters for name, record in records.items()}

    @functools.wraps(command)
    def wrapper(**options: Any) -> None:
        for name, record in records.items():
            options[name] = record(**{field: options.pop(field) for field in fields[name]})
        command(**options)

    parameters = [
        option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in signature.parameters.items()
        for option in fields.get(name, {name: parameter}).values()
    ]
    # typer reads these two attributes
    wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapper


POSITIVE, RATE, PROBABILITY = Number("positive", Positive), Number("rate", Rate), Number("probability", Probability)
COUNT, CATEGORY = Number("count", Count), Number("category", Category)


def parse_relation(word: RelationWord) -> Relation:
    """Return the neighbouring relation that a word on the command line stands for."""
    relations: dict[RelationWord, Relation] = {
        "add-or-remove": "add_or_remove",
        "zero-out": "zero_out",
        "replace": "replace",
    }
    return relations[word]


def parse_unit(text: str) -> Unit:
    """Read a unit: `example`, `client`, `person:COLUMN:ROWS` or `person:COLUMN:ROWS:CLIENTS`.

    COLUMN identifies the person of a row, ROWS is the largest number of rows of one person in one client, and CLIENTS
    the largest number of clients that hold rows of one person: 1 if it is left out.

    Raises:
        InvalidInput: If the text is none of these.
    """
    match text.split(":"):
        case ["example"]:
            return "example"
        case ["client"]:
            return "client"
        case ["person", column, *numbers] if column and 1 <= len(numbers) <= 2 and all(map(_is_number, numbers)):
            rows, clients = int(numbers[0]), int(numbers[-1]) if numbers[1:] else 1
            for name, number in (("ROWS", rows), ("CLIENTS", clients)):
                if number < 1:
                    raise InvalidInput(
                        f"{name} in --unit person:COLUMN:ROWS[:CLIENTS] must be at least 1, and got {number}."
                    )
            return Person(column=column, at_most=rows, clients_at_most=clients)
    raise InvalidInput(f"--unit must be example, client or person:COLUMN:ROWS[:CLIENTS], and got {text!r}.")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
