"""Help pages as plain text, without the marks that typer adds for rich."""

import re
from collections.abc import Iterable

import click
import typer


class PlainFormatter(click.HelpFormatter):
    """Write `[default: a free one]` where typer passes `\\[default: (a free one)]`."""

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        super().write_dl([(name, _remove_marks(text)) for name, text in rows], col_max, col_spacing)


def _remove_marks(text: str) -> str:
    return re.sub(r"\[default: \((.*)\)\]", r"[default: \1]", text.replace("\\[", "["))


class PlainContext(click.Context):
    """A click context whose help pages are written by `PlainFormatter`."""

    formatter_class = PlainFormatter


def command_group(text: str, epilog: str) -> typer.Typer:
    """Return a group of subcommands, with its help text and the examples below it."""
    return typer.Typer(help=text, epilog=epilog, no_args_is_help=True, rich_markup_mode=None)


def use_plain_help(command: click.Command) -> click.Command:
    """Make `command` and all its subcommands write plain help pages and errors, and return it."""
    command.context_class = PlainContext
    for option in command.params:
        if isinstance(option, click.Option) and option.envvar is None:
            option.show_envvar = False  # click 8.2 would name the variable None in its errors
    for subcommand in command.commands.values() if isinstance(command, click.Group) else ():
        use_plain_help(subcommand)
    return command
