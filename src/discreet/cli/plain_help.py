"""A command whose help page shows the defaults of its options in plain text."""

import click
from typer.core import TyperCommand


class PlainHelpCommand(TyperCommand):
    """Removes the backslash that typer puts before `[default: …]` for rich, which doesn't print our help pages."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        formatter.buffer = [text.replace("\\[", "[") for text in formatter.buffer]
