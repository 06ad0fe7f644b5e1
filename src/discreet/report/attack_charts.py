"""The charts of attacks on a run: what is recognised by rates of false alarms, and labels that were counted."""

from collections.abc import Mapping
from typing import Any

from discreet.report.curves import Curve, Panel, Picture, Point
from discreet.report.number_format import format_percent

TITLES = {
    "membership": "Membership inference: whose data was the model trained on?",
    "inversion": "Gradient inversion: what can the server rebuild?",
    "labels": "Label inference: what can the server count?",
}
NAMED_CLASSES = 12  # the most of which each has its own mark on an axis
CERTIFIED, GUESSING = "certified: no attack is above", "guessing"


def membership_panel(data: Mapping[str, Any]) -> Panel:
    """Return the ROC curves of membership inference on logarithmic axes, below the certified curve."""
    curves = []
    if data["certified_curve"]:
        curves.append(Curve(CERTIFIED, _points(data["certified_curve"])))
    for place, run in enumerate(data["runs"]):
        shown = run["attacks"] if place == 0 else run["attacks"][:1]  # of a comparison, the stronger attack is enough
        curves += [Curve(f"{attack['name']}, {run['name']}", _points(attack["points"])) for attack in shown]
    least = min(point.x for curve in curves for point in curve.points)
    curves.append(Curve(GUESSING, (Point(least, least), Point(1.0, 1.0)), dashed=True))
    unit = data["unit"]
    return Panel(
        f"Share of {unit}s that are recognised",
        f"false alarms: share of other {unit}s taken for members",
        "",
        tuple(curves),
        log_x=True,
        log_y=True,
    )


def label_panel(data: Mapping[str, Any]) -> Panel:
    """Return the true counts of labels beside those that each view of the server gives away."""
    counted = {"true count": data["counts"]} | {view["name"]: view["counts"] for view in data["views"]}
    curves = (
        Curve(name, tuple(Point(float(label), float(count)) for label, count in enumerate(counts)))
        for name, counts in counted.items()
    )
    classes = len(data["counts"])
    names = tuple((float(label), str(label)) for label in range(classes)) if classes <= NAMED_CLASSES else ()
    return Panel("Examples of each class", "class", "", tuple(curves), whole_x=True, from_zero=True, x_names=names)


def attack_picture(data: Mapping[str, Any]) -> Picture:
    """Return the picture of membership or label inference."""
    panel = membership_panel(data) if data["attack"] == "membership" else label_panel(data)
    return Picture(TITLES[data["attack"]], (panel,), tuple(data["sentences"]))


def rate_rows(data: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return what each attack recognises at each rate of false alarms, as rows of a table in percent."""
    return [
        (
            attack["name"] if place == 0 else f"{attack['name']}, {run['name']}",
            _percent(rate["false_positive_rate"]),
            _percent(rate["true_positive_rate"]),
            f"{_percent(rate['low'])} – {_percent(rate['high'])}",
            _percent(rate["certified"]) if "certified" in rate else "–",
            f"{attack['area']:.3f}",
        )
        for place, run in enumerate(data["runs"])
        for attack in run["attacks"]
        for rate in attack["rates"]
    ]


RATE_HEADINGS = ("attack", "false alarms", "recognised", "95 % interval", "certified", "area")


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.01 else format_percent(share)


def _points(pairs: list[list[float]]) -> tuple[Point, ...]:
    return tuple(Point(x, y) for x, y in pairs)
