"""`--picture FILE`: an answer drawn, where that was asked for."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from discreet.cli.output import print_note, stderr_console

if TYPE_CHECKING:
    from discreet.report.curves import Picture


def _checked(path: Path | None) -> Path | None:
    """Refuses a file that can't be drawn or written before anything is computed for it."""
    if path is None:
        return None
    from discreet.report.picture_files import check_picture_path

    return check_picture_path(path)


PictureFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--picture", metavar="FILE", callback=_checked, help="Draw it: PNG, SVG or HTML by its ending."),
]


def drawn(build: "Callable[[], Picture]", file: Path | None) -> Path | None:
    """The picture in this file, and where that lies; nothing where none was asked for."""
    if file is None:
        return None
    from discreet.report.picture_files import save_picture

    if stderr_console().is_terminal:
        print_note(f"Drawing {file} …")
    return save_picture(build(), file)
