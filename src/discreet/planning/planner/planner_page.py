"""The planner's page: labelled sliders, four charts, and no content from other servers."""

import json
import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files

from discreet.part import to_plain
from discreet.planning.planner.slider_question import LARGEST_DELTA, MECHANISM_NOTES, MECHANISMS, MOST, slider_stops
from discreet.planning.planner.slider_start import StartPosition
from discreet.privacy.wording import compact
from discreet.report.markup import Html, html_document, join, tag
from discreet.report.plotly_figures import COLOURS, layout
from discreet.report.theme import QUIET

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
VIEWS: Mapping[str, str] = {"server": "the server", "public": "the public (released models)"}
CHARTS: Mapping[str, tuple[str, str, str]] = {  # caption, horizontal axis, vertical axis
    "epsilon": ("ε against noise", "noise multiplier", "ε of all rounds"),
    "noise": ("Noise against rounds", "rounds", "noise multiplier"),
    "noise_to_signal": ("Noise to signal against clients", "clients", "noise to signal"),
    "bytes": ("Expected bytes against rounds", "rounds", "bytes, up and down"),
}
TILES: Mapping[str, str] = {
    "noise_multiplier": "Noise multiplier",
    "noise_to_signal": "Noise to signal, best case",
    "client_expected": "Expected bytes, one client",
    "all_total": "Expected bytes, all clients",
}


def render_page(start: StartPosition) -> str:
    """Return the whole page; its scripts and styles are separate files, so that no inline code may run."""
    styles = [tag("link", rel="stylesheet", href=name) for name in ("page.css", "planner.css")]
    body = join(
        [
            tag("header", tag("p", "Planner", class_="eyebrow"), tag("h1", TITLE), *_notes(start)),
            tag("main", tag("div", _controls(start), _answer(), class_="planner")),
            tag("footer", tag("p", _FOOTER)),
            tag("script", "", src="plotly.js", defer=True),
            tag("script", "", src="planner.js", defer=True),
        ]
    )
    return html_document(TITLE, styles, tag("body", body, data_planner=_script_data(start)))


@lru_cache(maxsize=1)
def page_assets() -> Mapping[str, tuple[str, bytes]]:
    """Return the files that the page loads, by name, each with its media type and its bytes."""
    from plotly.offline import get_plotlyjs

    ours, report = files("discreet.planning.planner"), files("discreet.report")
    return {
        "page.css": ("text/css; charset=utf-8", report.joinpath("page.css").read_bytes()),
        "planner.css": ("text/css; charset=utf-8", ours.joinpath("planner.css").read_bytes()),
        "planner.js": ("text/javascript; charset=utf-8", ours.joinpath("planner.js").read_bytes()),
        "plotly.js": ("text/javascript; charset=utf-8", get_plotlyjs().encode()),
    }


def _notes(start: StartPosition) -> Iterator[Html]:
    yield tag(
        "p",
        "Move a slider, and the curves follow. They are computed on this machine by the accountants that ",
        "certify a run; nothing is trained, spent or sent over the network.",
        class_="note",
    )
    if start.note:
        yield tag("p", start.note, class_="note")
    yield tag("noscript", tag("p", "This page needs JavaScript: only its own files, none from other servers."))


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
    more = {} if most is None else {"max": str(most)}
    yield tag("input", type="number", id=name, value=compact(now), step="any", min="0", required=True, **more)


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


def _answer() -> Html:
    tiles = (
        tag(
            "div",
            tag("dt", label),
            tag("dd", "…", id=f"tile-{name}"),
            *([tag("dd", "", id="client-most", class_="more")] if name == "client_expected" else []),
        )
        for name, label in TILES.items()
    )
    charts = (
        tag("figure", tag("figcaption", caption), tag("div", id=f"chart-{name}", class_="chart", role="img"))
        for name, (caption, _, _) in CHARTS.items()
    )
    verdict = tag("div", tag("p", "…", id="sentence"), tag("ul", id="warnings"), class_="verdict none", id="verdict")
    return tag(
        "section",
        tag("div", verdict, role="status", aria_live="polite"),
        tag("dl", *tiles, class_="tiles"),
        tag("div", tag("div", *charts, class_="charts"), class_="part", id="charts"),
        class_="answer",
        aria_label="What it costs",
    )


def _script_data(start: StartPosition) -> str:
    """Return what the script needs, as JSON."""
    axes = {name: {"x_label": x_label, "y_label": y_label} for name, (_, x_label, y_label) in CHARTS.items()}
    return json.dumps(
        {
            "question": to_plain(start.question),
            "stops": {name: slider_stops(name) for name in LABELS},
            "mechanism_notes": MECHANISM_NOTES,
            "axes": axes,
            "layout": layout(),
            "colours": [*COLOURS[:2], QUIET],
        }
    )


_FOOTER = (
    "Noise to signal is that of a round's mean in the best case: every update at the clip norm, all in the same "
    "direction. Real updates are shorter and differ. Bytes leave out what secure aggregation sends besides the sums."
)
