"""The option --trust, and the question in a terminal whether an experiment's own code may run."""

import sys
from pathlib import Path
from shlex import quote
from typing import Annotated, TypeAlias

import typer

from discreet.cli.output import stderr_console
from discreet.trust import OwnCode, Trust
from discreet.trust_store import trust_remembered

TrustOption: TypeAlias = Annotated[
    bool,
    typer.Option("--trust", help="Run the Python code that the experiment names, in this command only."),
]


def choose_trust(trusted: bool, named: Path | None) -> Trust:
    """Return which of an experiment's own code may run in this command.

    Args:
        trusted: Whether --trust was given. Without it, code that `discreet trust` has remembered may run, and in a
            terminal the user is asked about any other.
        named: The experiment, for the sentence that says how to trust it.
    """
    if trusted:
        return Trust.all_code()
    remembers = "" if named is None else f", or remember it with: discreet trust {quote(str(named))}"
    remedy = f"Read it; then add --trust to run it this once{remembers}"
    return trust_remembered(remedy, _ask if is_interactive() else None)


def is_interactive() -> bool:
    """Whether somebody can be asked: both stdin and stderr are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _ask(code: OwnCode) -> bool:
    """Ask the user on stderr whether this code may run."""
    console = stderr_console()
    console.print(f"The experiment would run {code.describe()}.", soft_wrap=True)
    return typer.confirm("Run it?", default=False, err=True)
