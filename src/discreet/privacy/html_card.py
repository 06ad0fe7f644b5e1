"""A guarantee card as a piece of HTML for notebooks: styles inside its elements, no scripts, and every text escaped."""

import math
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from discreet.words import fill

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee

# Colours that are readable on a light and on a dark ground: the text keeps the notebook's own.
GOOD, BAD = "#2e9e6b", "#d0602c"
BOX = "border:1px solid rgba(128,128,128,.4);border-left:5px solid {colour};border-radius:6px;padding:10px 16px;"
CELL = "text-align:left;vertical-align:top;padding:2px 14px 2px 0;border:0;background:none;"
NAME = f"{CELL}white-space:nowrap;"


def html_box(colour: str, *contents: str) -> str:
    """Return contents in a frame whose left edge has this colour."""
    style = f"{BOX.format(colour=colour)}max-width:52em;line-height:1.45;"
    return f'<div style="{style}">{"".join(contents)}</div>'


def html_table(rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table without lines, whose first column is set in bold."""
    lines = (
        f'<tr style="background:none"><th scope="row" style="{NAME}">{escape(first)}</th>'
        + "".join(f'<td style="{CELL}">{escape(cell)}</td>' for cell in rest)
        + "</tr>"
        for first, *rest in rows
    )
    return f'<table style="border-collapse:collapse;margin:6px 0;font-size:.95em">{"".join(lines)}</table>'


def html_paragraph(text: str, style: str = "") -> str:
    """Return a paragraph of text."""
    return f'<p style="margin:2px 0;{style}">{escape(text)}</p>'


def html_card(card: "Guarantee", entries: Iterable[tuple[str, str]]) -> str:
    """Return a card with its sentence and these entries; the whole card is folded behind them.

    It looks good only if ε is finite and certified, no seed undoes the noise, and δ is small enough.
    """
    whole = f'<pre style="white-space:pre-wrap;font-size:.85em">{escape(card.as_text())}</pre>'
    title = fill("card.title" if card.is_certified else "card.title_declared")
    is_good = card.is_certified and math.isfinite(card.epsilon) and not (card.is_seeded or card.is_delta_large)
    return html_box(
        GOOD if is_good else BAD,
        html_paragraph(title, "font-weight:600;"),
        html_paragraph(fill("card.seeded"), "font-weight:600;") if card.is_seeded else "",
        html_paragraph(fill("card.large_delta"), "font-weight:600;") if card.is_delta_large else "",
        html_paragraph(card.sentence()),
        html_table(entries),
        f"<details><summary>{escape(fill('card.whole'))}</summary>{whole}</details>",
    )
