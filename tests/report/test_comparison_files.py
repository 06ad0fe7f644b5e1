"""A comparison for a paper: an escaped LaTeX table, a CSV with all digits, and charts that say what is promised."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import InvalidInput
from discreet.report import comparison_charts, comparison_files, comparison_page
from discreet.report.comparison_columns import columns, narrow_columns
from discreet.report.comparison_promises import DIFFERENT, NO_PROMISE, describe_promises
from discreet.report.comparison_rows import Row, notes
from discreet.report.latex_table import escape, render_table
from tests.report.test_comparison_page import COMMAND, OPEN, result, row

CLIENT = {"unit": "client", "against": "public", "epsilon": 7.99, "promised_epsilon": 8.0, "delta": 1e-2}


def chosen_row(*rates: str, name: str = "a", **other: Any) -> Row:
    results = [result(0.5 + place / 10, validation={"accuracy": 0.5}, **other) for place in range(len(rates))]
    return Row(name, {}, results, len(rates), {"algorithm.learning_rate": list(rates)}, tried=4)


def test_latex_has_rules_means_errors_and_units_and_escapes_what_latex_reads_as_a_command():
    rows = [row(result(0.80), result(0.82), result(0.84), name="a_b & 50%"), row(result(**OPEN), name="open")]
    text = comparison_files.render_latex(rows, COMMAND, "methods")
    assert text.count("\\toprule") == text.count("\\midrule") == text.count("\\bottomrule") == 1
    assert r"a\_b \& 50\% & 82.00 $\pm$ 1.15 & " in text
    assert r"accuracy, \%" in text
    assert r"$\infty$" in text
    assert "\\label{tab:methods}" in text
    assert text.startswith("% Needs \\usepackage{booktabs}.\n% Made by: discreet compare a.toml b.toml\n")
    assert "protect nobody" in text
    table = text.split("\\toprule")[1].split("\\bottomrule")[0].replace("\\&", "")
    lines = [line for line in table.splitlines() if "&" in line]
    assert len(lines) == 3
    assert len({line.count("&") for line in lines}) == 1


def test_every_special_character_is_escaped():
    assert escape(r"\&%$#_{}~^<>|") == (
        r"\textbackslash{}\&\%\$\#\_\{\}\textasciitilde{}\textasciicircum{}\textless{}\textgreater{}\textbar{}"
    )
    assert escape("by --choose, ---, 1–2 and a-b") == r"by -{}-choose, -{}-{}-, 1\textendash{}2 and a-b"
    table = render_table(["one two three four"], [["1"]], is_text=[False], caption="c", label="l", comment=["a\nb"])
    assert "% a b\n" in table
    assert r"\shortstack[r]{one two \\ three four} \\" in table


def test_csv_has_every_digit_and_what_was_chosen():
    text = comparison_files.render_csv([chosen_row("1", "2"), row(result(1 / 3, **OPEN), name="b")])
    first, second = csv.DictReader(io.StringIO(text))
    assert (first["experiment"], first["chosen algorithm.learning_rate"], first["runs"]) == ("a", "1 2", "2")
    assert float(second["mean"]) == 1 / 3
    assert (second["epsilon"], second["unit"], second["unit_of_metric"]) == ("", "", "share")
    assert float(first["standard_error"]) == pytest.approx(0.05)


def test_a_chosen_setting_has_its_own_column_and_a_note_that_test_data_chose_nothing():
    rows = [chosen_row("1", "1", "2"), chosen_row("4", "4", "4", name="b")]
    by_heading = {column.heading: column.cells for column in columns(rows)}
    assert by_heading["chosen learning_rate"] == ("1 ×2, 2 ×1", "4")
    assert by_heading["validation accuracy, %"] == ("50.00", "50.00")
    assert "test accuracy, %" in by_heading
    said = " ".join(notes(rows))
    assert "chosen from 4 settings by the accuracy on its validation data; the test data chose nothing" in said
    assert "--choose" not in said
    assert "by --choose" in " ".join(notes([row(result(validation={"accuracy": 0.5}))]))
    assert rows[0].data()["chosen"] == {"algorithm.learning_rate": ["1", "1", "2"]}


def test_a_narrow_table_names_each_promise_by_a_letter():
    shown, sentences = narrow_columns([row(result()), row(result(**CLIENT)), row(result(**OPEN))])
    assert next(column.cells for column in shown if column.heading == "promise") == ("a", "b", "–")
    assert {"δ", "protects", "from"}.isdisjoint(column.heading for column in shown)
    assert "Promise b: ε at δ = 0.01 for one client against the public." in sentences
    same, sentences = narrow_columns([row(result()), row(result(0.7))])
    assert "promise" not in {column.heading for column in same}
    assert sentences[0].startswith("In all rows: ")


def test_rows_of_different_promises_have_different_symbols_and_a_sentence():
    rows = [row(result(), name="a"), row(result(**CLIENT), name="b"), row(result(**OPEN), name="c")]
    chart = comparison_charts.metric_chart(rows, "accuracy")
    assert [curve.name for curve in chart.curves] == [
        "ε ≤ 2, δ = 1e-5 for one example against the server",
        "ε ≤ 8, δ = 0.01 for one client against the public",
        NO_PROMISE,
    ]
    assert DIFFERENT in comparison_charts.chart_note(rows)
    assert DIFFERENT in comparison_page.render_page(rows, COMMAND)
    same = [row(result(), name="a"), row(result(epsilon=1.9), name="b")]
    assert comparison_charts.metric_chart(same[:1], "accuracy").curves[0].name == "accuracy"
    assert DIFFERENT in comparison_charts.chart_note(same)
    promised = [row(result(epsilon=epsilon, promised_epsilon=2.0), name="a") for epsilon in (1.9, 1.99)]
    assert comparison_charts.chart_note(promised) == ""


def test_a_swept_promise_is_on_the_axis_and_the_rest_of_it_in_the_legend():
    def swept(name: str, epsilon: str, **other: Any) -> Row:
        return Row(name, {"privacy.epsilon": epsilon}, [result(epsilon=float(epsilon), **other)], 1)

    one = [swept("a", "1"), swept("a", "2")]
    assert comparison_charts.chart_note(one) == ""
    both = [*one, swept("b", "1", unit="client"), swept("b", "2", unit="client")]
    assert [curve.name for curve in comparison_charts.metric_chart(both, "accuracy").curves] == [
        "a: δ = 1e-5 for one example against the server",
        "b: δ = 1e-5 for one client against the server",
    ]
    by_rounds = [Row("a", {"rounds": rounds}, [result(epsilon=float(rounds))], 1) for rounds in ("1", "3")]
    assert describe_promises(by_rounds) == "ε from 1 to 3, δ = 1e-5 for one example against the server"
    assert DIFFERENT in comparison_charts.chart_note(by_rounds)


@pytest.mark.parametrize("ending", ["svg", "pdf", "png", "html"])
def test_the_picture_is_drawn_in_the_format_of_its_name(tmp_path: Path, ending: str):
    rows = [row(result(), name=f"method {place}") for place in range(10)]
    (path,) = comparison_files.write_files(rows, COMMAND, None, None, tmp_path / f"methods.{ending}")
    start = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG", "html": b"<!DOCTYPE"}[ending]
    assert path.read_bytes().startswith(start)
    again = path.read_bytes()
    comparison_files.write_files(rows, COMMAND, None, None, path)
    assert path.read_bytes() == again


def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path):
    with pytest.raises(InvalidInput, match=r"The file of --latex must end in \.tex, and got 'table\.txt'"):
        comparison_files.check_paths(tmp_path / "table.txt", None, None)
    with pytest.raises(InvalidInput, match="there is no folder"):
        comparison_files.check_paths(None, tmp_path / "none" / "table.csv", None)
    with pytest.raises(InvalidInput, match=r"must end in \.png, \.svg, \.pdf, \.html"):
        comparison_files.check_paths(None, None, tmp_path / "table.jpg")


def test_a_cell_of_a_narrow_page_has_its_heading_beside_it():
    page = comparison_page.render_page([row(result(), name="a"), row(result(0.7), name="b")], COMMAND)
    assert '<table class="numbers stack">' in page
    assert 'data-heading="accuracy, %"' in page
    assert '<pre tabindex="0" role="region" aria-label="Command" class="wrap">' in page
