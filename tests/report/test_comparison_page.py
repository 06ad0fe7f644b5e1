"""Rows are means a reader can check by hand; the page holds one table and one picture, and loads nothing."""

import math
from typing import Any

import pytest

from discreet.code_version import CodeVersion
from discreet.report import comparison_charts, comparison_page
from discreet.report.chart_figures import describe, numbers_table
from discreet.report.comparison_columns import columns, describe_shared
from discreet.report.comparison_rows import Row, describe_code, notes

COMMAND = "discreet compare a.toml b.toml"


def result(accuracy: Any = 0.5, **other: Any) -> dict[str, Any]:
    return {
        "metrics": {"accuracy": accuracy, "loss": 1.0},
        "epsilon": 1.9999,
        "delta": 1e-5,
        "unit": "example",
        "against": "server",
        "noise_multiplier": 3.5,
        "rounds": 60,
        "clients": 10,
        "seconds": 2.0,
        "device": "cpu",
    } | other


OPEN = {"epsilon": None, "delta": None, "unit": None, "against": None, "noise_multiplier": None}


def row(*results: dict[str, Any], name: str = "a", wanted: int = 3, **swept: str) -> Row:
    return Row(name, {f"algorithm.{key}": value for key, value in swept.items()}, results, wanted)


def test_a_row_is_the_mean_and_its_standard_error():
    found = row(result(0.80), result(0.82), result(0.84))
    assert found.mean == pytest.approx(0.82)
    assert found.standard_error == pytest.approx(0.02 / math.sqrt(3))
    assert found.format_metric() == "82.00 ± 1.15"
    assert row(result(0.8)).format_metric() == "80.00"
    assert row().format_metric() == "–"


def test_the_largest_epsilon_stands_for_all_and_nothing_promised_is_infinite():
    assert row(result(epsilon=1.0), result(epsilon=1.5)).epsilon == 1.5
    (epsilon,) = [each.cells for each in columns([row(result()), row(result(**OPEN))]) if each.heading == "ε"]
    assert epsilon == ("2", "∞")  # rounded up
    assert any("∞" in note for note in notes([row(result()), row(result(**OPEN))]))


def test_a_run_that_diverged_counts_as_what_it_is():
    lost = result(0.1) | {"metrics": {"accuracy": 0.1, "loss": "nan"}}
    some = row(result(0.9), result(0.8), lost)
    assert (some.diverged_runs, some.format_metric()[:5]) == (1, "60.00")
    assert [each.cells for each in columns([some]) if each.heading == "diverged"] == [("1 of 3",)]
    assert row(lost, lost).format_metric() == "diverged"
    squared = row(result() | {"metrics": {"mse": 0.5}}, result() | {"metrics": {"mse": "inf"}})
    assert (squared.mean, squared.format_metric()) == (None, "diverged")  # NaN has no mean
    assert squared.data()["values"] == [0.5, None]


def test_the_code_behind_the_results_is_named():
    stamp = "0.3.0.dev12 1a2b3c4d5e6f7a8b9c0d1a2b3c4d5e6f7a8b9c0d"
    named = describe_code([row(result(code=stamp), result(code=stamp)), row(result())])
    assert named == f"Made by {CodeVersion.from_stamp(stamp)}; an unknown commit."
    assert describe_code([row()]) == ""


def test_what_all_rows_share_is_said_once():
    found = columns([row(result()), row(result(**OPEN) | {"rounds": 30}, name="b")])
    said = describe_shared(found)
    assert said == "In all rows: noise multiplier 3.5, 10 clients, ε at δ = 1e-5 for one example against the server."
    assert [each.heading for each in found if each.shared_value is None] == [
        "experiment",
        "accuracy, %",
        "runs",
        "ε",
        "rounds",
        "seconds",
    ]


def test_a_chart_speaks_of_standard_errors_only_if_it_has_some():
    one, three = [row(result(), rate="1")], [row(result(0.8), result(0.82), result(0.84), rate="1")]
    assert "standard errors" not in comparison_charts.metric_chart(one, "accuracy").title
    assert "standard errors" in comparison_charts.metric_chart(three, "accuracy").title


def test_fields_that_end_alike_keep_their_whole_names():
    both = Row("a", {"server.rate": "1", "algorithm.rate": "2"}, [], 1)
    assert [each.heading for each in columns([both])][1:3] == ["server.rate", "algorithm.rate"]


def test_a_swept_field_that_has_a_column_anyway_has_one():
    rows = [Row("a", {"rounds": str(rounds)}, [result(rounds=rounds)], 1) for rounds in (1, 1000)]
    assert [each.heading for each in columns(rows)].count("rounds") == 1
    assert "1 client," in describe_shared(columns([row(result(clients=1))]))


def test_rows_of_different_metrics_name_theirs():
    rows = [row(result()), row(result() | {"metrics": {"mse": 0.25, "loss": 0.25}}, name="b")]
    (measured,) = [each.cells for each in columns(rows) if each.heading == "test metric"]
    assert measured == ("accuracy 50.00", "mse 0.25")
    assert comparison_page.render_page(rows, COMMAND).count("<svg") == 2


def test_the_page_has_the_table_the_picture_the_command_and_loads_nothing():
    rows = [row(result(each), result(each + 0.02), epochs=str(at)) for each, at in ((0.5, 1), (0.6, 2), (0.7, 8))]
    page = comparison_page.render_page(rows, COMMAND)
    assert "52.00" not in page  # the mean is 51
    assert "51.00\u00a0±\u00a01.00" in page
    assert page.count("so they protect nobody") == 1
    assert "Content-Security-Policy" in page
    assert "http" not in page.replace("http-equiv", "")
    assert "<script" not in page
    assert COMMAND in page


def test_a_picture_draws_a_line_an_experiment_with_its_errors():
    rows = [row(result(0.5), result(0.7), name=name, epochs=at) for name in "ab" for at in ("1", "2", "16")]
    chart = comparison_charts.metric_chart(rows, "accuracy")
    assert [line.name for line in chart.curves] == ["a", "b"]
    assert chart.curves[0].points == ((1, 0.6), (2, 0.6), (16, 0.6))
    assert chart.curves[0].errors == pytest.approx((0.1, 0.1, 0.1))
    assert chart.log_x
    assert "a: 60.0\u202f% at 1" in describe(chart)
    assert "60.0\u202f% ± 10.0\u202f%" in numbers_table(chart)


def test_a_second_sweep_makes_more_lines_and_words_make_categories():
    rows = [row(result(), kind=kind, epochs=at) for kind in ("sgd", "adam") for at in ("1", "2")]
    chart = comparison_charts.metric_chart(rows, "accuracy")
    assert [line.name for line in chart.curves] == ["a, epochs 1", "a, epochs 2"]
    assert (chart.log_x, chart.x_names) == (False, ((0, "sgd"), (1, "adam")))


def test_what_diverged_is_not_drawn_and_said():
    lost = result() | {"metrics": {"mse": "nan"}}
    rows = [row(result() | {"metrics": {"mse": 0.5}}, epochs="1"), row(lost, epochs="2")]
    made = comparison_page.render_metric(rows, "mse", "a")
    assert "Not drawn, because the runs diverged: a, algorithm.epochs 2." in made


def test_without_a_sweep_each_experiment_is_a_row_of_the_chart():
    chart = comparison_charts.metric_chart([row(result(0.5)), row(result(0.75), name="<b>")], "accuracy")
    assert (chart.as_rows, chart.x_names) == (True, ((0, "a"), (1, "<b>")))
    assert chart.curves[0].points == ((0, 0.5), (1, 0.75))
    assert describe(chart).startswith("Dot chart of Accuracy after the last round")


def test_the_markdown_table_survives_bars_in_names_and_ends_with_its_command():
    text = comparison_page.render_markdown([row(result(), name="a|b")], COMMAND)
    heading, rule, first, *rest = text.splitlines()
    assert heading.startswith("| experiment | accuracy, % |")
    assert rule.startswith("| --- | ---: |")
    assert first.startswith("| a\\|b | 50.00 |")
    assert rest[-1] == f"`{COMMAND}`"


def test_before_the_first_result_there_is_a_page_too():
    assert "<h1>a</h1>" in comparison_page.render_page([row()], COMMAND)


def test_the_title_says_what_is_compared():
    def title(*rows: Row) -> str:
        return comparison_page.render_page(rows, COMMAND).split("<h1>")[1].split("</h1>")[0]

    assert title(row(name="a"), row(name="b"), row(name="c")) == "a, b and c compared"
    assert title(row(epochs="1"), row(epochs="2")) == "a by algorithm.epochs"
    assert title(*(row(name=name) for name in "abcde")) == "5 experiments compared"


def test_a_long_name_breaks_after_its_underscores_only():
    page = comparison_page.render_page([row(result(), name="fl_sgd_gaussian"), row(result(), name="b<c")], COMMAND)
    assert '<th scope="row"><span class="name">fl_<wbr>sgd_<wbr>gaussian</span></th>' in page
    assert '<th scope="row">b&lt;c</th>' in page
