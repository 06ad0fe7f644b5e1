"""A picture is drawn as described, in the format of its file name, and a failure leaves no file."""

import json
import math
from html import escape
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import InvalidInput
from discreet.report import matplotlib_figures, picture_files
from discreet.report.curves import Curve, Limit, Mark, Panel, Picture, Point, curve
from discreet.report.label_placement import LabelPlace, hangs_from_top, is_low, is_near_right_edge, place_label
from discreet.report.matplotlib_figures import render_image
from discreet.report.picture_files import save_picture
from discreet.report.plotly_page import description, figure, numbers_table, render_page
from discreet.report.run_page import POLICY
from discreet.report.theme import curve_styles, is_covered, marker_count, y_values

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


@pytest.mark.parametrize("name", ["a.pdf", "a", "a.png.gz", ".png"])
def test_another_ending_is_refused_and_nothing_is_written(tmp_path: Path, name: str):
    with pytest.raises(InvalidInput, match=r"must end in \.png, \.svg, \.html, and got '.+'\."):
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
    look = curve_styles(PICTURE)
    assert list(look) == ["exact", "claimed", "other"]
    lines = {trace.name: trace.line.color for trace in figure(RATE, look).data}
    assert lines == {"claimed": look["claimed"].colour, "other": look["other"].colour}
    many = Picture("many", (Panel("", "", "", tuple(Curve(str(place), ()) for place in range(25))),))
    assert len({(each.colour, each.symbol) for each in curve_styles(many).values()}) == 25
    assert [name for name, each in curve_styles(many).items() if each.is_repeated][:1] == ["5"]


def test_what_is_no_number_or_has_no_logarithm_is_a_gap():
    values = curve("a", [0.0, 1, 2, 3, 4], [1.0, math.nan, math.inf, -1.0, 5.0])
    assert y_values(values, Panel("", "", "", ())) == [1.0, None, None, -1.0, 5.0]
    assert y_values(values, Panel("", "", "", (), log_y=True)) == [1.0, None, None, None, 5.0]
    assert y_values(values, Panel("", "", "", (), log_x=True)) == [None, None, None, -1.0, 5.0]


def test_a_long_curve_is_a_line_unless_a_point_stands_alone():
    alone = [math.nan if place % 2 else 1.0 for place in range(100)]
    flat, broken = curve("a", range(100), [1.0] * 100), curve("b", range(100), alone)
    panel = Panel("", "", "", (flat, broken))
    look = curve_styles(Picture("", (panel,)))["a"]
    assert (marker_count(flat, panel, look), marker_count(broken, panel, look)) == (0, 100)


def test_a_least_value_is_named_below_its_curve_and_a_largest_above():
    panel = Panel("", "", "", (curve("a", [1, 2, 3], [3.0, 1.0, 2.0]),))
    assert is_low(Mark("least", Point(2, 1.0)), panel)
    assert not is_low(Mark("largest", Point(1, 3.0)), panel)


def test_a_name_at_an_edge_leans_inwards_and_one_inside_stands_in_the_middle():
    panel = Panel("", "", "", (curve("a", range(1, 101), [100.0 - x for x in range(100)]),))
    assert place_label(Mark("a long name", Point(100, 1.0)), panel) == LabelPlace(below=True, side="right")
    assert place_label(Mark("a long name", Point(1, 100.0)), panel) == LabelPlace(below=False, side="left")
    level = Panel("", "", "", (curve("a", range(1, 101), [1.0] * 50 + [100.0] * 50),))
    assert place_label(Mark("name", Point(25, 1.0)), level) == LabelPlace(below=True, side="center")


def test_a_name_stands_where_no_curve_runs_through_it():
    """For a low value the place below is tried first; a curve there moves the name above."""
    low, high = curve("low", range(101), [1.0] * 101), curve("high", range(101), [4.0] * 101)
    ends = curve("ends", [0, 1], [0.0, 4.0])
    mark = Mark("name", Point(80, 1.0))
    assert place_label(mark, Panel("", "", "", (low, high, ends))) == LabelPlace(below=True, side="center")
    between = curve("between", range(101), [0.7] * 101)
    assert place_label(mark, Panel("", "", "", (low, high, ends, between))) == LabelPlace(below=False, side="center")


def test_a_limits_name_is_at_the_end_of_its_line_that_is_free():
    falling = Panel("", "", "", (curve("a", range(1, 101), [100.0 - x for x in range(100)]),))
    assert (hangs_from_top(10, falling), hangs_from_top(90, falling)) == (False, True)
    assert (is_near_right_edge(10, falling), is_near_right_edge(99, falling)) == (False, True)
    made = figure(Panel("", "", "", falling.curves, (Limit("here", 10.0),)), curve_styles(Picture("", (falling,))))
    assert (made.layout.annotations[0].y, made.layout.annotations[0].yanchor) == (0, "bottom")


def test_names_have_a_place_on_a_panel_of_one_point_or_none():
    for curves in ((), (curve("a", [1], [2.0]),), (curve("a", [1], [math.nan]),)):
        panel = Panel("", "", "", curves, log_x=True, log_y=True)
        assert place_label(Mark("name", Point(1, 2.0)), panel).side == "center"
        assert hangs_from_top(1.0, panel)


def test_a_curve_all_along_which_another_lies_is_wide():
    one, same = curve("a", [1, 2, 3], [1.0, 1.0, 1.0]), curve("b", [1, 2, 3], [1.001, 1.0, 0.999])
    other = curve("c", [1, 2, 3], [1.0, 1.0, 1.1])
    panel = Panel("", "", "", (one, same, other))
    assert [is_covered(each, panel) for each in panel.curves] == [True, False, False]
    wide, thin, _ = figure(panel, curve_styles(Picture("", (panel,)))).data
    assert wide.line.width > thin.line.width


def test_a_bound_that_is_partly_dashed_has_one_name_and_one_column():
    """Dashed up to 2, solid from there on: each has a gap where the other runs."""
    dashed = curve("bound", [1, 2, 3], [5.0, 4.0, math.nan], dashed=True)
    solid = curve("bound", [1, 2, 3], [math.nan, 4.0, 3.0])
    panel = Panel("P", "x", "y", (dashed, solid, curve("other", [1, 2, 3], [1.0, 1.0, 1.0])))
    traces = figure(panel, curve_styles(Picture("", (panel,)))).data
    assert [trace.showlegend for trace in traces] == [False, True, True]
    assert traces[0].legendgroup == traces[1].legendgroup != traces[2].legendgroup
    told = numbers_table(panel)
    assert (told.count("bound"), told.count("not a number")) == (1, 0)
    assert "<td>5</td>" in told
    assert "<td>3</td>" in told
    assert description(panel).startswith("Line chart of y by x. bound: from 5 at 1 to 3 at 3; other: ")


def test_what_is_counted_has_whole_numbers_along_it():
    panel = Panel("", "bits", "", (curve("a", [20, 22, 40], [3.0, 2.0, 1.0]),), whole_x=True)
    assert figure(panel, curve_styles(Picture("", (panel,)))).layout.xaxis.dtick == 5
    near = Panel("", "bits", "", (curve("a", [20, 21], [3.0, 2.0]),), whole_x=True)
    ticks = _axes(Picture("", (near,)))[0].get_xticks()
    assert all(float(tick).is_integer() for tick in ticks)


def test_the_names_of_small_steps_are_as_small_as_those_of_large_ones():
    panel = Panel("", "", "", (curve("a", [1, 2, 3], [1.5, 2.0, 6.0]),), log_y=True)
    (axis,) = _axes(Picture("", (panel,)))
    assert {tick.label1.get_size() for tick in (*axis.yaxis.get_major_ticks(), *axis.yaxis.get_minor_ticks())} == {8}


def _axes(picture: Picture) -> list[Any]:
    made = matplotlib_figures._figure(picture)
    return [axis for each in made.subfigs for axis in each.axes]


def test_a_panel_in_words_says_its_ends_its_marks_and_its_limits():
    said = description(NOISE)
    assert said.startswith("Line chart of variance by ε. exact: from 4 at 1 to 0.25 at 4; claimed: from 2 at 1")
    assert said.endswith("best at 4: 0.25; holds up to here at 2.")


def test_a_limit_stands_at_its_own_place_on_a_logarithmic_axis():
    drawn = figure(NOISE, curve_styles(PICTURE)).layout
    assert drawn.shapes[0].x0 == 2.0
    assert drawn.annotations[0].x == pytest.approx(math.log10(2))


@pytest.mark.parametrize("form", ["png", "svg"])
def test_a_limit_or_a_mark_without_a_place_is_left_out(form):
    panel = Panel("", "", "", NOISE.curves, (Limit("nowhere", 0.0),), (Mark("x", Point(1, math.inf)),), log_x=True)
    bare = Panel("", "", "", NOISE.curves, log_x=True)
    assert len(figure(panel, curve_styles(PICTURE)).data) == len(figure(bare, curve_styles(PICTURE)).data)
    assert not figure(panel, curve_styles(PICTURE)).layout.shapes
    assert render_image(Picture("", (panel,)), form).count(b"nowhere") == 0


def test_the_page_loads_nothing_and_holds_every_number():
    page = render_page(PICTURE)
    assert escape(POLICY) in page
    assert "<h1>Privacy and &lt;rate&gt;</h1>" in page
    assert "src=" not in page.split("<script")[0]
    assert "<td>∞</td>" in page
    charts = [part.split("</script>")[0].split(">", 1)[1] for part in page.split("data-chart=")[1:3]]
    assert [json.loads(each)["data"][0]["name"] for each in charts] == ["exact", "claimed"]


def test_dollar_signs_are_text_and_not_mathematics():
    made = render_image(Picture("$5, or $6", (RATE,)), "svg")
    assert b"<!-- $5, or $6 -->" in made
    assert b"Oblique" not in made  # in which mathematics is set
