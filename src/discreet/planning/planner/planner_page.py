"""The planner's page: labelled sliders, the answer to their question, and no content from other servers."""

import json
import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from discreet.part import to_plain
from discreet.planning.planner.answer_sections import answer_sections
from discreet.planning.planner.slider_question import LARGEST_DELTA, MECHANISM_NOTES, MECHANISMS, MOST, slider_stops
from discreet.planning.planner.slider_start import StartPosition
from discreet.privacy.wording import compact
from discreet.report.markup import Html, html_document, join, tag

TITLE = "What privacy costs"

LABELS: Mapping[str, str] = {
    "epsilon": "Promised ε",
    "delta": "δ",
    "clients": "Clients",
    "sampling_rate": "Sampling rate",
    "rounds": "Rounds",
    "local_steps": "Local steps",
}
FACTS: Mapping[str, str] = {"dimension": "Parameters", "examples": "Examples per client"}
VIEWS: Mapping[str, str] = {
    "server": "the server",
    "client": "the other clients",
    "public": "the public (released models)",
}


def render_page(start: StartPosition, answer: Mapping[str, Any]) -> str:
    """Return the whole page with the answer to its first question.

    Its script and styles are separate files, so that no inline code may run.
    """
    styles = [tag("link", rel="stylesheet", href=name) for name in ("page.css", "planner.css")]
    body = join(
        [
            tag("header", tag("p", "Planner", class_="eyebrow"), tag("h1", TITLE)),
            tag("main", tag("div", _introduction(start), _controls(start), _answer(start, answer), class_="planner")),
            tag("footer", tag("p", _FOOTER)),
            tag("script", "", src="planner.js", defer=True),
        ]
    )
    return html_document(TITLE, styles, tag("body", body, data_planner=_script_data(start)))


@lru_cache(maxsize=1)
def page_assets() -> Mapping[str, tuple[str, bytes]]:
    """Return the files that the page loads, by name, each with its media type and its bytes."""
    ours, report = files("discreet.planning.planner"), files("discreet.report")
    return {
        "page.css": ("text/css; charset=utf-8", report.joinpath("page.css").read_bytes()),
        "planner.css": ("text/css; charset=utf-8", ours.joinpath("planner.css").read_bytes()),
        "planner.js": ("text/javascript; charset=utf-8", ours.joinpath("planner.js").read_bytes()),
    }


def _introduction(start: StartPosition) -> Html:
    """Say what the page does, and from which experiment it starts. On a phone this stands below the result."""
    what = (
        "Move a slider, and the curves follow. The accountants that certify a run compute them on this machine; "
        "nothing is trained, spent or sent over the network."
    )
    notes = (tag("p", note, class_="note") for note in (what, *start.notes()))
    without = tag("noscript", tag("p", "The sliders need JavaScript; below is the answer to their first position."))
    return tag("div", *notes, without, class_="about")


def _controls(start: StartPosition) -> Html:
    now = to_plain(start.question)
    return tag(
        "form",
        tag("h2", "The plan"),
        _choice("mechanism", "Mechanism", MECHANISMS, now["mechanism"]),
        tag("p", MECHANISM_NOTES[now["mechanism"]], id="mechanism-note", class_="note"),
        _choice("view", "Protects against", VIEWS, now["view"]),
        *(_slider(name, label, now[name]) for name, label in LABELS.items()),
        *(tag("div", *_number(name, label, now[name]), class_="slider") for name, label in FACTS.items()),
        class_="part controls",
        aria_label="The plan",
        autocomplete="off",  # a reloaded page starts with the experiment's numbers again
    )


def _choice(name: str, label: str, options: Mapping[str, str], now: str) -> Html:
    entries = (tag("option", text, value=value, selected=value == now) for value, text in options.items())
    return tag("div", tag("label", label, for_=name), tag("select", *entries, id=name), class_="choice")


def _number(name: str, label: str, now: float) -> Iterator[Html]:
    yield tag("label", label, for_=name)
    most = {"delta": LARGEST_DELTA, **MOST}.get(name)
    least, step = ("1", "1") if name in MOST else ("0", "any")  # clients, rounds and the like are whole numbers
    more = {} if most is None else {"max": str(most)}
    yield tag("input", type="number", id=name, value=_format_value(now), step=step, min=least, required=True, **more)


def _format_value(number: float) -> str:
    """Write a number as the page shows it and sends it back: a whole number with all its digits."""
    return str(number) if isinstance(number, int) else compact(number)


def _slider(name: str, label: str, now: float) -> Html:
    """Build a number field and a slider that set each other; both work from the keyboard."""
    positions = slider_stops(name)
    slider = tag(
        "input",
        type="range",
        id=f"{name}-slider",
        min="0",
        max=str(len(positions) - 1),
        value=str(min(range(len(positions)), key=lambda place: abs(math.log(positions[place] / now)))),
        aria_label=f"{label}, slider",
    )
    return tag("div", *_number(name, label, now), slider, class_="slider")


def _answer(start: StartPosition, answer: Mapping[str, Any]) -> Html:
    sections = answer_sections(start.question, answer)
    return tag(
        "section",
        tag("div", sections["verdict"], id="verdict", role="status", aria_live="polite"),
        tag("div", sections["tiles"], id="tiles"),
        tag("div", sections["charts"], id="charts"),
        class_="answer",
        aria_label="What it costs",
    )


def _script_data(start: StartPosition) -> str:
    """Return what the script needs, as JSON."""
    return json.dumps(
        {
            "question": to_plain(start.question),
            "stops": {name: slider_stops(name) for name in LABELS},
            "mechanism_notes": MECHANISM_NOTES,
        }
    )


_FOOTER = (
    "Noise to signal is that of a round's mean in the best case: every update at the clip norm, all in the same "
    "direction. Real updates are shorter and differ. Bytes leave out what secure aggregation sends besides the sums."
)
