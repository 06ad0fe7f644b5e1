"""A chart draws its data, has a gap where there is no number, and has a text description."""

import json
import math

import pytest

from discreet.report.number_format import format_number, format_percent
from discreet.report.plotly_figures import (
    Band,
    Chart,
    Level,
    Line,
    figure,
    numbers_table,
    render_chart,
    thin_out,
)

CHART = Chart("a", "Accuracy", (Line("accuracy", {1: 0.5, 2: 0.75, 4: 0.7}),), level=Level("chance", 0.1), percent=True)


def test_a_chart_in_words_says_where_it_starts_ends_and_lies():
    said = CHART.description().replace("\u202f", " ")
    assert "from 50.0 % in round 1 to 70.0 % in round 4, between 50.0 % and 75.0 %" in said
    assert said.endswith("chance is 10.0 %.")


def test_a_round_without_a_value_is_bridged_and_one_without_a_number_is_a_gap():
    line = figure(Chart("a", "Loss", (Line("loss", {1: 2.0, 3: math.nan, 4: math.inf, 9: 1.0}),))).data[0]
    assert (list(line.x), list(line.y)) == ([1, 3, 4, 9], [2.0, None, None, 1.0])


def test_a_level_spans_all_rounds_and_a_band_lies_between_its_edges():
    chart = Chart(
        "a", "Norm", (Line("median", {1: 1.0, 5: 2.0}),), (Band("most", {1: 0.5}, {1: 3.0}),), Level("clip", 1.5)
    )
    low, high, _, level = figure(chart).data
    assert (low.y, high.y, high.fill) == ((0.5,), (3.0,), "tonexty")
    assert (level.x, level.y) == ((1, 5), (1.5, 1.5))
    assert '<th scope="col">most, from</th><th scope="col">most, to</th>' in numbers_table("Norm", chart)


def test_an_infinite_level_is_not_drawn():
    assert len(figure(Chart("a", "ε", (Line("ε", {1: 1.0}),), level=Level("promised", math.inf))).data) == 1


def test_a_long_run_is_thinned_with_both_ends():
    assert thin_out(list(range(1, 10_002)), 5) == [1, 2501, 5001, 7501, 10_001]
    assert thin_out([3, 7], 5) == [3, 7]
    long = Chart("a", "Loss", (Line("loss", {at: 1 / at for at in range(1, 10_001)}),))
    assert len(figure(long).data[0].x) == 2000
    assert "40 of 10,000 rounds." in numbers_table("Loss", long)


def test_what_a_chart_carries_cannot_end_its_script():
    made = render_chart(Chart("a", "</script>", (Line("</script><b>", {1: 1.0}),)))
    assert made.count("</script>") == 1
    assert json.loads(made.split('data-chart="a">')[1].split("</script>")[0])["data"]


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
