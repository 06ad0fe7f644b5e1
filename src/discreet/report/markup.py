"""HTML as values: any text that is not `Html` is escaped."""

from collections.abc import Iterable
from html import escape
from typing import TypeAlias


class Html(str):
    """Text that is HTML already."""


Child: TypeAlias = str | None  # Html, text to escape, or nothing
Attribute: TypeAlias = str | bool | None

VOID = frozenset({"meta", "link", "br", "hr", "img", "input"})


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Html:
    """Return one element.

    Args:
        name: The name of the element.
        children: Its contents; text is escaped, None is skipped.
        attributes: `class_` becomes class, `aria_label` becomes aria-label. True is an attribute without a value; None
            and False leave it out.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    return Html(f"<{name}{written}>" if name in VOID else f"<{name}{written}>{join(children)}</{name}>")


def html_document(title: str, head: Iterable[Html], body: Html) -> str:
    """Return a whole document; `head` is what its head contains besides the title."""
    elements = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("link", rel="icon", href="data:,"),
        tag("title", f"{title} · discreet"),
        *head,
    )
    return "<!DOCTYPE html>\n" + tag("html", elements, body, lang="en") + "\n"


def join(children: Iterable[Child]) -> Html:
    """Join HTML and text; text is escaped, None is skipped."""
    return Html("".join(child if isinstance(child, Html) else escape(child) for child in children if child is not None))


def table(
    caption: str,
    headings: Iterable[str],
    rows: Iterable[Iterable[str]],
    *,
    stacked: bool = False,
    **attributes: Attribute,
) -> Html:
    """Return a table that scrolls if it is wide; the first column holds the headings of the rows.

    With `stacked`, each row of a narrow page is a list of its headings and cells, so that nothing is cut off.
    """
    names = list(headings)
    head = tag("tr", *(tag("th", heading, scope="col") for heading in names))
    beside = names[1:] if stacked else [None] * (len(names) - 1)
    body = (
        tag(
            "tr",
            tag("th", first, scope="row"),
            *(tag("td", cell, data_heading=name) for name, cell in zip(beside, rest, strict=True)),
        )
        for first, *rest in rows
    )
    element = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body), **attributes)
    return tag("div", element, class_="scroll", tabindex="0", role="region", aria_label=caption)


def bullet_list(items: Iterable[str]) -> Html:
    return tag("ul", *(tag("li", item) for item in items))


def definition_list(entries: Iterable[tuple[str, Child]], **attributes: Attribute) -> Html:
    """Return names, each with its value."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in entries), **attributes)


def details(summary: str, *children: Child, in_print: bool = False) -> Html:
    """Return contents that are folded until the reader opens them; `in_print` unfolds them on paper."""
    return tag("details", tag("summary", summary), *children, data_print=in_print)


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(value)}"'
