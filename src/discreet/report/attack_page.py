"""An attack on a run as a picture in a file, or as a page of its own."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from discreet.report.attack_charts import TITLES, attack_picture
from discreet.report.attack_contents import attack_contents
from discreet.report.markup import join, tag
from discreet.report.matplotlib_figures import render_image
from discreet.report.picture_files import picture_format
from discreet.report.reconstructions import render_reconstructions
from discreet.report.run_page import html_page, write_atomically


def save_attack_picture(data: Mapping[str, Any], path: Path) -> Path:
    """Write the picture of an attack: PNG, SVG, PDF or HTML, by the ending of its name. A file there is replaced."""
    return write_atomically(path, _FORMATS[picture_format(path)](data))


def render_attack_page(data: Mapping[str, Any]) -> str:
    """Return an attack as one page that loads nothing."""
    title = TITLES[data["attack"]]
    body = join(
        [
            tag("header", tag("p", "Attack", class_="eyebrow"), tag("h1", title)),
            tag("main", tag("section", *attack_contents(data), class_="part")),
            tag("footer", tag("p", "Written by discreet audit. Show it only to those who may see the data.")),
        ]
    )
    return html_page(title, body)


def _draw(data: Mapping[str, Any], form: Any) -> bytes:
    if data["attack"] == "inversion":
        return render_reconstructions(data, TITLES["inversion"], form)
    return render_image(attack_picture(data), form)


_FORMATS: Mapping[str, Callable[[Mapping[str, Any]], str | bytes]] = {
    ".png": lambda data: _draw(data, "png"),
    ".svg": lambda data: _draw(data, "svg"),
    ".pdf": lambda data: _draw(data, "pdf"),
    ".html": render_attack_page,
}
