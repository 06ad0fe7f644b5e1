"""A trade-off as a command: its options, `--picture FILE`, and the answer as text or JSON."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Protocol, TypeAlias

import typer

from discreet.cli.options import expand_records
from discreet.cli.output import Json, emit, print_note, stderr_console
from discreet.planning.curves.tradeoff import Tradeoff


def _check_path(path: Path | None) -> Path | None:
    """Refuse a file that can't be drawn or written before anything is computed."""
    if path is None:
        return None
    from discreet.report.picture_files import check_picture_path

    return check_picture_path(path)


PictureFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--picture",
        metavar="FILE",
        callback=_check_path,
        help="Draw the curves into this file; its ending decides: .png, .svg, .pdf or .html. An existing file is "
        "replaced.",
    ),
]


class TradeoffOptions(Protocol):
    """The options of one command: a dataclass whose fields are the options and whose docstring is the help."""

    def compute(self) -> Tradeoff:
        """Compute the answer."""


def tradeoff_command(options: type[TradeoffOptions]) -> Callable[..., None]:
    """Return the command that computes and shows a trade-off with these options."""

    def command(*, question: TradeoffOptions, picture: PictureFile = None, as_json: Json = False) -> None:
        show_tradeoff(question.compute(), picture, as_json=as_json)

    command.__annotations__["question"] = options
    command.__doc__ = options.__doc__
    return expand_records(command)


def show_tradeoff(tradeoff: Tradeoff, picture: Path | None, *, as_json: bool) -> None:
    """Draw the picture if a file is given, and print the answer."""
    if picture is not None:
        from discreet.report.picture_files import save_picture

        if stderr_console().is_terminal:
            print_note(f"Drawing {picture} …")
        save_picture(tradeoff.picture(), picture)
    emit(tradeoff.data, lambda: list(tradeoff.page()), as_json=as_json)  # an error prints no part of the page
