"""A chart in a page draws its data, has a gap where there is no number, and has its numbers in a table and in words."""

import math
import re
from collections import Counter
from importlib.resources import files
from typing import Any
from xml.etree import ElementTree

import pytest

from discreet.report import theme
from discreet.report.chart_figures import describe, numbers_table, render_chart
from discreet.report.charts import round_chart
from discreet.report.curves import (
    Band,
    Curve,
    Level,
    Limit,
    Mark,
    Panel,
    Point,
    curve,
    points_by_x,
    thin_out,
    thin_points,
)
from discreet.report.inline_svg import render_svg
from discreet.report.number_format import format_number, format_percent
from discreet.report.panel_drawing import Scale, draw_panel

ACCURACY = round_chart(
    "Accuracy", {"accuracy": {1: 0.5, 2: 0.75, 4: 0.7}}, levels=(Level("chance", 0.1),), percent=True
)
SCALE = Scale(text=10, letter=0.02, x_ticks=5, y_ticks=5, names_limits=False)


def test_an_epsilon_is_rounded_up_wherever_a_chart_writes_it():
    spent = round_chart("ε spent at δ = 1e-5", {"ε spent": {1: 1.20211, 2: 2.0}}, levels=(Level("promised", 2.0),))
    assert [spent.format_y(y) for y in (1.20211, 2.0, math.inf)] == ["1.203", "2", "∞"]
    assert "1.203" in str(render_chart(spent, "spent"))
    assert "1.202" not in str(render_chart(spent, "spent")).replace("1.2021", "")
    assert ACCURACY.format_y(0.70211) == format_percent(0.70211)


def draw(panel: Panel) -> Any:
    from matplotlib.figure import Figure

    axis = Figure().add_subplot()
    draw_panel(panel, axis, theme.curve_styles(panel), SCALE)
    return axis


def svg(panel: Panel, key: str = "a") -> ElementTree.Element:
    return ElementTree.fromstring(render_svg(panel, key, "words", theme.curve_styles(panel)))


def test_a_chart_in_words_says_where_it_starts_ends_and_lies():
    words = describe(ACCURACY).replace("\u202f", " ")
    assert words.startswith("Line chart of Accuracy by round.")
    assert "from 50.0 % at 1 to 70.0 % at 4, between 50.0 % and 75.0 %" in words
    assert words.endswith("chance is 10.0 %.")


def test_a_round_without_a_value_is_bridged_and_one_without_a_number_is_a_gap():
    (line,) = draw(round_chart("Loss", {"loss": {1: 2.0, 3: math.nan, 4: math.inf, 9: 1.0}})).lines
    assert list(line.get_xdata()) == [1, 3, 4, 9]
    assert [math.isfinite(y) for y in line.get_ydata()] == [True, False, False, True]


def test_a_level_spans_the_axis_and_a_band_lies_between_its_edges():
    edges = Band("most", points_by_x({1: 0.5, 5: 0.6}), points_by_x({1: 3.0, 5: 3.1}))
    chart = round_chart("Norm", {"median": {1: 1.0, 5: 2.0}}, bands=(edges,), levels=(Level("clip", 1.5),))
    axis = draw(chart)
    assert list(axis.lines[-1].get_ydata()) == [1.5, 1.5]
    corners = axis.collections[0].get_paths()[0].vertices
    assert (corners[:, 1].min(), corners[:, 1].max()) == (0.5, 3.1)
    assert '<th scope="col">most, from</th><th scope="col">most, to</th>' in numbers_table(chart)


@pytest.mark.parametrize("log_y", [False, True])
@pytest.mark.parametrize("values", [{}, {1: math.nan}, {1: 0.0}, {1: 5e-324, 2: 1e308, 3: 1.0}, {1: 1e308, 2: -1e308}])
def test_numbers_beyond_all_bounds_are_in_the_table_only(values: dict[int, float], log_y: bool):
    """A run that diverges ends with such numbers, and needs a page all the same."""
    band = Band("most", points_by_x(values), points_by_x(values))
    chart = round_chart("Loss", {"loss": values}, bands=(band,), levels=(Level("promised", 1e308),), log_y=log_y)
    figure = render_chart(chart, "a")
    assert "<svg" in figure
    assert figure.count('<th scope="row">') == len(values)


@pytest.mark.parametrize("value", [0.03, -2.0, 0.0])
def test_a_curve_that_is_constant_but_for_rounding_has_labels_that_differ(value: float):
    axis = draw(round_chart("Gap", {"gap": {1: value, 2: value * (1 + 1e-15), 3: value}}, percent=True))
    names = [label.get_text() for label in axis.get_yticklabels()]
    assert len(names) == len(set(names)) >= 2


def test_an_infinite_level_is_not_drawn():
    assert len(draw(round_chart("ε", {"ε": {1: 1.0}}, levels=(Level("promised", math.inf),))).lines) == 1


def test_a_table_of_a_long_run_has_both_ends_and_says_where_the_rest_is():
    assert thin_out(list(range(1, 10_002)), 5) == [1, 2501, 5001, 7501, 10_001]
    assert thin_out([3, 7], 5) == [3, 7]
    long = round_chart("Loss", {"loss": {number: 1 / number for number in range(1, 10_001)}})
    told = numbers_table(long, "rounds.jsonl")
    assert "Loss (40 of 10,000 rows; all are in rounds.jsonl)</caption>" in told
    assert told.count("<tr>") == 41


def test_a_thinned_line_keeps_its_peaks_its_ends_and_a_gap():
    values = [Point(x, math.sin(x)) for x in range(10_000)]
    values[1234], values[7000] = Point(1234, 9.0), Point(7000, math.nan)
    chosen = thin_points(values, 400)
    assert len(chosen) < 450
    assert {values[0], values[-1], values[1234], values[7000]} <= set(chosen)
    assert chosen == sorted(chosen)
    assert thin_points(values[:7], 400) == values[:7]


def test_the_numbers_of_a_panel_have_errors_and_a_dash_where_there_is_none():
    lines = (
        Curve("a", (Point(1, 2.0), Point(2, math.nan)), errors=(0.5, 0.0)),
        Curve("b", (Point(2, math.inf),)),
    )
    told = numbers_table(Panel("Errors", "x", "y", lines))
    assert '<th scope="row">1</th><td>2 ± 0.5</td><td>–</td>' in told
    assert '<th scope="row">2</th><td>–</td><td>∞</td>' in told
    assert "<caption>Errors: y</caption>" in told


def test_text_is_text_and_colours_are_those_of_the_page():
    drawing = svg(ACCURACY)
    texts = [text.text for text in drawing.iter("text")]
    assert {"round", "accuracy", "chance", "60\u202f%"} <= set(texts)
    styles = " ".join(element.get("style", "") for element in drawing.iter())
    assert "var(--curve-0)" in styles
    assert "font" not in styles
    assert not re.search("#[0-9a-f]{3}", styles)


def test_the_page_by_day_has_the_colours_of_the_files():
    style = files("discreet.report").joinpath("page.css").read_text(encoding="utf-8")
    for colour, variable in theme.VARIABLES.items():
        assert re.search(rf"{variable[4:-1]}: {colour}", style)


def test_a_chart_has_a_name_and_a_description_for_those_who_cannot_see_it():
    drawing = svg(ACCURACY, "spent")
    assert drawing.get("role") == "img"
    names = {element.get("id"): element.text for element in drawing if element.tag in ("title", "desc")}
    assert names[drawing.get("aria-labelledby")] == "Accuracy"
    assert names[drawing.get("aria-describedby")] == "words"


def test_each_marker_says_its_value():
    titles = [element.text for element in svg(ACCURACY).iter("title")]
    assert titles[1:] == ["accuracy: 50.0\u202f% at 1", "accuracy: 75.0\u202f% at 2", "accuracy: 70.0\u202f% at 4"]


def test_the_same_chart_has_the_same_bytes_and_two_charts_share_no_identifier():
    assert render_chart(ACCURACY, "a") == render_chart(ACCURACY, "a")
    page = render_chart(ACCURACY, "a") + render_chart(ACCURACY, "b")
    identifiers = Counter(re.findall(r' id="([^"]+)"', page))
    assert max(identifiers.values()) == 1
    assert {
        name.strip("#") for name in re.findall(r'href="([^"]+)"|url\(([^)]+)\)', page) for name in name if name
    } <= set(identifiers)


def test_drawing_leaves_matplotlibs_settings_as_they_were():
    import matplotlib

    before = dict(matplotlib.rcParams)
    render_chart(ACCURACY, "a")
    assert dict(matplotlib.rcParams) == before


def test_curves_differ_by_more_than_their_colour():
    """Two curves have different markers even where they have too many points for a marker each."""
    many = [1 + x for x in range(100)]
    axis = draw(Panel("", "x", "y", (curve("a", many, many), curve("b", many, [2 * x for x in many]))))
    assert len({line.get_marker() for line in axis.lines}) == 2
    assert draw(Panel("", "x", "y", (curve("a", many, many),))).lines[0].get_marker() == "None"


@pytest.mark.parametrize("x_label", ["round", "a label that is much longer than the chart is wide, " * 2])
def test_nothing_is_wider_than_the_chart(x_label: str):
    """By matplotlib's own letters, which are wider than those of browsers."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from discreet.report.inline_svg import _figure

    names = ["a name", "another name that is longer than a line of the legend can be", "one", "two"]
    lines = tuple(curve(name, [1e-7, 3e5], [1e-9 * place, 7e8]) for place, name in enumerate(names, 1))
    panel = Panel("T", x_label, "y", lines, marks=(Mark("current plan", Point(3e5, 7e8)),), log_x=True, log_y=True)
    figure = _figure(panel, theme.curve_styles(panel))
    FigureCanvasAgg(figure)
    figure.set_dpi(72)
    box, outside = figure.get_tightbbox(figure.canvas.get_renderer()), 1 / 72
    assert box.x0 >= -outside
    assert box.y0 >= -outside
    assert box.x1 <= figure.get_figwidth() + outside
    assert box.y1 <= figure.get_figheight() + outside


def test_named_rows_and_named_positions_are_labelled_by_their_names():
    points = (Point(0, 0.5), Point(1, 0.75))
    rows = Panel(
        "Accuracy",
        "accuracy",
        "",
        (Curve("m", points, errors=(0.1, 0.1)),),
        x_names=((0, "a"), (1, "$b")),
        as_rows=True,
    )
    assert {text.get_text() for text in draw(rows).texts} == {"a", r"\$b"}
    assert describe(rows) == "Dot chart of Accuracy by accuracy. m: 0.5 at a, 0.75 at $b."
    few = draw(Panel("", "x", "", (Curve("m", points),), x_names=((0, "sgd"), (1, "adam"))))
    assert [label.get_text() for label in few.get_xticklabels()] == ["sgd", "adam"]
    assert {label.get_rotation() for label in few.get_xticklabels()} == {0}
    many = draw(Panel("", "x", "", (Curve("m", points),), x_names=((0, "a long name " * 3), (1, "another " * 4))))
    assert {label.get_rotation() for label in many.get_xticklabels()} == {45}


def test_limits_are_said_below_a_chart():
    chart = Panel("T", "ε", "y", (curve("a", [1, 3], [1.0, 2.0]),), limits=(Limit("the bound ends", 2.0),))
    assert "Dotted: the bound ends at 2." in render_chart(chart, "a")


def test_without_matplotlib_there_are_the_numbers_and_a_sentence_that_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    figure = render_chart(ACCURACY, "a")
    assert "pip install &#x27;discreet[report]&#x27;" in figure
    assert "<svg" not in figure
    assert "<details" not in figure  # the table is open: there is nothing else to see
    assert "<td>75.0\u202f%</td>" in figure


def test_what_a_chart_carries_is_never_markup():
    evil = "</svg><script>alert(1)</script>"
    chart = Panel(
        evil, evil, evil, (curve(evil, [1, 2], [1.0, 2.0]), curve("b", [1, 2], [2.0, 3.0])), x_names=((1, evil),)
    )
    figure = render_chart(chart, "a")
    assert "<script" not in figure
    assert figure.count("</svg>") == 1


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (1.0, "1"),
        (12345.0, "12,345"),
        (0.123456, "0.1235"),
        (1e-5, "1e-5"),
        (math.inf, "∞"),
        (math.nan, "not a number"),
    ],
)
def test_numbers_are_short(value: float, said: str):
    assert format_number(value) == said


def test_a_share_is_a_percentage():
    assert format_percent(0.8884) == "88.8\u202f%"
    assert format_percent(math.nan) == "not a number"
