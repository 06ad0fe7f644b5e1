"""The planner's answer as parts of its page: a sentence with warnings, four numbers, and four charts."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from discreet.planning.planner.slider_question import Question
from discreet.report.chart_figures import render_chart
from discreet.report.curves import Curve, Mark, Panel, Point, curve
from discreet.report.markup import Html, bullet_list, join, tag
from discreet.report.number_format import format_bytes, format_number


def answer_sections(question: Question, answer: Mapping[str, Any]) -> dict[str, Html]:
    """Return the contents of the page's elements `verdict`, `tiles` and `charts` for one answer.

    Args:
        question: The position of the sliders.
        answer: What `answer_question` returned for it.
    """
    return {"verdict": _verdict(answer), "tiles": _tiles(answer), "charts": _charts(question, answer)}


def answer_charts(question: Question, answer: Mapping[str, Any]) -> dict[str, Panel]:
    """Return the charts that have a value, by name; a star is at the current plan."""
    curves, noise = answer["curves"], answer.get("noise_multiplier")
    plans: dict[str, tuple[float | None, float | None]] = {
        "epsilon": (noise, answer.get("epsilon")),
        "noise": (question.rounds, noise),
        "noise_to_signal": (question.clients, answer.get("noise_to_signal")),
        "bytes": (None, None),
    }
    panels = {
        name: _panel(labels, tuple(_curves(name, curves[name])), plans[name])
        for name, labels in LABELS.items()
        if name in curves
    }
    return {name: panel for name, panel in panels.items() if any(map(_has_value, panel.curves))}


def _verdict(answer: Mapping[str, Any]) -> Html:
    warnings = answer.get("warnings", ())
    mood = "bad" if answer["reason"] else "none" if warnings else "good"
    bound = tag("p", answer["bound"], id="bound") if answer.get("bound") else None
    sentence = tag("p", answer["reason"] or answer["sentence"], id="sentence")
    return tag("div", bound, sentence, bullet_list(warnings) if warnings else None, class_=f"verdict {mood}")


def _tiles(answer: Mapping[str, Any]) -> Html:
    sizes = answer["bytes"] or {}
    expected, most = sizes.get("client_expected"), sizes.get("client_total", 0)
    values = {
        "noise_multiplier": _format(answer.get("noise_multiplier")),
        "noise_to_signal": _format(answer.get("noise_to_signal")),
        "client_expected": _format(expected, format_bytes),
        "all_total": _format(sizes.get("all_total"), format_bytes),
    }
    more = {"client_expected": f"at most {format_bytes(most)}"} if most > (expected or 0) else {}
    tiles = (
        tag(
            "div",
            tag("dt", label),
            tag("dd", values[name], tag("small", more[name]) if name in more else None, id=f"tile-{name}"),
        )
        for name, label in TILES.items()
    )
    return tag("dl", *tiles, class_="tiles")


def _charts(question: Question, answer: Mapping[str, Any]) -> Html:
    charts = [render_chart(panel, f"chart-{name}") for name, panel in answer_charts(question, answer).items()]
    return tag("div", tag("div", *charts, class_="charts"), class_="part") if charts else join([])


def _panel(labels: tuple[str, str, str], curves: tuple[Curve, ...], plan: tuple[float | None, float | None]) -> Panel:
    title, x_label, y_label = labels
    x, y = plan
    marks = () if x is None or y is None else (Mark("current plan", Point(x, y)),)
    return Panel(title, x_label, y_label, curves, marks=marks, log_x=True, log_y=True)


def _curves(name: str, values: Mapping[str, Sequence[float | None]]) -> Iterator[Curve]:
    lines = {"one client": "client_expected", "all clients": "all_total"} if name == "bytes" else {LABELS[name][2]: "y"}
    xs = [float(x) for x in values["x"] if x is not None]
    for label, key in lines.items():
        yield curve(label, xs, [math.nan if y is None else y for y in values[key]])


def _has_value(line: Curve) -> bool:
    return any(point.y > 0 for point in line.points)


def _format(value: float | None, write: Callable[[Any], str] = format_number) -> str:
    return "–" if value is None else write(value)


LABELS: Mapping[str, tuple[str, str, str]] = {  # title, x-axis, y-axis
    "epsilon": ("ε against noise", "noise multiplier", "ε of all rounds"),
    "noise": ("Noise against rounds", "rounds", "noise multiplier"),
    "noise_to_signal": ("Noise to signal against clients", "clients", "noise to signal"),
    "bytes": ("Expected bytes against rounds", "rounds", "bytes, up and down"),
}
TILES: Mapping[str, str] = {
    "noise_multiplier": "Noise multiplier",
    "noise_to_signal": "Noise to signal, at best",
    "client_expected": "Bytes of one client",
    "all_total": "Bytes of all clients",
}
