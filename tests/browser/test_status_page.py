"""The page of `discreet deploy status` is readable in a real browser, whatever clients and runs have to say."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet.deploy.deployment_status import DeploymentStatus, RunStatus
from discreet.deploy.online_clients import ClientStatus
from discreet.deploy.run_refusals import ClientRefusal
from discreet.deploy.status_page import render_status
from discreet.engines.flower.signed_messages import MAX_REFUSAL_CHARACTERS
from tests.browser.conftest import PageLog
from tests.browser.test_pages import SMALLEST
from tests.browser.test_planner import expect
from tests.browser.test_readability import MEASURE, contrast, least_contrast

pytestmark = pytest.mark.browser
LONG_NAME = "the-hospital-with-the-longest-name-by-far"[:40]
NAMES = ("north", "south", "east", LONG_NAME, *(f"clinic-{number}" for number in range(16)))
WIDE_WORD = "m" * MAX_REFUSAL_CHARACTERS  # a client that lies may refuse with one long word
MARKUP = '<img src="https://example.org/seen"><script>console.error("ran")</script>'  # or with this
BUDGET = (
    "This node's own ledger refuses: This release would raise epsilon to 4.104, over max_epsilon=4.0 at delta=1e-05. "
    "Raise max_epsilon, or find more noise with: discreet plan experiment.toml --epsilon 4"
)


def a_run(name: str, state: str, **known: Any) -> RunStatus:
    usual: dict[str, Any] = {"rounds": 12, "planned": 1200, "epsilon": 1.2345, "promised": 4.0, "delta": 1e-5}
    usual |= {"stopped": None, "lost": {}, "refusals": ()}
    return RunStatus(name=name, state=state, **(usual | known))


def a_refusal(who: str, what: str, why: str, did: str = "refused") -> ClientRefusal:
    return ClientRefusal("2026-11-19T02:30:00+00:00", who, what, why, did)


BUSY = DeploymentStatus(
    "federation.example-hospitals.org:9092",
    NAMES,
    [{"client": name, "status": "online"} for name in NAMES[:17]],
    ClientStatus(list(NAMES[:17]), list(NAMES[17:19]), list(NAMES[19:])),
    (
        a_run("pilot", "done", rounds=1200, epsilon=3.99999),
        a_run("baseline", "done", rounds=40, planned=40, epsilon=None, promised=None, delta=None),
        a_run(
            "a_run_whose_name_is_longer_than_most_names_are",
            "stopped",
            stopped="Stopped after 12 of 1,200 rounds. 2 rounds in a row were lost, the last because: too few came.",
            lost={11: "The sum can't come from honest clients.", 12: "too few came."},
        ),
        a_run(
            "second",
            "going on",
            refusals=(
                a_refusal("north, south", "round 3", BUDGET),
                a_refusal(LONG_NAME, "round 4", WIDE_WORD),
                a_refusal("clinic-7", "the sum of moments", MARKUP),
                a_refusal("east", "the rounds from round 5 on", "its key was revoked.", "is left out of"),
            ),
        ),
    ),
    membership=2,
    awaited="Membership 2 is not in force: /srv/federation/hospitals/2026/deployment/app/cards has no valid signature "
    f"of it by north, {LONG_NAME}.",
)
AWAY = DeploymentStatus("127.0.0.1:9092", NAMES[:3], None, None, ())
PLACES = [(1280, "light", "screen"), (1280, "dark", "screen"), (390, "light", "screen"), (390, "dark", "screen")]
PLACES += [(794, "light", "print")]  # A4
PHONE, DESKTOP = 390, 1280

OpenPage = Callable[..., Any]


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[OpenPage]:
    """Open the page of a status. In every test it must log no message and request nothing but itself."""
    opened: list[tuple[Any, PageLog, str]] = []

    def show(status: DeploymentStatus, width: int, scheme: str = "light", media: str = "screen") -> Any:
        path = tmp_path / "status.html"
        path.write_text(render_status(status, "2026-11-19 02:30 UTC"), encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page = context.new_page()
        opened.append((context, PageLog(page), path.as_uri()))
        page.goto(path.as_uri())
        page.emulate_media(media=media)
        return page

    yield show
    for context, heard, address in opened:
        context.close()
        assert heard.complaints == []
        assert [each for each in heard.requests if not each.startswith("data:")] == [address]


@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize("status", [BUSY, AWAY], ids=["busy", "away"])
def test_every_word_is_large_enough_uncut_and_stands_out(
    open_page: OpenPage, status: DeploymentStatus, place: tuple[int, str, str]
) -> None:
    page = open_page(status, *place)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= place[0]
    texts = page.evaluate(MEASURE)
    assert len(texts) > 10
    assert [text["words"] for text in texts if text["size"] < SMALLEST] == []
    assert [text["words"] for text in texts if text["outside"] > 1] == []
    assert [(text["words"], round(contrast(text), 2)) for text in texts if contrast(text) < least_contrast(text)] == []


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_it_says_who_is_online_how_far_runs_are_what_they_spent_and_who_refused_and_why(
    open_page: OpenPage, width: int
) -> None:
    page = open_page(BUSY, width)
    verdict = page.get_by_role("note", name="Status")
    expect(verdict).to_contain_text("17 of 20 clients are online")
    expect(verdict).to_contain_text("Membership 2 is not in force")
    for name, shown in (("clients online", "17of 20"), ("rounds", "12of 1,200, run second"), ("ε spent", "1.235of 4")):
        expect(page.locator(".tiles > div", has=page.get_by_text(name, exact=True))).to_contain_text(shown)
    rows = page.locator("tbody tr")
    for first, others in (
        ("clinic-13", ["away"]),
        ("clinic-15", ["unknown"]),
        ("pilot", ["done", "1,200 rounds", "4 of 4"]),
        ("baseline", ["done", "40 rounds", "none yet"]),
        ("second", ["going on", "12 of 1,200 rounds", "1.235 of 4"]),
    ):
        row = rows.filter(has=page.locator("th", has_text=re.compile(f"^{first}$")))
        expect(row).to_be_visible()
        expect(row.locator("td")).to_have_text(others)
    problems = page.locator("section", has=page.get_by_role("heading", name="Problems of run second")).locator("li")
    expect(problems).to_have_text([str(refusal) for refusal in reversed(BUSY.runs[-1].refusals)])
    for each in problems.all():
        expect(each).to_be_visible()


def test_on_a_phone_each_value_stands_beside_its_name_and_alone_is_bold(open_page: OpenPage) -> None:
    page = open_page(BUSY, PHONE)
    names = """() => [...document.querySelectorAll("td")].map((cell) => {
      const style = getComputedStyle(cell, "::before");
      return [style.content, style.fontWeight, cell.dataset.heading];
    })"""
    shown = page.evaluate(names)
    assert len(shown) == 20 + 3 * 4
    assert [(content.strip('"'), weight) for content, weight, _ in shown] == [(name, "400") for *_, name in shown]
