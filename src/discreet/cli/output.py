"""The one output sink: an answer is printed here or nowhere."""

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, TypeAlias

import typer
from rich.console import Console, RenderableType

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]

PIPE_WIDTH = 80


def emit(data: Callable[[], Mapping[str, Any]], page: Callable[[], Iterable[RenderableType]], *, as_json: bool) -> None:
    """Print an answer: one JSON object for a program, or the page for a person, piece by piece as it comes.

    An infinite number is the string "inf" in JSON, which has no infinity: float("inf") reads it back, and nobody
    takes it for nothing, as they could a null.
    """
    if as_json:
        indent = 2 if sys.stdout.isatty() else None
        _write_stdout(json.dumps(_encode_infinity(data()), allow_nan=False, indent=indent) + "\n")
    else:
        console = _stdout_console()
        for each in page():
            laid_out = isinstance(each, str) and "\n" in each  # a card or a help page: its lines stay as they are
            with console.capture() as piece:
                console.print(each, soft_wrap=laid_out)
            _write_stdout("".join(f"{line.rstrip()}\n" for line in piece.get().splitlines()))


def _write_stdout(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()  # a closed pipe shows here, inside the error boundary, and not when Python exits


def print_error(kind: str, message: str, exit_code: int, *, as_json: bool) -> None:
    """Say on stderr what went wrong: one sentence, or one JSON object that holds it."""
    error = {"error": {"kind": kind, "message": message, "exit_code": exit_code}}
    sys.stderr.write(json.dumps(error) + "\n" if as_json else f"Error: {message}\n")
    sys.stderr.flush()


def _stdout_console() -> Console:
    """Colour and the window's width in a terminal; plain text of a known width in a pipe."""
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(file=sys.stdout, width=width, markup=False, emoji=False, highlight=False)


def stderr_console() -> Console:
    """Where a person watches; what is printed there is no answer."""
    return Console(stderr=True, markup=False, emoji=False, highlight=False)


def print_note(line: str) -> None:
    """One line for whoever watches, left whole: it may end in a path."""
    stderr_console().print(line, soft_wrap=True)


def _encode_infinity(value: Any) -> Any:
    match value:
        case float() if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        case Mapping():
            return {str(key): _encode_infinity(each) for key, each in value.items()}
        case list() | tuple():
            return [_encode_infinity(each) for each in value]
        case _:
            return value
