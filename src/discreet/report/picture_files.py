"""A picture becomes a file: PNG, SVG or one HTML page, by the ending of its name."""

import os
from pathlib import Path

from discreet.errors import InvalidInput
from discreet.report.curves import Picture
from discreet.report.matplotlib_figures import render_image
from discreet.report.plotly_page import render_page
from discreet.report.run_page import write_atomically

ENDINGS = (".png", ".svg", ".html")


def save_picture(picture: Picture, path: Path) -> Path:
    """Draw it there, whole or not at all; another file of that name is replaced."""
    match picture_format(path):
        case ".png":
            return write_atomically(path, render_image(picture, "png"))
        case ".svg":
            return write_atomically(path, render_image(picture, "svg"))
        case _:
            return write_atomically(path, render_page(picture))


def check_picture_path(path: Path) -> Path:
    """The same name, refused where nothing could be drawn under it: before anything is computed for it."""
    picture_format(path)
    if not path.parent.is_dir():
        raise InvalidInput(f"{path} can't be written: there is no folder {path.parent}.", fix="Make the folder first.")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidInput(f"{path} can't be written: {'it is a folder' if path.is_dir() else 'its folder is closed'}.")
    return path


def picture_format(path: Path) -> str:
    """The name's ending, refused where it isn't one that can be drawn."""
    found = path.suffix.lower()
    if found not in ENDINGS:
        raise InvalidInput(
            f"A picture's name must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}, and got {path.name!r}."
        )
    return found
