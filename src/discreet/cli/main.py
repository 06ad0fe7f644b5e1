"""The `discreet` command: all subcommands, and the one place where errors become messages and exit codes."""

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import click
import typer

from discreet.cli import (
    account,
    algorithms,
    audit,
    compare,
    data,
    demo,
    deploy,
    export,
    init,
    ledger,
    plan,
    predict,
    report,
    schema,
    tradeoff,
    trust,
    verify,
)
from discreet.cli import run as run_command
from discreet.cli import tune as tune_command
from discreet.cli.help_page import use_plain_help
from discreet.cli.log_options import add_log_options
from discreet.cli.output import emit, print_error
from discreet.code_version import read_code_version
from discreet.errors import DiscreetError, InvalidInput, shorten_words
from discreet.extras import missing_extra
from discreet.paths import is_storable
from discreet.validation_errors import describe_value
from discreet.words import check_language

EPILOG = """\b
Examples:
  discreet run
  discreet init && discreet plan experiment.toml
  discreet compare experiment.toml --sweep privacy.epsilon=1,2,4
  discreet account gaussian --noise-multiplier 1 --sampling-rate 0.1 \\
      --steps 1000 --delta 1e-5
  discreet account gaussian --epsilon 2 --sampling-rate 0.01 --steps 1000
  discreet ledger verify ledger.jsonl

\b
Exit codes:
  0  done
  2  wrong input: nothing was computed
  3  refused: the privacy budget would be exceeded
  4  alarm: an audit measured more than is certified, or verify refutes a card
  5  verify can't tell
  1  anything else

Errors are printed on stderr as one sentence; with --json, as one object:
{"error": {"kind", "message", "exit_code"}}. JSON output writes infinity as "inf".
"""

app = typer.Typer(
    help="Differentially private federated learning whose epsilon you can believe.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    suggest_commands=False,  # click suggests them already
    rich_markup_mode=None,  # plain text reads well at 80 columns, in a pipe and in a terminal
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
app.add_typer(account.app, name="account")
app.add_typer(tradeoff.app, name="tradeoff")
app.add_typer(ledger.app, name="ledger")
app.add_typer(data.app, name="data")
app.add_typer(deploy.app, name="deploy")
app.command("demo")(demo.demo)
app.command("algorithms", epilog=algorithms.EPILOG)(algorithms.algorithms)
app.command("init", epilog=init.EPILOG)(init.init)
app.command("plan", epilog=plan.EPILOG)(plan.plan)
app.command("run", epilog=run_command.EPILOG)(run_command.run)
app.command("compare", epilog=compare.EPILOG)(compare.compare)
app.command("tune", epilog=tune_command.EPILOG)(tune_command.tune)
app.command("predict", epilog=predict.EPILOG)(predict.predict)
app.command("export", epilog=export.EPILOG)(export.export)
app.command("audit", epilog=audit.EPILOG)(audit.audit)
app.command("report", epilog=report.EPILOG)(report.report)
app.command("schema", epilog=schema.EPILOG)(schema.schema)
app.command("trust", epilog=trust.EPILOG)(trust.trust)
app.command("verify", epilog=verify.EPILOG)(verify.verify)


@app.callback(invoke_without_command=True)
def _discreet(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print version and commit.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --version: print one JSON object.")] = False,
) -> None:
    if version:
        code = read_code_version()
        facts = {"discreet": code.version, "commit": code.commit, "dirty": code.dirty}
        emit(lambda: facts, lambda: [str(code)], as_json=as_json)
        raise typer.Exit
    if as_json:
        raise click.UsageError("--json belongs after the command.", context)
    if context.invoked_subcommand is None:
        raise click.UsageError("Missing command.", context)


def main() -> None:
    """Run the console script `discreet`, and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that can't show ε shows a question mark
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command, and turn every error into a message on stderr and an exit code.

    Args:
        arguments: The command line without the program's name.

    Returns:
        The exit code; `discreet --help` lists the codes.
    """
    as_json = "--json" in arguments
    try:
        _check_text(arguments)
        code = _dispatch(arguments)
    except BrokenPipeError:  # the reader closed the pipe
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - Python flushes stdout when it exits
        return 1
    except Exception as error:  # noqa: BLE001 - no error may pass
        kind, message, code = _explain_error(error)
        print_error(kind, message, code, as_json=as_json)
        if os.environ.get("DISCREET_TRACEBACK"):
            traceback.print_exception(error)
        return code
    if code == INTERRUPTED:
        going_on = HOW_TO_GO_ON.get(next((word for word in arguments if not word.startswith("-")), ""), "")
        said = f"Interrupted before the command had finished. {going_on}".strip()
        print_error("Interrupted", said, 1, as_json=as_json)
        return 1
    return code


def _check_text(arguments: Sequence[str]) -> None:
    """Refuse what no file of a run could name, before anything is computed or written."""
    for argument in arguments:
        if not is_storable(argument):
            raise InvalidInput(
                f"The command line must be text in UTF-8, and got {describe_value(argument)}.", fix="Name it otherwise."
            )


def _dispatch(arguments: Sequence[str]) -> int:
    check_language()
    try:
        command = add_log_options(use_plain_help(typer.main.get_command(app)))
        code = command.main(list(arguments), prog_name="discreet", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as no_arguments:
        help_page = no_arguments.format_message()
        emit(dict, lambda: [help_page], as_json=False)
        return 0
    return code or 0


HOW_TO_GO_ON = {
    "run": "A run that has made its directory goes on: discreet run --resume DIRECTORY",
    "compare": "Finished runs are kept: the same command goes on with the others.",
    "tune": "In the mode compose the same command continues the search, at the trial that was interrupted; in the mode "
    "random nothing leaves, and what was reserved stays spent.",
}
IMPOSSIBLE_PATHS = (errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR)  # wherever they are found, the path was wrong input
INTERRUPTED = 130  # the exit code that typer returns after a keyboard interrupt


def _explain_error(error: Exception) -> tuple[str, str, int]:
    """Return the kind of an error, its message in one line, and its exit code."""
    match error:
        case ModuleNotFoundError() if missing := missing_extra(error):
            return _explain_error(missing)
        case DiscreetError():
            return type(error).__name__, str(error), error.exit_code
        case OSError() if error.filename is not None and error.errno in IMPOSSIBLE_PATHS:
            return _explain_error(
                InvalidInput(f"There can be no file at {error.filename} ({error.strerror}).", fix="Name another path.")
            )
        case OSError() if error.filename is not None:
            problem = shorten_words(f"{error.filename} could not be read or written ({error.strerror}).")
            return type(error).__name__, f"{problem} Check who may use it, and whether its disk has room.", 1
        case click.UsageError() if error.ctx is not None:
            problem = shorten_words(" ".join(error.format_message().split()))
            return "InvalidInput", f"{problem} See: {error.ctx.command_path} --help", InvalidInput.exit_code
        case click.ClickException():
            return "InvalidInput", shorten_words(" ".join(error.format_message().split())), InvalidInput.exit_code
        case _:
            line = shorten_words(" ".join(f"{type(error).__name__}: {error}".split()))
            return type(error).__name__, f"Unexpected {line} (Set DISCREET_TRACEBACK=1 to see where.)", 1
