"""HTML by construction: whatever is not marked as HTML is escaped."""

from collections.abc import Iterable
from html import escape
from typing import TypeAlias


class Html(str):
    """Text that is HTML already."""


Child: TypeAlias = str | None  # an Html, a text that is escaped, or nothing
Attribute: TypeAlias = str | bool | None

VOID = frozenset({"meta", "link", "br", "hr", "input"})


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Html:
    """One element. `class_` is class, `aria_label` is aria-label; True is a bare attribute, None and False are none."""
    given = "".join(_attribute(key, value) for key, value in attributes.items())
    return Html(f"<{name}{given}>" if name in VOID else f"<{name}{given}>{join(children)}</{name}>")


def join(children: Iterable[Child]) -> Html:
    return Html("".join(each if isinstance(each, Html) else escape(each) for each in children if each is not None))


def table(caption: str, headings: Iterable[str], rows: Iterable[Iterable[str]], **attributes: Attribute) -> Html:
    """A table whose first column names the row."""
    head = tag("tr", *(tag("th", heading, scope="col") for heading in headings))
    body = (tag("tr", tag("th", first, scope="row"), *(tag("td", each) for each in rest)) for first, *rest in rows)
    made = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body), **attributes)
    return tag("div", made, class_="scroll", tabindex="0", role="region", aria_label=caption)


def bullet_list(items: Iterable[str]) -> Html:
    return tag("ul", *(tag("li", each) for each in items))


def definition_list(entries: Iterable[tuple[str, Child]], **attributes: Attribute) -> Html:
    """Names and what they stand for."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in entries), **attributes)


def details(summary: str, *children: Child, in_print: bool = False) -> Html:
    """Closed until asked for; on paper it stays closed unless it belongs there."""
    return tag("details", tag("summary", summary), *children, data_print=in_print)


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(value)}"'
