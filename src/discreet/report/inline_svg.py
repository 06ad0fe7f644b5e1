"""A panel as SVG inside a page: text stays text, colours follow the page, and hovering over a point says its value."""

import io
import re
from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any, NamedTuple
from xml.etree import ElementTree  # nosec B405 # reads only what matplotlib wrote

from discreet.report import theme
from discreet.report.curves import Panel
from discreet.report.markup import Html, tag
from discreet.report.panel_drawing import Scale, default_style, draw_panel, escape_math

WIDTH, BODY, ROW = 380, 165, 19  # width of the whole, height of the axes and of a row of text; the page scales them
POINTS = 72  # to the inch
SCALE = Scale(text=13, letter=0.024, x_ticks=5, y_ticks=5, names_limits=False)
LETTER = 0.62 * SCALE.text  # width of a letter of matplotlib's own font, which is wider than those of browsers
LONGEST = 42  # letters in a line
SVG, XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"


def render_svg(panel: Panel, key: str, description: str, styles: Mapping[str, theme.Style]) -> Html:
    """Draw a panel without its title, and return an SVG element that fills its place in a page.

    Args:
        panel: What to draw.
        key: A word that no other chart of the page has.
        description: The chart in words, for those who can't see it.
        styles: The styles of the curves.
    """
    file = io.StringIO()
    with default_style({"svg.fonttype": "none", "svg.hashsalt": key}):
        _figure(panel, styles).savefig(file, format="svg", metadata={"Date": None})
    root = ElementTree.fromstring(file.getvalue())  # nosec B314 # written by matplotlib, not by a stranger
    _add_values(root, panel)
    content = "".join(ElementTree.tostring(element, encoding="unicode") for element in _simplify(root))
    words = [tag("title", panel.title, id=f"{key}-title"), tag("desc", description, id=f"{key}-words")]
    named = {"aria_labelledby": f"{key}-title", "aria_describedby": f"{key}-words"}
    return tag("svg", *words, Html(content), viewBox=root.attrib["viewBox"], role="img", **named)


def _figure(panel: Panel, styles: Mapping[str, theme.Style]) -> Any:
    """Lay a panel out by hand: matplotlib's own layouts take several times as long."""
    from matplotlib.figure import Figure

    figure = Figure(facecolor="none")
    axis = figure.add_subplot(facecolor="none")
    draw_panel(panel, axis, styles, SCALE)
    label, legend = wrap(panel.x_label, LONGEST), _legend_rows(panel, axis)
    names = [text.get_text() for text in axis.get_xticklabels()]
    is_turned = any(text.get_rotation() for text in axis.get_xticklabels())
    slant = 0.7 * LETTER * max(map(len, names)) if is_turned else 0.0  # width and height of a name at 45 degrees
    left = max(slant, 10 + LETTER * max((len(text.get_text()) for text in axis.get_yticklabels()), default=0))
    right = 8 + LETTER / 2 * (len(names[-1]) if names and not is_turned else 0)
    top = 10 + ROW * sum(row.height for row in legend)
    bottom = ROW * (1 + len(label)) + slant
    body = max(BODY, 44 * len(panel.x_names)) if panel.as_rows else BODY
    height = top + body + bottom
    figure.set_size_inches(WIDTH / POINTS, height / POINTS)
    axis.set_position((left / WIDTH, bottom / height, (WIDTH - left - right) / WIDTH, body / height))
    axis.set_xlabel("\n".join(map(escape_math, label)), fontsize=SCALE.text, color=theme.SOFT)
    used = 3.0  # so that larger letters of a browser fit above
    for row in legend:
        handles, labels = zip(*row.entries, strict=True)
        place: Any = {"loc": "upper left", "bbox_to_anchor": (0, 1 - used / height), "ncols": len(labels)}
        spacing: Any = {"borderaxespad": 0, "borderpad": 0.1, "columnspacing": 1.2, "handlelength": 2.2}
        figure.legend(handles, labels, **place, **spacing, fontsize=SCALE.text, frameon=False, labelcolor=theme.SOFT)
        used += ROW * row.height
    return figure


class _LegendRow(NamedTuple):
    """Entries of the legend that fit beside each other: handle and name each; and how many lines the names have."""

    entries: list[tuple[Any, str]]
    height: int


def _legend_rows(panel: Panel, axis: Any) -> list[_LegendRow]:
    """Arrange the legend in rows, each name once. A single curve has none: the title names it."""
    handles = {name: handle for handle, name in zip(*axis.get_legend_handles_labels(), strict=True)}
    if len(handles) < 2:
        return []
    rows: list[_LegendRow] = []
    free = 0
    for name, handle in handles.items():
        lines = wrap(name, LONGEST) or [""]
        entry, needed = (handle, "\n".join(lines)), max(map(len, lines)) + 7
        if needed > free or len(lines) > 1:
            rows.append(_LegendRow([], len(lines)))
            free = LONGEST + 7
        rows[-1].entries.append(entry)
        free -= needed
    return rows


def _add_values(root: ElementTree.Element, panel: Panel) -> None:
    """Give every marker of a curve its value as a tooltip, where each point has a marker."""
    for index, curve in enumerate(panel.curves):
        points = theme.visible_points(curve, panel)
        group = root.find(f".//*[@id='curve-{index}']")
        markers = [] if group is None else group.findall(f".//{SVG}use")
        if len(markers) == len(points):
            for marker, (x, y) in zip(markers, points.items(), strict=True):
                words = f"{curve.name}: {panel.format_y(y)} at {panel.format_x(x)}"
                ElementTree.SubElement(marker, f"{SVG}title").text = words


def _simplify(element: ElementTree.Element) -> Iterator[ElementTree.Element]:
    """Yield the children without what a page doesn't need: metadata, empty groups, names, fonts and digits."""
    for child in element:
        name, children = child.tag.removeprefix(SVG), list(_simplify(child))
        if name in ("metadata", "style") or (name == "defs" and not children):
            continue
        attributes = dict(_simplify_attributes(name, child.attrib))
        if name == "g" and not attributes:
            yield from children
            continue
        kept = ElementTree.Element(name, attributes)
        kept.text = (child.text or "").strip()
        kept.extend(children)
        yield kept


def _simplify_attributes(name: str, attributes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key, value in attributes.items():
        if key == "style":
            style = "; ".join(re.findall("text-anchor: \\w+", value)) if name == "text" else value
            if style:
                yield key, re.sub("#[0-9a-f]{6}", lambda colour: theme.VARIABLES.get(colour[0], colour[0]), style)
        elif key == XLINK:
            yield "href", value
        elif key == "id":
            if name != "g":
                yield key, value
        elif not value.startswith("rotate(-0 "):
            yield key, " ".join(re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.1f}", value).split())
