"""The curves of one event as a picture, a table or JSON: what `discreet account --curve` writes."""

import csv
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from discreet.errors import InvalidInput
from discreet.part import to_plain
from discreet.privacy.privacy_curves import PrivacyCurves
from discreet.privacy.wording import compact, describe_event, round_up
from discreet.report.curves import Curve, Mark, Panel, Picture, Point, curve
from discreet.report.picture_files import FORMATS, check_picture_path, check_writable, save_picture
from discreet.report.run_page import write_atomically

COLUMNS = ("delta", "epsilon", "false_positive_rate", "false_negative_rate")
RELATIONS = {"add_or_remove": "added or removed", "zero_out": "blanked", "replace": "replaced"}


def check_curve_path(path: Path) -> Path:
    """Check that curves can be written to `path` before anything is computed, and return the path.

    Raises:
        InvalidInput: If the format is unknown, or the file can't be written.
        MissingExtra: If the format needs matplotlib, which is not installed.
    """
    ending = path.suffix.lower()
    if ending in TABLES:
        return check_writable(path)
    if ending not in FORMATS:
        known = ", ".join([*TABLES, *FORMATS])
        raise InvalidInput(f"The name of a file of curves must end in {known}, and got {path.name!r}.")
    return check_picture_path(path)


def save_curves(curves: PrivacyCurves, path: Path) -> Path:
    """Write the curves to `path`, completely or not at all: as CSV, JSON or a picture, by the ending of its name."""
    render = TABLES.get(path.suffix.lower())
    return write_atomically(path, render(curves)) if render else save_picture(draw_curves(curves), path)


def draw_curves(curves: PrivacyCurves) -> Picture:
    """Return the picture: ε by δ with a mark, and both errors of the best test beside blind guessing."""
    return Picture(
        title="What can be told about one unit",
        panels=(_epsilon_panel(curves), _test_panel(curves)),
        notes=(
            f"{describe_event(curves.event)}; for one unit that is {RELATIONS[curves.relation]}.",
            "Left: the event is (ε, δ)-private at every point of the curve.",
            "Right: no test has errors below the curve; the nearer it is to blind guessing, the less can be told.",
        ),
    )


def _epsilon_panel(curves: PrivacyCurves) -> Panel:
    asked = next(point for point in curves.epsilons if point.delta == curves.delta)
    name = f"ε = {round_up(asked.epsilon)} at δ = {compact(asked.delta)}"
    return Panel(
        title="ε at each δ",
        x_label="δ",
        y_label="ε, at most",
        curves=(curve("certified", *_columns(curves.epsilons)),),
        marks=(Mark(name, Point(*asked)),) if math.isfinite(asked.epsilon) else (),
        log_x=True,
        from_zero=True,
    )


def _test_panel(curves: PrivacyCurves) -> Panel:
    ends = (Point(0.0, 1.0), Point(1.0, 0.0))
    inner = tuple(Point(*point) for point in curves.trade_off)
    corner = Point(0.0, inner[0].y) if inner else ends[0]
    return Panel(
        title="Errors of the best test for one unit",
        x_label="false alarms (type I error)",
        y_label="missed (type II error), at least",
        curves=(Curve("certified", (corner, *inner, ends[1])), Curve("blind guessing", ends, dashed=True)),
        from_zero=True,
    )


def _columns(points: tuple[tuple[float, float], ...]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _render_csv(curves: PrivacyCurves) -> str:
    file = io.StringIO()
    lines = csv.writer(file, lineterminator="\n")
    lines.writerow(["curve", *COLUMNS])
    lines.writerows(["epsilon", *point, "", ""] for point in curves.epsilons)
    lines.writerows(["trade_off", "", "", *point] for point in curves.trade_off)
    return file.getvalue()


def _render_json(curves: PrivacyCurves) -> str:
    def rows(points: tuple[tuple[float, float], ...], names: tuple[str, ...]) -> Iterator[Mapping[str, float | str]]:
        for point in points:
            yield {name: value if math.isfinite(value) else "inf" for name, value in zip(names, point, strict=True)}

    whole = {
        "event": to_plain(curves.event),
        "relation": curves.relation,
        "epsilon_curve": list(rows(curves.epsilons, COLUMNS[:2])),
        "trade_off_curve": list(rows(curves.trade_off, COLUMNS[2:])),
    }
    return json.dumps(whole, allow_nan=False, indent=1) + "\n"


TABLES: Mapping[str, Callable[[PrivacyCurves], str]] = {".csv": _render_csv, ".json": _render_json}
