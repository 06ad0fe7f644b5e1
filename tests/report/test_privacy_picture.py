"""The files of privacy curves: the same numbers in each, a mark at the δ that was asked, and refusals in time."""

import csv
import json
import math
from pathlib import Path

import pytest

from discreet.errors import InvalidInput
from discreet.privacy.events import GaussianNoise
from discreet.privacy.privacy_curves import PrivacyCurves, compute_curves
from discreet.report.privacy_picture import check_curve_path, draw_curves, save_curves

CURVES = compute_curves(GaussianNoise(noise_multiplier=2.0), "zero_out", 3e-6)


def test_a_table_has_every_point_with_all_its_digits(tmp_path: Path) -> None:
    with save_curves(CURVES, tmp_path / "curves.csv").open() as file:
        rows = list(csv.DictReader(file))
    epsilons = [(float(row["delta"]), float(row["epsilon"])) for row in rows if row["curve"] == "epsilon"]
    errors = [
        (float(row["false_positive_rate"]), float(row["false_negative_rate"]))
        for row in rows
        if row["curve"] == "trade_off"
    ]
    assert epsilons == [tuple(point) for point in CURVES.epsilons]
    assert errors == [tuple(point) for point in CURVES.trade_off]


def test_json_has_the_same_points_and_says_what_they_are_about(tmp_path: Path) -> None:
    whole = json.loads(save_curves(CURVES, tmp_path / "curves.JSON").read_text())
    assert [tuple(point.values()) for point in whole["epsilon_curve"]] == [tuple(p) for p in CURVES.epsilons]
    assert whole["trade_off_curve"][0].keys() == {"false_positive_rate", "false_negative_rate"}
    assert whole["relation"] == "zero_out"
    assert whole["event"]["kind"] == "gaussian"


def test_an_infinite_epsilon_is_a_word_in_json_and_has_no_mark(tmp_path: Path) -> None:
    endless = PrivacyCurves(
        CURVES.event,
        CURVES.relation,
        CURVES.delta,
        tuple(point._replace(epsilon=math.inf) for point in CURVES.epsilons),
        CURVES.trade_off,
    )
    whole = json.loads(save_curves(endless, tmp_path / "curves.json").read_text())
    assert {point["epsilon"] for point in whole["epsilon_curve"]} == {"inf"}
    assert draw_curves(endless).panels[0].marks == ()


def test_a_picture_marks_what_was_asked_and_compares_with_blind_guessing() -> None:
    left, right = draw_curves(CURVES).panels
    (mark,) = left.marks
    assert mark.name.endswith("at δ = 3e-6")
    assert mark.point.x == 3e-6
    assert [curve.name for curve in right.curves] == ["certified", "blind guessing"]
    guessed = {point.x: point.y for point in right.curves[1].points}
    assert guessed == {0.0: 1.0, 1.0: 0.0}


@pytest.mark.parametrize(("name", "start"), [("c.svg", b"<?xml"), ("c.pdf", b"%PDF"), ("c.html", b"<!doctype html>")])
def test_the_ending_of_the_name_decides_what_is_drawn(name: str, start: bytes, tmp_path: Path) -> None:
    assert save_curves(CURVES, check_curve_path(tmp_path / name)).read_bytes().lower().startswith(start.lower())


def test_a_file_that_nobody_could_write_is_refused_before_anything_is_computed(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"must end in \.csv, \.json, \.png"):
        check_curve_path(tmp_path / "curves.txt")
    with pytest.raises(InvalidInput, match="no folder"):
        check_curve_path(tmp_path / "nowhere" / "curves.csv")
