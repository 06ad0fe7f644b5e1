"""Every page is readable in a real browser without scripts: on a screen and on a phone, by day and by night."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet.planning.planner.planner_server import PlannerServer
from discreet.report import comparison_page, picture_page, run_page
from discreet.report.comparison_rows import Row
from tests.browser.test_planner import expect
from tests.report import test_picture_files
from tests.report.conftest import certified_guarantee, run  # noqa: F401 - fixtures
from tests.report.test_comparison_page import COMMAND, OPEN, result, row

pytestmark = pytest.mark.browser
SMALLEST = 11  # pixels of a letter

# Returns, for every text of every chart, its size in pixels and by how much it leaves the drawing.
MEASURE_TEXTS = """() => [...document.querySelectorAll("svg text")].map((text) => {
  const chart = text.ownerSVGElement.getBoundingClientRect(), box = text.getBoundingClientRect();
  const scale = chart.width / text.ownerSVGElement.viewBox.baseVal.width;
  const across = Math.max(chart.left - box.left, box.right - chart.right);
  const outside = Math.max(across, chart.top - box.top, box.bottom - chart.bottom);
  return {words: text.textContent, size: scale * parseFloat(getComputedStyle(text).fontSize), outside};
})"""
# Returns pairs of texts of one chart that cover each other.
FIND_OVERLAPS = """() => [...document.querySelectorAll("svg")].flatMap((chart) => {
  const texts = [...chart.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
  return texts.flatMap(([name, box], place) => texts.slice(place + 1)
    .filter(([, other]) => Math.min(box.right, other.right) - Math.max(box.left, other.left) > 1
      && Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top) > 4)
    .map(([other]) => [name, other]));
})"""


@pytest.fixture(params=["report", "comparison", "sweep", "promises", "trade-off", "planner"])
def address(request: Any, run: Path, planner: PlannerServer, tmp_path: Path) -> str:  # noqa: F811
    """The address of one of our pages."""
    if request.param == "planner":
        return planner.url
    if request.param == "report":
        return run_page.write(run).as_uri()
    if request.param == "trade-off":
        page = picture_page.render_page(test_picture_files.PICTURE)
    else:
        names: tuple[str, ...] = ("digits", "a_name_that_is_longer_than_most_of_them_are")
        swept: dict[str, Any] = {"epochs": "2"} if request.param == "sweep" else {}
        rows = [row(result(0.8 + place / 50), result(0.84), name=name, **swept) for place, name in enumerate(names)]
        if request.param == "promises":
            rows = ten_methods()
        page = comparison_page.render_page(rows, COMMAND)
    path = tmp_path / "page.html"
    path.write_text(page, encoding="utf-8")
    return path.as_uri()


def ten_methods() -> list[Row]:
    """Return ten rows of three kinds of promise, with a setting that was chosen on validation data."""
    client = {"unit": "client", "against": "public", "epsilon": 8.0, "delta": 1e-2}
    promises: list[dict[str, Any]] = [{}, client, OPEN]
    chosen = {"algorithm.learning_rate": ["0.5", "2"]}
    return [
        Row(
            f"method_number_{place}",
            {},
            [
                result(0.6 + place / 50 + seed / 90, validation={"accuracy": 0.7}, **promises[place % 3])
                for seed in (0, 1)
            ],
            2,
            chosen,
            tried=3,
        )
        for place in range(10)
    ]


@pytest.fixture(params=[(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")], ids=str)
def page(request: Any, browser: Any, address: str) -> Iterator[Any]:
    """One of our pages, with scripts turned off."""
    width, scheme = request.param
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=False
    )
    opened = context.new_page()
    opened.goto(address)
    yield opened
    context.close()


def test_it_fits_and_can_be_read(page: Any):
    width = page.viewport_size["width"]
    assert page.evaluate("document.scrollingElement.scrollWidth") <= width
    texts = page.evaluate(MEASURE_TEXTS)
    assert texts
    assert [text for text in texts if text["size"] < SMALLEST or text["outside"] > 1] == []
    assert page.evaluate(FIND_OVERLAPS) == []


def test_no_table_of_a_comparison_and_no_command_is_cut_off(page: Any):
    find = """() => [...document.querySelectorAll(".scroll:has(> .stack), pre.wrap")]
      .filter(box => box.scrollWidth > box.clientWidth).map(box => box.getAttribute("aria-label"))"""
    assert page.evaluate(find) == []


def test_every_chart_has_a_name_words_and_its_numbers(page: Any):
    figures = page.locator("figure").all()
    assert figures
    for figure in figures:
        expect(figure.get_by_role("img")).to_be_visible()
        expect(figure.get_by_role("img")).to_have_accessible_name(figure.locator("svg > title").text_content())
        expect(figure.get_by_role("img")).to_have_accessible_description(figure.locator("svg > desc").text_content())
        figure.get_by_text("Numbers", exact=True).click()
        expect(figure.get_by_role("table")).to_be_visible()
        assert figure.locator("caption").text_content()
        assert figure.locator("tbody th[scope=row]").count()


def test_text_and_curves_stand_out_from_the_sheet_by_day_and_by_night(page: Any):
    find = """() => {
      const text = document.querySelector("svg text"), line = document.querySelector("svg path[style*=curve]");
      const ground = getComputedStyle(document.body).backgroundColor;
      return [ground, getComputedStyle(text).fill, getComputedStyle(line).stroke];
    }"""
    ground, *colours = (luminance(colour) for colour in page.evaluate(find))
    is_dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert (ground < 0.05) if is_dark else (ground > 0.9)
    for colour in colours:
        assert (max(ground, colour) + 0.05) / (min(ground, colour) + 0.05) >= 3  # WCAG 2.2, 1.4.11


def luminance(colour: str) -> float:
    """Return the relative luminance of rgb(r, g, b), as WCAG defines it."""
    parts = (int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(","))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_a_printed_report_has_the_experiment_unfolded(browser: Any, run: Path):  # noqa: F811
    opened = browser.new_page(java_script_enabled=False)
    opened.goto(run_page.write(run).as_uri())
    opened.emulate_media(media="print")
    shown = opened.locator("details[data-print] pre").first.bounding_box()
    assert shown is not None
    assert shown["height"] > 40
    opened.close()
