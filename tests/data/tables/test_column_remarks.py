"""`discreet data check` remarks on dates, decimal commas, identifiers, spellings, copies and clients of one row."""

from pathlib import Path

import pytest

from discreet.data.tables.file_reader import open_csv
from discreet.data.tables.ranges import load_ranges
from discreet.data.tables.starter_ranges import starter_ranges, starter_toml
from discreet.data.tables.table_survey import Survey, survey_table


def survey_of(tmp_path: Path, column: list[str], clients: str = "ab", **ranges: object) -> Survey:
    rows = [f'{clients[row % len(clients)]},"{cell}",{row % 2},{row / 7}' for row, cell in enumerate(column)]
    (tmp_path / "t.csv").write_text("\n".join(["who,x,y,z", *rows]) + "\n")
    known = load_ranges({"y": {"values": [0, 1]}, "z": "ignore", **ranges}) if ranges else None
    return survey_table(open_csv(tmp_path / "t.csv"), client="who", label="y", ranges=known)


def notes_on(tmp_path: Path, column: list[str]) -> list[str]:
    survey = survey_of(tmp_path, column)
    return [*survey.remarks, *(note for note in survey.notes if "--write-ranges" not in note)]


@pytest.mark.parametrize(
    ("cells", "remark"),
    [
        ([f"2026-01-{day:02}" for day in range(1, 29)], "holds dates: give it { first = DATE, last = DATE } with"),
        ([f"{day}.3.2026" for day in range(1, 29)], "holds dates: write them as YYYY-MM-DD, then give it"),
        ([f"2026-01-{day:02}T10:15:00" for day in range(1, 29)], "holds dates"),
        (
            [f"{row},5" for row in range(20)],
            "numbers with a decimal comma, first in line 2: write them with a decimal point",
        ),
        ([f"1.{row:03},25" for row in range(20)], "decimal comma"),
        ([f"P{row:04}" for row in range(60)], "another value in every row, as an identifier has"),
        ([str(1000 + row) for row in range(60)], "another value in every row, as an identifier has"),
        ([*(["1"] * 20), "inf"], "is infinite in 1 row: replace that by the end of its public range"),
        (
            [*(f"word {row}" for row in range(60)), "word 1"],
            "is free text: { text_buckets = 64 } in the ranges",
        ),
        (["7"] * 20, "is constant here"),
        ([f"P{row % 60:04}" for row in range(180)], "probably names persons: it has 60 values of one word"),
        ([str(row % 200) for row in range(600)], "probably names persons: it has 200 whole numbers"),
        (["Yes", "no", "yes"] * 10, "has 'Yes' and 'yes', which differ only in case or blanks"),
        (
            ["1.5", "2.5", "3,5"] * 10,
            "has 20 numbers and 10 texts: 10 are numbers with a decimal comma, first in line 4",
        ),
    ],
)
def test_each_has_its_remark(cells: list[str], remark: str, tmp_path: Path) -> None:
    (note,) = [note for note in notes_on(tmp_path, cells) if "'x'" in note]
    assert remark in note


def survey_of_numbers(tmp_path: Path, name: str, numbers: list[int]) -> Survey:
    rows = [f"{'ab'[row % 2]},{number},{row % 2}" for row, number in enumerate(numbers)]
    (tmp_path / "t.csv").write_text("\n".join([f"who,{name},y", *rows]) + "\n")
    return survey_table(open_csv(tmp_path / "t.csv"), client="who", label="y")


@pytest.mark.parametrize("name", ["patient", "Patient_ID", "patientId", "customer number", "pid"])
def test_whole_numbers_under_a_name_for_persons_probably_name_persons(name: str, tmp_path: Path) -> None:
    survey = survey_of_numbers(tmp_path, name, [70_000 + 37 * (row % 80) for row in range(320)])
    (remark,) = survey.remarks
    assert f"{name!r} probably names persons: it has 80 whole numbers, in several rows each" in remark
    assert f"--unit person:{name}:ROWS" in remark
    assert "it probably names persons" in starter_toml(survey)
    assert starter_ranges(survey).columns[name] == "ignore"


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("age", [row % 100 for row in range(600)]),
        ("income", [20_000 + 100 * (row % 300) for row in range(900)]),
        ("humidity", [row % 101 for row in range(600)]),
        ("patient_weight_kg", [40 + row % 60 for row in range(240)]),
    ],
)
def test_whole_numbers_that_measure_something_name_nobody(name: str, numbers: list[int], tmp_path: Path) -> None:
    assert survey_of_numbers(tmp_path, name, numbers).remarks == ()


def test_a_label_with_decimal_commas_is_a_problem_and_its_starter_says_why(tmp_path: Path) -> None:
    rows = [f'a,{row},"{row},5"' for row in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["who,x,price", *rows]) + "\n")
    survey = survey_table(open_csv(tmp_path / "t.csv"), client="who", label="price")
    (problem,) = survey.problems
    assert problem.startswith("The label 'price' has numbers with a decimal comma, first in line 2: write them with a")
    line = next(line for line in starter_toml(survey).splitlines() if line.startswith("price"))
    assert "the label, which must have a range: numbers with a decimal comma" in line


@pytest.mark.parametrize("cells", [[f"{row / 3:.4f}" for row in range(60)], ["1", "2", "3"] * 20, ["no", "yes"] * 30])
def test_measurements_and_categories_need_none(cells: list[str], tmp_path: Path) -> None:
    assert notes_on(tmp_path, cells) == []


def test_clients_of_one_row_and_copies_are_counted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("who,x,y\na,1.5,0\na,1.5,0\na,2.5,1\nb,1.5,1\nc,2.5,0\n")
    notes = " ".join(survey_table(open_csv(tmp_path / "t.csv"), client="who", label="y").notes)
    assert "2 clients have one row only" in notes
    assert "1 row is a copy of another row" in notes


def test_a_column_of_persons_gets_the_promise_for_persons_before_text_buckets(tmp_path: Path) -> None:
    (remark,) = survey_of(tmp_path, [f"P{row % 60:04}" for row in range(180)]).remarks
    assert "leave it out of the inputs" in remark
    assert remark.index("--unit person:x:ROWS") < remark.index("text_buckets")


def test_a_few_decimal_commas_are_named_with_the_first_line(tmp_path: Path) -> None:
    cells = [f"{row / 3:.2f}" for row in range(98)]
    (problem,) = survey_of(tmp_path, [*cells[:70], "1,25", *cells[70:], "2,5"]).problems
    assert problem == (
        "Column 'x' has 98 numbers and 2 texts: 2 are numbers with a decimal comma, first in line 72; write a decimal "
        "point instead."
    )


def test_labels_that_differ_in_case_only_get_a_remark(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("who,x,y\na,1.5,Yes\na,2.5,yes\nb,1.25,no\nb,2.25,not  sure\nb,2,Not sure\n")
    first, second = survey_table(open_csv(tmp_path / "t.csv"), client="who", label="y").remarks
    assert "Column 'y' has 'Not sure' and 'not  sure', which differ only in case or blanks" in first
    assert "Column 'y' has 'Yes' and 'yes'" in second


def test_many_cells_outside_the_range_get_a_remark_and_few_do_not(tmp_path: Path) -> None:
    cells = [str(row) for row in range(100)]
    (remark,) = survey_of(tmp_path, cells, x={"min": 0, "max": 62}).remarks[:1]
    assert remark.startswith("37 of 100 cells of column 'x' lie outside its range")
    assert not any("outside" in each for each in survey_of(tmp_path, cells, x={"min": 0, "max": 97}).remarks)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ([f"{row},5" for row in range(60)], "numbers with a decimal comma: write them with a decimal point"),
        ([f"{row % 3},5" for row in range(60)], "numbers with a decimal comma: write them with a decimal point"),
        ([f"P{row % 60:04}" for row in range(180)], "it probably names persons"),
        ([f"word {row}" for row in range(60)], "free text"),
    ],
)
def test_the_starter_says_why_a_column_is_left_out(cells: list[str], reason: str, tmp_path: Path) -> None:
    survey = survey_of(tmp_path, cells)
    (line,) = [line for line in starter_toml(survey).splitlines() if line.startswith("x = ")]
    assert line.startswith(f'x = "ignore" # {reason}')
    assert starter_ranges(survey).columns["x"] == "ignore"
