"""The one output sink: every answer is printed by `emit`, every error by `print_error`."""

import json
import math
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, TypeAlias

import typer
from rich.console import Console, RenderableType

from discreet.errors import escape_controls

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]

PIPE_WIDTH = 80


def emit(data: Callable[[], Mapping[str, Any]], page: Callable[[], Iterable[RenderableType]], *, as_json: bool) -> None:
    """Print the answer of a command: one JSON object, or a page of text.

    Only the form that is printed is computed. The page is printed piece by piece, as `page` yields it.

    Args:
        data: Returns the JSON object. Infinity is written as the string "inf", because JSON has no infinity:
            float("inf") reads it back, and it can't be mistaken for a missing value, as null could be.
        page: Returns the pieces of the page. A string with line breaks keeps its lines; any other is wrapped.
        as_json: Print the object instead of the page.
    """
    if as_json:
        indent = 2 if sys.stdout.isatty() else None
        _write_stdout(json.dumps(_encode_infinity(data()), allow_nan=False, indent=indent) + "\n")
    else:
        console = _stdout_console()
        for piece in page():
            text = _wrap(escape_controls(piece), console.width) if isinstance(piece, str) else piece
            with console.capture() as captured:
                console.print(text, soft_wrap=isinstance(piece, str))
            _write_stdout("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def _wrap(text: str, width: int) -> str:
    """Wrap a line of text. A card or a help page keeps its lines, and a path stays whole, so that it can be copied.

    The rest of an indented line is indented by two more, so that each entry of a list is seen to begin.
    """
    if "\n" in text:
        return text
    indent = " " * (len(text) - len(text.lstrip(" ")))
    rest = f"{indent}  " if indent else ""
    return textwrap.fill(text, width, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False)


def _write_stdout(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()  # a closed pipe raises here, where it is caught, and not when Python exits


def clear_screen() -> None:
    """Clear the terminal before a page is printed again; in a pipe, separate the pages by an empty line."""
    _write_stdout("\x1b[H\x1b[2J\x1b[3J" if sys.stdout.isatty() else "\n")


def print_error(kind: str, message: str, exit_code: int, *, as_json: bool) -> None:
    """Print an error on stderr: one sentence, or one JSON object that contains it."""
    error = {"error": {"kind": kind, "message": message, "exit_code": exit_code}}
    sys.stderr.write(json.dumps(error) + "\n" if as_json else f"Error: {message}\n")
    sys.stderr.flush()


def _stdout_console() -> Console:
    """In a terminal, use its colours and width; in a pipe, print plain text of a fixed width."""
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(file=sys.stdout, width=width, markup=False, emoji=False, highlight=False)


def stderr_console() -> Console:
    """Return a console for progress and warnings; answers go to stdout by `emit`."""
    return Console(stderr=True, markup=False, emoji=False, highlight=False)


def print_note(line: str) -> None:
    """Print a line on stderr without wrapping it: it may contain a path."""
    stderr_console().print(escape_controls(line), soft_wrap=True)


def _encode_infinity(value: Any) -> Any:
    match value:
        case float() if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        case Mapping():
            return {str(key): _encode_infinity(entry) for key, entry in value.items()}
        case list() | tuple():
            return [_encode_infinity(entry) for entry in value]
        case _:
            return value
