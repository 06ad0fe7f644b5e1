"""Write a picture to a file: PNG, SVG, PDF or HTML, by the ending of its name."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from discreet.errors import InvalidInput
from discreet.extras import import_library
from discreet.report.curves import Picture
from discreet.report.matplotlib_figures import render_image
from discreet.report.picture_page import render_page
from discreet.report.run_page import write_atomically

FORMATS: Mapping[str, Callable[[Picture], str | bytes]] = {
    ".png": lambda picture: render_image(picture, "png"),
    ".svg": lambda picture: render_image(picture, "svg"),
    ".pdf": lambda picture: render_image(picture, "pdf"),
    ".html": lambda picture: render_page(picture),
}


def save_picture(picture: Picture, path: Path) -> Path:
    """Draw a picture and write it to `path`, completely or not at all. An existing file is replaced."""
    return write_atomically(path, FORMATS[picture_format(path)](picture))


def check_picture_path(path: Path) -> Path:
    """Check that a picture can be written to `path` before anything is computed for it, and return the path.

    Raises:
        InvalidInput: If the format is unknown, or the file can't be written.
        MissingExtra: If matplotlib is not installed. A page needs it less: it has tables without it.
    """
    if picture_format(path) != ".html":
        import_library("matplotlib", f"A picture like {path.name}")
    return check_writable(path)


def check_writable(path: Path) -> Path:
    """Check that a file can be written to `path`, and return the path.

    Raises:
        InvalidInput: If the folder is missing or read-only, or the path is a folder.
    """
    problem = f"{path} can't be written"
    if not path.parent.is_dir():
        raise InvalidInput(f"{problem}: there is no folder {path.parent}.", fix="Create the folder first.")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidInput(f"{problem}: {'it is a folder' if path.is_dir() else 'its folder is read-only'}.")
    return path


def picture_format(path: Path) -> str:
    """Return the ending of the name, in lower case.

    Raises:
        InvalidInput: If no picture can be drawn in that format.
    """
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise InvalidInput(f"The name of a picture must end in {', '.join(FORMATS)}, and got {path.name!r}.")
    return ending
