"""Every word of a page can be read: nothing is cut off, no letter is small, and all text stands out from its ground."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet.planning.planner.planner_server import PlannerServer
from discreet.report import brief_page, comparison_page, run_page
from tests.browser.test_pages import SMALLEST
from tests.report.conftest import certified_guarantee, open_run, run  # noqa: F401 - fixtures
from tests.report.test_comparison_page import COMMAND, result, row

pytestmark = pytest.mark.browser
CONTRAST, LARGE_CONTRAST = 4.5, 3  # WCAG 2.2, 1.4.3: of text, and of text of at least 24 pixels, or 18.66 in bold

# Returns size, colour, ground and place of every piece of visible text outside charts.
MEASURE = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const channels = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const ground = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = channels(getComputedStyle(each).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return channels("Canvas");
  };
  const frame = (element) => {
    for (let each = element; each && each !== document.body; each = each.parentElement)
      if (getComputedStyle(each).overflowX !== "visible") return each;
    return null;
  };
  while (walker.nextNode()) {
    const text = walker.currentNode, element = text.parentElement;
    if (!text.textContent.trim() || element.closest("svg, style, script, title, option")) continue;
    const range = document.createRange(); range.selectNodeContents(text);
    const box = range.getBoundingClientRect(), style = getComputedStyle(element), clip = frame(element);
    if (!box.width || !box.height || !element.checkVisibility({visibilityProperty: true})) continue;
    const edge = clip ? clip.getBoundingClientRect() : {left: 0, right: innerWidth};
    const canScroll = clip && ["auto", "scroll"].includes(getComputedStyle(clip).overflowX);
    found.push({
      words: text.textContent.trim().slice(0, 60), size: parseFloat(style.fontSize),
      isBold: parseInt(style.fontWeight) >= 600, colour: channels(style.color), ground: ground(element),
      outside: Math.max(edge.left - box.left, box.right - edge.right), canScroll: Boolean(canScroll),
    });
  }
  return found;
}"""


@pytest.fixture(params=["report", "report without privacy", "brief", "brief without privacy", "comparison", "planner"])
def address(request: Any, tmp_path: Path, planner: PlannerServer) -> str:
    """The address of one of our pages."""
    name = request.param
    if name == "planner":
        return planner.url
    if name == "comparison":
        names = ("digits", "a_name_that_is_longer_than_most_of_them_are")
        rows = [row(result(0.8 + place / 50), result(0.84), name=each) for place, each in enumerate(names)]
        path = tmp_path / "page.html"
        path.write_text(comparison_page.render_page(rows, COMMAND), encoding="utf-8")
        return path.as_uri()
    folder = request.getfixturevalue("open_run" if "without" in name else "run")
    return (brief_page if "brief" in name else run_page).write(folder).as_uri()


@pytest.fixture(params=[(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")], ids=str)
def page(request: Any, browser: Any, address: str) -> Iterator[Any]:
    width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    opened = context.new_page()
    opened.goto(address)
    opened.wait_for_load_state("networkidle")
    yield opened
    context.close()


def test_every_word_is_large_enough_uncut_and_stands_out(page: Any):
    width = page.viewport_size["width"]
    assert page.evaluate("document.scrollingElement.scrollWidth") <= width
    texts = page.evaluate(MEASURE)
    assert len(texts) > 20
    assert [text["words"] for text in texts if text["size"] < SMALLEST] == []
    # a wide table may scroll on a phone, and nothing else may
    assert [text["words"] for text in texts if text["outside"] > 1 and (width > 400 or not text["canScroll"])] == []
    assert [(text["words"], round(contrast(text), 2)) for text in texts if contrast(text) < least_contrast(text)] == []


def contrast(text: dict[str, Any]) -> float:
    dark, light = sorted(luminance(text[name][:3]) for name in ("colour", "ground"))
    return (light + 0.05) / (dark + 0.05)


def least_contrast(text: dict[str, Any]) -> float:
    return LARGE_CONTRAST if text["size"] >= (18.66 if text["isBold"] else 24) else CONTRAST


def luminance(channels: list[int]) -> float:
    """Return the relative luminance of red, green and blue, as WCAG defines it."""
    parts = (channel / 255 for channel in channels)
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
