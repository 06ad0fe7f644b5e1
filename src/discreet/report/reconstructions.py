"""Originals beside what an attack rebuilt of them: as rows of a page, and as a picture in a file."""

import base64
import io
import struct
import zlib
from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any, Literal, NamedTuple

from discreet.report import theme
from discreet.report.markup import Html, tag
from discreet.report.matplotlib_figures import DPI
from discreet.report.panel_drawing import default_style, escape_math

ORIGINALS = "originals"
EXACT = 80.0  # decibels, from which on nothing but rounding differs
CELL = 1.15  # width and height of an image in a file, in inches
STRIP = 0.6  # height of a row of numbers
NAMES, LONGEST = 2.1, 22  # width of the names beside them, in inches and in letters


class ImageRow(NamedTuple):
    """One row: its name, a number beneath it, and its images."""

    name: str
    note: str
    images: list[list[int]]


def image_rows(data: Mapping[str, Any]) -> Iterator[ImageRow]:
    """Yield the originals, and what each view of the server gives away."""
    yield ImageRow(ORIGINALS, "", data["originals"])
    for view in data["views"]:
        mean = sum(view["psnr"]) / len(view["psnr"])
        note = f"{'exact: ' if mean > EXACT else ''}PSNR {mean:.0f} dB"
        yield ImageRow(view["name"], note, view["reconstructions"])


def reconstruction_table(data: Mapping[str, Any]) -> Html:
    """Return the images as a table of a page. The words beside them say what they show."""
    size = _image_size(data)
    rows = [
        tag(
            "tr",
            tag("th", row.name, tag("small", row.note) if row.note else None, scope="row"),
            *(
                tag("td", tag("img", src=_image_address(encode_png(pixels, *size)), alt=f"{row.name}, example {place}"))
                for place, pixels in enumerate(row.images, 1)
            ),
        )
        for row in image_rows(data)
    ]
    label = "Originals and reconstructions"
    body = tag(
        "table", tag("caption", label), tag("tbody", *rows), class_="images" if data["shape"] else "images strips"
    )
    return tag("div", body, class_="scroll", tabindex="0", role="region", aria_label=label)


def render_reconstructions(data: Mapping[str, Any], title: str, form: Literal["png", "svg", "pdf"]) -> bytes:
    """Draw the images on white, and return the bytes of the file."""
    file = io.BytesIO()
    undated: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
    with default_style({"svg.hashsalt": "discreet", "pdf.fonttype": 42}):
        _figure(data, title).savefig(file, format=form, dpi=DPI, metadata={"Title": title, **undated})
    return file.getvalue()


def _figure(data: Mapping[str, Any], title: str) -> Any:
    from matplotlib.figure import Figure

    height, width, channels = _image_size(data)
    rows = list(image_rows(data))
    columns, tall = len(data["originals"]), CELL if height > 1 else STRIP
    wide = CELL if height > 1 else 2 * CELL
    figure = Figure(figsize=(NAMES + columns * wide, 0.5 + len(rows) * tall))
    top = 0.5 / (0.5 + len(rows) * tall)
    figure.suptitle(escape_math(title), fontsize=11, y=1 - 0.3 * top)
    left = NAMES / (NAMES + columns * wide)
    for number, row in enumerate(rows):
        bottom = (1 - top) * (1 - (number + 1) / len(rows))
        middle = bottom + (1 - top) / len(rows) / 2
        words = escape_math(f"{_wrap(row.name)}\n{row.note}" if row.note else _wrap(row.name))
        figure.text(left - 0.02, middle, words, ha="right", va="center", fontsize=9, color=theme.INK)
        for place, pixels in enumerate(row.images):
            share = (1 - left) / columns
            box = (left + place * share + 0.005, bottom + 0.008, share - 0.01, (1 - top) / len(rows) - 0.016)
            axis = figure.add_axes(box)
            _draw(axis, pixels, height, width, channels)
    return figure


def _draw(axis: Any, pixels: list[int], height: int, width: int, channels: int) -> None:
    import numpy as np

    image = np.array(pixels, dtype=np.uint8).reshape(height, width, channels)
    grey = {"cmap": "gray" if height > 1 else "coolwarm", "vmin": 0, "vmax": 255}
    aspect = "equal" if height > 1 else "auto"
    axis.imshow(image if channels == 3 else image[..., 0], aspect=aspect, interpolation="nearest", **grey)
    axis.set_axis_off()


def _wrap(name: str) -> str:
    return "\n".join(wrap(name, LONGEST))


def _image_size(data: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return height, width and channels; a row of numbers is an image of one line."""
    if data["shape"] is None:
        return 1, len(data["originals"][0]), 1
    height, width, channels = data["shape"]
    return height, width, channels


def _image_address(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def encode_png(pixels: list[int], height: int, width: int, channels: int) -> bytes:
    """Return a grey or a colour image as the bytes of a PNG file."""
    line = width * channels
    raw = b"".join(b"\0" + bytes(pixels[row * line : (row + 1) * line]) for row in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    written = (
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(written)
