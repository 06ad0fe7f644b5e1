"""Rows of a sweep: as a table on a page, and the list of numbers that a person types to get them."""

from collections.abc import Iterable, Sequence
from typing import Any

import click
from rich.padding import Padding
from rich.table import Table

from discreet.cli.options import COUNT, POSITIVE, Number
from discreet.part import Index, Moderate, Multiplier
from discreet.privacy.wording import compact


class Listed(click.ParamType):  # type: ignore[type-arg]  # it takes one only from click 8.5 on
    """Numbers of one kind with commas between them: 10,25,50; each once, in their order."""

    def __init__(self, name: str, each: Number) -> None:
        self.name = name
        self.each = each

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        if not isinstance(value, str):
            return tuple(value)
        return tuple(sorted({self.each.convert(each, param, ctx) for each in value.split(",")}))


COUNTS, POSITIVES = Listed("counts", COUNT), Listed("numbers", POSITIVE)
SCALE, AMOUNT, INDEX = Number("scale", Multiplier), Number("amount", Moderate), Number("number", Index)


def whole(number: float) -> str:
    """All digits of what is short, few of what is long: no column cuts it."""
    return f"{number:,.0f}" if abs(number) < 10**6 else compact(number)


def counted(number: int, noun: str) -> str:
    """1 round, 2 rounds."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Padding:
    """Columns of numbers, set apart from the text around them."""
    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading in headings:
        grid.add_column(heading, justify="right", vertical="bottom")
    for row in rows:
        grid.add_row(*row)
    return Padding(grid, (0, 2))
