"""A picture is drawn as described, in the format of its file name, and a failure leaves no file."""

import math
from html import escape
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import InvalidInput
from discreet.report import matplotlib_figures, picture_files
from discreet.report.chart_figures import describe, numbers_table
from discreet.report.curves import Curve, Limit, Mark, Panel, Picture, Point, curve
from discreet.report.label_placement import LabelPlace, hangs_from_top, is_low, is_near_right_edge, place_label
from discreet.report.matplotlib_figures import render_image
from discreet.report.picture_files import save_picture
from discreet.report.picture_page import render_page
from discreet.report.run_page import POLICY
from discreet.report.theme import curve_styles, is_covered, marker_count, points_with_gaps

NOISE = Panel(
    "Noise",
    "ε",
    "variance",
    (
        curve("exact", [1, 2, 4], [4.0, 1.0, 0.25]),
        curve("claimed", [1, 2, 4], [2.0, math.inf, 0.1], dashed=True),
    ),
    limits=(Limit("holds up to here", 2.0),),
    marks=(Mark("best", Point(4, 0.25)),),
    log_x=True,
    log_y=True,
)
RATE = Panel("Rate", "ε", "bits", (curve("claimed", [1, 2], [8.0, 9.0]), curve("other", [1], [3.0])))
PICTURE = Picture("Privacy and <rate>", (NOISE, RATE), ("Dashed: a claim that costs $5, or $6.",))


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("html", b"<!DOCTYPE html>")])
def test_a_pictures_form_is_that_of_its_ending(tmp_path: Path, ending: str, start: bytes):
    path = save_picture(PICTURE, tmp_path / f"a.{ending.upper()}")
    assert path.read_bytes().startswith(start)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["a.eps", "a", "a.png.gz", ".png"])
def test_another_ending_is_refused_and_nothing_is_written(tmp_path: Path, name: str):
    with pytest.raises(InvalidInput, match=r"must end in \.png, \.svg, \.pdf, \.html, and got '.+'\."):
        save_picture(PICTURE, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_picture_that_cannot_be_written_says_so_and_leaves_the_old_one(tmp_path: Path, monkeypatch):
    with pytest.raises(InvalidInput, match="can't be written"):
        save_picture(PICTURE, tmp_path / "missing" / "a.svg")
    (tmp_path / "a.svg").write_text("old")

    def fail(*_: object) -> bytes:
        raise ZeroDivisionError

    monkeypatch.setattr(picture_files, "render_image", fail)
    with pytest.raises(ZeroDivisionError):
        save_picture(PICTURE, tmp_path / "a.svg")
    assert [each.read_text() for each in tmp_path.iterdir()] == ["old"]


@pytest.mark.parametrize("form", ["png", "svg"])
def test_the_same_picture_has_the_same_bytes_each_time(form):
    assert render_image(PICTURE, form) == render_image(PICTURE, form)


def test_drawing_leaves_matplotlibs_settings_as_they_were():
    import matplotlib

    before = dict(matplotlib.rcParams)
    render_image(PICTURE, "svg")
    assert dict(matplotlib.rcParams) == before


def test_a_curve_keeps_its_colour_from_panel_to_panel_and_the_sixth_is_told_by_its_symbol():
    look = curve_styles(*PICTURE.panels)
    assert list(look) == ["exact", "claimed", "other"]
    lines = {line.get_label(): line.get_color() for line in _axes(PICTURE)[1].lines}
    assert lines == {"claimed": look["claimed"].colour, "other": look["other"].colour}
    many = Panel("", "", "", tuple(Curve(str(place), ()) for place in range(25)))
    assert len({(each.colour, each.marker) for each in curve_styles(many).values()}) == 25


def test_what_is_no_number_or_has_no_logarithm_is_a_gap():
    values = curve("a", [0.0, 1, 2, 3, 4], [1.0, math.nan, math.inf, -1.0, 5.0])

    def visible_values(**axes: Any) -> list[float | None]:
        points = points_with_gaps(values, Panel("", "", "", (), **axes))
        return [None if math.isnan(point.y) else point.y for point in points]

    assert visible_values() == [1.0, None, None, -1.0, 5.0]
    assert visible_values(log_y=True) == [1.0, None, None, None, 5.0]
    assert visible_values(log_x=True) == [None, None, None, -1.0, 5.0]


def test_a_long_curve_has_few_markers_unless_a_point_stands_alone_and_none_if_it_has_no_company():
    alone = [math.nan if place % 2 else 1.0 for place in range(100)]
    flat, broken = curve("a", range(100), [1.0] * 100), curve("b", range(100), alone)
    panel = Panel("", "", "", (flat, broken))
    look = curve_styles(panel)["a"]
    assert (marker_count(flat, panel, look), marker_count(broken, panel, look)) == (10, 100)
    only = Panel("", "", "", (flat,))
    assert marker_count(flat, only, curve_styles(only)["a"]) == 0


def test_a_least_value_is_named_below_its_curve_and_a_largest_above():
    panel = Panel("", "", "", (curve("a", [1, 2, 3], [3.0, 1.0, 2.0]),))
    assert is_low(Mark("least", Point(2, 1.0)), panel)
    assert not is_low(Mark("largest", Point(1, 3.0)), panel)


def test_a_name_at_an_edge_leans_inwards_and_one_inside_stands_in_the_middle():
    panel = Panel("", "", "", (curve("a", range(1, 101), [100.0 - x for x in range(100)]),))
    assert place_label(Mark("a long name", Point(100, 1.0)), panel, 0.017) == LabelPlace(below=True, side="right")
    assert place_label(Mark("a long name", Point(1, 100.0)), panel, 0.017) == LabelPlace(below=False, side="left")
    level = Panel("", "", "", (curve("a", range(1, 101), [1.0] * 50 + [100.0] * 50),))
    assert place_label(Mark("name", Point(25, 1.0)), level, 0.017) == LabelPlace(below=True, side="center")


def test_a_name_stands_where_no_curve_runs_through_it():
    """For a low value the place below is tried first; a curve there moves the name above."""
    low, high = curve("low", range(101), [1.0] * 101), curve("high", range(101), [4.0] * 101)
    ends = curve("ends", [0, 1], [0.0, 4.0])
    mark = Mark("name", Point(80, 1.0))
    assert place_label(mark, Panel("", "", "", (low, high, ends)), 0.017) == LabelPlace(below=True, side="center")
    between = curve("between", range(101), [0.7] * 101)
    assert place_label(mark, Panel("", "", "", (low, high, ends, between)), 0.017) == LabelPlace(
        below=False, side="center"
    )


def test_a_limits_name_is_at_the_end_of_its_line_that_is_free():
    falling = Panel("", "", "", (curve("a", range(1, 101), [100.0 - x for x in range(100)]),))
    assert (hangs_from_top(10, falling), hangs_from_top(90, falling)) == (False, True)
    assert (is_near_right_edge(10, falling), is_near_right_edge(99, falling)) == (False, True)
    (axis,) = _axes(Picture("", (Panel("", "", "", falling.curves, (Limit("here", 10.0),)),)))
    (name,) = axis.texts
    assert (name.get_text(), name.xy, name.get_va()) == ("here", (10.0, 0), "bottom")


def test_names_have_a_place_on_a_panel_of_one_point_or_none():
    for curves in ((), (curve("a", [1], [2.0]),), (curve("a", [1], [math.nan]),)):
        panel = Panel("", "", "", curves, log_x=True, log_y=True)
        assert place_label(Mark("name", Point(1, 2.0)), panel, 0.017).side == "center"
        assert hangs_from_top(1.0, panel)


def test_a_curve_all_along_which_another_lies_is_wide():
    one, same = curve("a", [1, 2, 3], [1.0, 1.0, 1.0]), curve("b", [1, 2, 3], [1.001, 1.0, 0.999])
    other = curve("c", [1, 2, 3], [1.0, 1.0, 1.1])
    panel = Panel("", "", "", (one, same, other))
    assert [is_covered(each, panel) for each in panel.curves] == [True, False, False]
    wide, thin, _ = _axes(Picture("", (panel,)))[0].lines
    assert wide.get_linewidth() > thin.get_linewidth()


def test_a_bound_that_is_partly_dashed_has_one_name_and_one_column():
    """Dashed up to 2, solid from there on: each has a gap where the other runs."""
    dashed = curve("bound", [1, 2, 3], [5.0, 4.0, math.nan], dashed=True)
    solid = curve("bound", [1, 2, 3], [math.nan, 4.0, 3.0])
    panel = Panel("P", "x", "y", (dashed, solid, curve("other", [1, 2, 3], [1.0, 1.0, 1.0])))
    (top, _) = matplotlib_figures._figure(Picture("", (panel,))).subfigs
    assert [text.get_text() for text in top.legends[0].texts] == ["bound", "other"]
    told = numbers_table(panel)
    assert (told.count("bound"), told.count("not a number")) == (1, 0)
    assert "<td>5</td>" in told
    assert "<td>3</td>" in told
    assert describe(panel).startswith("Line chart of y by x. bound: from 5 at 1 to 3 at 3, between 3 and 5; other: ")


def test_what_is_counted_has_whole_numbers_along_it():
    panel = Panel("", "bits", "", (curve("a", [20, 22, 40], [3.0, 2.0, 1.0]),), whole_x=True)
    assert list(_axes(Picture("", (panel,)))[0].get_xticks()) == [20, 25, 30, 35, 40]
    near = Panel("", "bits", "", (curve("a", [20, 21], [3.0, 2.0]),), whole_x=True)
    ticks = _axes(Picture("", (near,)))[0].get_xticks()
    assert all(float(tick).is_integer() for tick in ticks)


def _axes(picture: Picture) -> list[Any]:
    made = matplotlib_figures._figure(picture)
    return [axis for each in made.subfigs for axis in each.axes]


def test_a_panel_in_words_says_its_ends_its_marks_and_its_limits():
    said = describe(NOISE)
    assert said.startswith(
        "Line chart of variance by ε. exact: from 4 at 1 to 0.25 at 4, between 0.25 and 4; claimed: "
    )
    assert said.endswith("best at 4: 0.25; holds up to here at 2.")


def test_a_limit_stands_at_its_own_place_on_a_logarithmic_axis():
    limit = _axes(PICTURE)[0].lines[2]
    assert list(limit.get_xdata()) == [2.0, 2.0]


@pytest.mark.parametrize("form", ["png", "svg"])
def test_a_limit_or_a_mark_without_a_place_is_left_out(form):
    panel = Panel("", "", "", NOISE.curves, (Limit("nowhere", 0.0),), (Mark("x", Point(1, math.inf)),), log_x=True)
    assert len(_axes(Picture("", (panel,)))[0].lines) == len(NOISE.curves)
    assert render_image(Picture("", (panel,)), form).count(b"nowhere") == 0


def test_the_page_loads_nothing_and_holds_every_number():
    page = render_page(PICTURE)
    assert escape(POLICY) in page
    assert "<h1>Privacy and &lt;rate&gt;</h1>" in page
    assert "src=" not in page
    assert "<script" not in page
    assert "<td>∞</td>" in page
    assert page.count('role="img"') == page.count("<table") == 2


def test_dollar_signs_are_text_and_not_mathematics():
    made = render_image(Picture("$5, or $6", (RATE,)), "svg")
    assert b"<!-- $5, or $6 -->" in made
    assert b"Oblique" not in made  # in which mathematics is set


def test_a_matplotlibrc_of_the_current_folder_changes_no_picture():
    import matplotlib

    usual = render_image(PICTURE, "svg")
    with matplotlib.rc_context({"text.usetex": True, "lines.linewidth": 9.0, "font.size": 3.0}):
        assert render_image(PICTURE, "svg") == usual
