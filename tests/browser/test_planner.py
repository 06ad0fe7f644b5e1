"""In a real browser the curves follow the sliders, by mouse and by keyboard, in light and in dark mode."""

from dataclasses import replace
from typing import Any

import pytest

from discreet.planning.planner.answer_sections import LABELS as CHARTS
from discreet.planning.planner.planner_page import LABELS
from discreet.planning.planner.planner_server import PlannerServer
from discreet.planning.planner.slider_question import Question
from tests.planning.planner.conftest import answer, built_in_start

pytestmark = pytest.mark.browser
PHONE = {"width": 390, "height": 844}
LONG = 30_000  # milliseconds; an answer usually takes less than one second


@pytest.fixture(scope="module")
def start() -> Question:
    """The position at which the sliders start: the numbers of the built-in experiment."""
    return built_in_start().question


def expect(thing: Any) -> Any:
    from playwright.sync_api import expect

    return expect(thing)


def noise(page: Any) -> Any:
    return page.locator("#tile-noise_multiplier")


def noise_text(question: Question) -> str:
    """Return the noise as the page writes it: four digits."""
    return f"{answer(question)['noise_multiplier']:.4g}"


def svg_of(page: Any, name: str) -> str:
    """Return a chart as the server drew it."""
    return str(page.locator(f"#chart-{name} svg").inner_html())


def test_the_first_answer_is_that_of_the_accountants(page: Any, start: Question):
    expect(noise(page)).to_have_text(noise_text(start))
    expect(page.locator("#sentence")).to_contain_text("Anyone who sees what the server sees")
    for name in CHARTS:
        expect(page.get_by_role("img", name=CHARTS[name][0], exact=True)).to_be_visible()
        expect(page.locator(f"#chart-{name} desc")).to_contain_text("Line chart of ")


def test_a_number_that_is_typed_moves_the_slider_and_the_curves(page: Any, start: Question):
    before, place = svg_of(page, "noise"), page.locator("#epsilon-slider").input_value()
    page.get_by_label("Promised ε", exact=True).fill("0.5")
    expect(noise(page)).to_have_text(noise_text(replace(start, epsilon=0.5)), timeout=LONG)
    assert svg_of(page, "noise") != before
    assert int(page.locator("#epsilon-slider").input_value()) < int(place)


def test_a_slider_moves_by_the_keyboard(page: Any, start: Question):
    slider = page.get_by_role("slider", name="Rounds, slider")
    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    rounds = int(page.locator("#rounds").input_value())
    assert rounds > 100
    assert slider.get_attribute("aria-valuetext") == str(rounds)
    expect(noise(page)).to_have_text(noise_text(replace(start, rounds=rounds)), timeout=LONG)


def test_a_slider_moves_by_the_mouse(page: Any, start: Question):
    box = page.locator("#delta-slider").bounding_box()
    page.mouse.click(box["x"] + 0.2 * box["width"], box["y"] + box["height"] / 2)
    delta = float(page.locator("#delta").input_value())
    assert 1e-9 < delta < 1e-8
    expect(noise(page)).to_have_text(noise_text(replace(start, delta=delta)), timeout=LONG)


@pytest.mark.parametrize("name", LABELS)
def test_every_slider_moves_some_curve(page: Any, name: str):
    before = chart_states(page)
    with page.expect_response("**/answer*", timeout=LONG):
        page.get_by_role("slider", name=f"{LABELS[name]}, slider").press("ArrowRight")
    expect(page.locator(".answer")).not_to_have_attribute("aria-busy", "true", timeout=LONG)
    assert chart_states(page) != before


def chart_states(page: Any) -> list[str]:
    return [svg_of(page, name) for name in CHARTS]


def test_another_mechanism_and_another_view_have_other_answers(page: Any, start: Question):
    page.get_by_label("Mechanism").select_option("gaussian")
    expect(page.locator("#sentence")).to_contain_text("so it is trusted", timeout=LONG)
    expect(noise(page)).to_have_text("–")
    expect(page.locator("figure:visible")).to_have_count(1)  # bytes do not depend on the promise
    expect(page.locator("#mechanism-note")).to_contain_text("whole clients")
    page.get_by_label("Protects against").select_option("public")
    central = replace(start, mechanism="gaussian", view="public")
    expect(noise(page)).to_have_text(noise_text(central), timeout=LONG)
    expect(page.locator("#verdict li")).to_have_count(len(answer(central)["warnings"]))
    expect(page.locator("figure:visible")).to_have_count(len(CHARTS))
    expect(page.locator("#tile-client_expected")).to_have_text("260 kBat most 520 kB")  # 5.2 kB in half of 100 rounds


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


def test_a_number_that_cannot_be_is_refused_and_the_page_goes_on(page: Any, start: Question):
    page.locator("#clients").fill("2.5")
    page.locator("#delta").fill("7")
    expect(page.locator("#sentence")).to_contain_text("delta", timeout=LONG)
    expect(page.locator("figure:visible")).to_have_count(0)
    page.locator("#clients").fill("10")
    page.locator("#delta").fill("0.0001")
    expect(noise(page)).to_have_text(noise_text(start), timeout=LONG)


def test_a_table_that_is_open_stays_open(page: Any, start: Question):
    page.locator("#chart-noise summary").click()
    page.locator("#epsilon").fill("0.5")
    expect(noise(page)).to_have_text(noise_text(replace(start, epsilon=0.5)), timeout=LONG)
    expect(page.locator("#chart-noise table")).to_be_visible()
    expect(page.locator("#chart-bytes table")).to_be_hidden()


def test_the_keyboard_reaches_everything_in_the_order_of_the_page(page: Any):
    page.locator("#mechanism").focus()
    reached = []
    for _ in range(16):
        reached.append(page.locator(":focus").get_attribute("id"))
        page.keyboard.press("Tab")
    pairs = [each for name in LABELS for each in (name, f"{name}-slider")]
    assert reached == ["mechanism", "view", *pairs, "dimension", "examples"]


def test_a_server_that_was_ended_is_said_to_be(browser: Any, planner: PlannerServer):
    context = browser.new_context()
    page = context.new_page()
    page.goto(planner.url)
    page.route("**/answer*", lambda route: route.abort())
    page.locator("#epsilon").fill("1")
    expect(page.locator("#sentence")).to_contain_text("doesn't answer", timeout=LONG)
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_the_result_stands_above_the_fold_and_stays_in_sight(
    browser: Any, planner: PlannerServer, scheme: str
):
    context = browser.new_context(viewport=PHONE, color_scheme=scheme)
    page = context.new_page()
    page.goto(planner.url)
    fold = PHONE["height"]
    for name in ("#bound", "#sentence", "#tile-noise_multiplier", "#tile-noise_to_signal", "#tile-all_total"):
        box = page.locator(name).bounding_box()
        assert box["y"] + box["height"] <= fold
    assert page.locator("#epsilon").bounding_box()["y"] < fold  # the first slider too
    page.evaluate("window.scrollTo(0, document.querySelector('.controls').offsetTop + 150)")
    numbers, slider = (page.locator(name).bounding_box() for name in ("#tiles", "#rounds-slider"))
    assert 0 <= numbers["y"] <= 1
    assert numbers["y"] + numbers["height"] < slider["y"] < fold
    context.close()


def test_a_number_of_examples_is_whole(page: Any):
    page.locator("#examples").fill("143.8")
    assert page.locator("#examples").evaluate("field => field.matches(':invalid')")
    expect(page.locator("#sentence")).to_contain_text("examples", timeout=LONG)
    page.locator("#examples").fill("144")
    expect(noise(page)).to_be_visible(timeout=LONG)


def test_a_slider_that_is_moved_back_shows_the_experiment_again(page: Any, start: Question):
    before = page.locator("#tiles").inner_html()
    page.locator("#rounds").fill("7")
    expect(noise(page)).to_have_text(noise_text(replace(start, rounds=7)), timeout=LONG)
    page.locator("#rounds").fill(str(start.rounds))
    expect(noise(page)).to_have_text(noise_text(start), timeout=LONG)
    assert page.locator("#tiles").inner_html() == before
