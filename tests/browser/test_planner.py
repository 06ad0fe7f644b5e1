"""In a real browser the curves follow the sliders, by mouse and by keyboard, in light and in dark mode."""

from dataclasses import replace
from typing import Any

import pytest

from discreet.planning.planner.planner_page import CHARTS, LABELS
from discreet.planning.planner.planner_server import PlannerServer
from discreet.planning.planner.slider_answer import answer_question
from tests.browser.conftest import QUESTION

pytestmark = pytest.mark.browser
LONG = 30_000  # milliseconds; an answer usually takes less than one second


def expect(thing: Any) -> Any:
    from playwright.sync_api import expect

    return expect(thing)


def noise(page: Any) -> Any:
    return page.locator("#tile-noise_multiplier")


def noise_text(question: Any) -> str:
    """Return the noise as the page writes it: four digits."""
    return f"{answer_question(question)['noise_multiplier']:.4g}"


def line_path(page: Any, name: str) -> str:
    """Return the line as the browser drew it."""
    return str(page.locator(f"#chart-{name} path.js-line").first.get_attribute("d"))


def test_the_first_answer_is_that_of_the_accountants(page: Any):
    expect(noise(page)).to_have_text(noise_text(QUESTION))
    expect(page.locator("#sentence")).to_contain_text("Anyone who sees what the server sees")
    for name in CHARTS:
        expect(page.locator(f"#chart-{name} .scatterlayer .trace").first).to_be_visible()
        assert len(line_path(page, name)) > 20
        assert page.locator(f"#chart-{name}").get_attribute("aria-label").startswith("Line chart of ")


def test_a_number_that_is_typed_moves_the_slider_and_the_curves(page: Any):
    before, place = line_path(page, "noise"), page.locator("#epsilon-slider").input_value()
    page.get_by_label("Promised ε", exact=True).fill("0.5")
    expect(noise(page)).to_have_text(noise_text(replace(QUESTION, epsilon=0.5)), timeout=LONG)
    assert line_path(page, "noise") != before
    assert int(page.locator("#epsilon-slider").input_value()) < int(place)


def test_a_slider_moves_by_the_keyboard(page: Any):
    slider = page.get_by_role("slider", name="Rounds, slider")
    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    rounds = int(page.locator("#rounds").input_value())
    assert rounds > 20
    assert slider.get_attribute("aria-valuetext") == str(rounds)
    expect(noise(page)).to_have_text(noise_text(replace(QUESTION, rounds=rounds)), timeout=LONG)


def test_a_slider_moves_by_the_mouse(page: Any):
    box = page.locator("#delta-slider").bounding_box()
    page.mouse.click(box["x"] + 0.2 * box["width"], box["y"] + box["height"] / 2)
    delta = float(page.locator("#delta").input_value())
    assert 1e-9 < delta < 1e-8
    expect(noise(page)).to_have_text(noise_text(replace(QUESTION, delta=delta)), timeout=LONG)


@pytest.mark.parametrize("name", LABELS)
def test_every_slider_moves_some_curve(page: Any, name: str):
    before = chart_states(page)
    with page.expect_response("**/answer*", timeout=LONG):
        page.get_by_role("slider", name=f"{LABELS[name]}, slider").press("ArrowRight")
    expect(page.locator(".answer")).not_to_have_attribute("aria-busy", "true", timeout=LONG)
    assert chart_states(page) != before


def chart_states(page: Any) -> list[tuple[str, str]]:
    return [(line_path(page, name), page.locator(f"#chart-{name}").get_attribute("aria-label")) for name in CHARTS]


def test_another_mechanism_and_another_view_have_other_answers(page: Any):
    page.get_by_label("Mechanism").select_option("gaussian")
    expect(page.locator("#sentence")).to_contain_text("so it is trusted", timeout=LONG)
    expect(noise(page)).to_have_text("–")
    expect(page.locator("figure:visible")).to_have_count(1)  # bytes do not depend on the promise
    expect(page.locator("#mechanism-note")).to_contain_text("whole clients")
    page.get_by_label("Protects against").select_option("public")
    central = replace(QUESTION, mechanism="gaussian", view="public")
    expect(noise(page)).to_have_text(noise_text(central), timeout=LONG)
    expect(page.locator("#warnings li")).to_have_count(len(answer_question(central)["warnings"]))
    expect(page.locator("figure:visible")).to_have_count(len(CHARTS))
    expect(page.locator("#tile-client_expected")).to_have_text("16 kB")  # 8 kB in every tenth of 20 rounds
    expect(page.locator("#client-most")).to_have_text("at most 160 kB")


@pytest.mark.parametrize("name", ["mechanism", "view"])
def test_no_name_is_cut_in_its_box(page: Any, name: str):
    """Compare the width of the box with the width that its longest name needs."""
    widths = """(box) => {
      const free = box.cloneNode(true);
      free.style.width = "max-content";
      box.parentNode.appendChild(free);
      const found = [box.getBoundingClientRect().width, free.getBoundingClientRect().width];
      free.remove();
      return found;
    }"""
    has, wants = page.locator(f"#{name}").evaluate(widths)
    assert wants <= has


def test_a_number_that_cannot_be_is_refused_and_the_page_goes_on(page: Any):
    page.locator("#clients").fill("2.5")
    page.locator("#delta").fill("7")
    expect(page.locator("#sentence")).to_contain_text("delta", timeout=LONG)
    expect(page.locator("figure:visible")).to_have_count(0)
    page.locator("#clients").fill("50")
    page.locator("#delta").fill("1e-5")
    expect(noise(page)).to_have_text(noise_text(QUESTION), timeout=LONG)


def test_the_keyboard_reaches_everything_in_the_order_of_the_page(page: Any):
    page.locator("#mechanism").focus()
    reached = []
    for _ in range(16):
        reached.append(page.locator(":focus").get_attribute("id"))
        page.keyboard.press("Tab")
    pairs = [each for name in LABELS for each in (name, f"{name}-slider")]
    assert reached == ["mechanism", "view", *pairs, "dimension", "examples"]


def test_there_is_a_page_for_the_day_and_one_for_the_night(page: Any):
    def colours() -> tuple[str, str]:
        find = "(name) => getComputedStyle(document.body)[name]"
        return page.evaluate(find, "backgroundColor"), page.evaluate(find, "color")

    day = colours()
    page.emulate_media(color_scheme="dark")
    night = colours()
    assert brightness(day[0]) > 0.9 > 0.2 > brightness(day[1])
    assert brightness(night[0]) < 0.2 < 0.8 < brightness(night[1])


def brightness(colour: str) -> float:
    red, green, blue = (int(each) for each in colour.removeprefix("rgb(").removesuffix(")").split(",")[:3])
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255


def test_a_narrow_window_is_not_wider_than_itself(page: Any):
    page.set_viewport_size({"width": 380, "height": 800})
    assert page.evaluate("() => document.scrollingElement.scrollWidth") <= 380


def test_a_server_that_was_ended_is_said_to_be(browser: Any, planner: PlannerServer):
    context = browser.new_context()
    page = context.new_page()
    page.goto(planner.url)
    expect(noise(page)).not_to_have_text("…", timeout=LONG)
    page.route("**/answer*", lambda route: route.abort())
    page.locator("#epsilon").fill("1")
    expect(page.locator("#sentence")).to_contain_text("doesn't answer", timeout=LONG)
    context.close()
