"""The options --verbose and --log-file, which every command takes, before and after its name."""

import functools
from collections.abc import Callable
from typing import Any

import click
import typer

from discreet.code_version import read_code_version
from discreet.errors import DiscreetError
from discreet.log_output import environment_settings, write_logs
from discreet.logs import get_log

log = get_log(__name__)

VERBOSE, FILE = "discreet.verbose", "discreet.log_file"  # keys of click's `meta`, which all levels of a command share
LONG_COMMANDS = ("run", "compare", "get", "server", "client", "submit", "simulate")


def add_log_options(command: click.Command, *, is_listed: bool = True) -> click.Command:
    """Let `command` and all its subcommands take the options, and return it.

    The help pages of `command` and of subcommands that take long list them.
    """
    if isinstance(command, click.Group):
        for subcommand in command.commands.values():
            add_log_options(subcommand, is_listed=subcommand.name in LONG_COMMANDS)
    elif command.callback is not None:
        command.callback = _write_logs_of(command.callback)
    command.params += [
        click.Option(
            ["-v", "--verbose"],
            count=True,
            expose_value=False,
            hidden=not is_listed,
            callback=_keep_verbose,
            help="Print what happens on stderr; -vv prints details too.",
        ),
        click.Option(
            ["--log-file"],
            metavar="FILE",
            expose_value=False,
            hidden=not is_listed,
            callback=_keep_file,
            help="Append what happens to FILE as JSON lines; - is stderr.",
        ),
    ]
    return command


def _keep_verbose(context: click.Context, _: click.Parameter, value: int) -> None:
    context.meta[VERBOSE] = context.meta.get(VERBOSE, 0) + value


def _keep_file(context: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.meta[FILE] = value


def _write_logs_of(command: Callable[..., Any]) -> Callable[..., Any]:
    """Write the events of a command while it runs, with its begin and its end. Refuse a log file before it begins."""

    @functools.wraps(command)
    def wrapper(*arguments: Any, **options: Any) -> Any:
        context, (verbose, file) = click.get_current_context(), environment_settings()
        verbose, file = context.meta.get(VERBOSE) or verbose, context.meta.get(FILE) or file
        version = read_code_version().stamp if verbose or file else None  # it may have to ask git
        with write_logs(verbose, file):
            log.info("command started", command=context.command_path, version=version)
            try:
                result = command(*arguments, **options)
            except (typer.Exit, SystemExit) as ended:
                code = ended.exit_code if isinstance(ended, typer.Exit) else ended.code
                log.info("command finished", command=context.command_path, code=code if isinstance(code, int) else 1)
                raise
            except BaseException as error:
                code = error.exit_code if isinstance(error, DiscreetError) else 1
                log.error("command failed", command=context.command_path, error=type(error).__name__, code=code)
                raise
            log.info("command finished", command=context.command_path, code=0)
            return result

    return wrapper
