"""Tables of numbers in text that fit 80 columns, and how whole numbers are written in them."""

from collections.abc import Iterable, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from discreet.privacy.wording import compact

PAGE_WIDTH = 80  # columns of a page that is not shown in a terminal
INDENT = 2


def number_table(
    headings: Sequence[str], rows: Iterable[Iterable[RenderableType]], *, names: int = 0, wrap: bool = True
) -> Padding:
    """Lay out rows of numbers, aligned right.

    Args:
        names: The number of leading columns that hold text, which are aligned left.
        wrap: Whether long headings may wrap. If not, the columns move closer together where numbers are long.
    """
    cells = [tuple(row) for row in rows]
    gap = 2 if wrap or _width([headings, *cells]) + 2 * len(headings) <= PAGE_WIDTH else 1
    grid = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False)
    for place, heading in enumerate(headings):
        justify = "left" if place < names else "right"
        grid.add_column(heading, justify=justify, vertical="bottom", no_wrap=not wrap)  # type: ignore[arg-type]
    for row in cells:
        grid.add_row(*row)
    return Padding(grid, (0, 0, 0, INDENT))


def _width(rows: Sequence[Sequence[RenderableType]]) -> int:
    """Return the characters of all columns together, without the gaps between them."""
    columns = zip(*rows, strict=True)
    return sum(max(len(line) for cell in column for line in str(cell).split("\n")) for column in columns)


def format_whole(number: float, digits: int = 6) -> str:
    """Write a whole number in full below a million, and with `digits` digits above: no column cuts it."""
    return f"{number:,.0f}" if abs(number) < 10**6 else compact(number, digits)
