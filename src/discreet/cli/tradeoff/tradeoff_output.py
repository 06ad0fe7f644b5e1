"""How a trade-off is shown: the option `--picture FILE`, and the answer as text or JSON."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from discreet.cli.output import emit, print_note, stderr_console

if TYPE_CHECKING:
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
        help="Draw the curves into this file; its ending decides: .png, .svg or .html.",
    ),
]


def show_tradeoff(tradeoff: "Tradeoff", picture: Path | None, *, as_json: bool) -> None:
    """Draw the picture if a file is given, and print the answer."""
    if picture is not None:
        from discreet.report.picture_files import save_picture

        if stderr_console().is_terminal:
            print_note(f"Drawing {picture} …")
        save_picture(tradeoff.picture(), picture)
    emit(tradeoff.data, tradeoff.page, as_json=as_json)
