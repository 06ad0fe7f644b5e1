"""Tables as the commands print them: columns without borders."""

from collections.abc import Collection

from rich.table import Table


def text_table(*headings: str, right: Collection[str] = (), gap: int = 3) -> Table:
    """Start a table without borders; the caller adds the rows.

    Args:
        headings: One for each column, from left to right. A table whose headings are all empty has no header.
        right: Headings of the columns that are aligned to the right, as numbers are.
        gap: Spaces between two columns.
    """
    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, show_header=any(headings))
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left", overflow="fold")
    return table
