"""`discreet data check` tells the owner whether a table fits, and never writes over a file."""

import csv
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.data.tables.table_task import clients_from_csv
from tests.cli.conftest import Discreet

ROWS = [
    "hospital,age,sex,note,same,readmitted",
    *(f'{"ABC"[n % 3]},{20 + n},{"fm"[n % 2]},"told, ""{n}""",1,{["no", "yes"][n % 2]}' for n in range(60)),
    "D,95,f,alone,1,no",
]
COLUMNS = "--client hospital --label readmitted"
RANGES = """[columns]
age = { min = 0, max = 90 }
sex = { values = ["f", "m"] }
note = "ignore"
same = "ignore"
readmitted = { values = ["no", "yes"] }
"""
REMEDY = 'Fill missing cells with a public constant, drop their rows, or set the column to "ignore".'


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(ROWS))
    return path


def test_one_client_is_counted_in_the_singular(tmp_path: Path, discreet: Discreet):
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(["hospital,age,readmitted", *(f"A,{20 + n},{n % 2}" for n in range(60))]))
    assert "60 examples of 1 client Examples per client" in " ".join(
        discreet(f"data check {COLUMNS}", path).out.split()
    )


def replace_row(table: Path, line: int, row: str) -> Path:
    rows = table.read_text().splitlines()
    table.write_text("\n".join([*rows[:line], row, *rows[line + 1 :]]))
    return table


def test_a_table_that_can_be_read_is_described(table: Path, discreet: Discreet):
    ran = discreet(f"data check {COLUMNS} --json", table)
    assert (ran.code, ran.err) == (0, "")
    found = ran.json
    assert (found["readable"], found["examples"], found["problems"]) == (True, 61, [])
    assert (found["fits"], len(found["remarks"])) == (False, 2)  # as the page says
    assert found["clients"] == {"count": 4, "smallest": 1, "median": 20, "largest": 20}
    assert [(column["name"], column["type"]) for column in found["columns"]] == [
        ("age", "number"),
        ("sex", "category"),
        ("note", "text"),
        ("same", "number"),
    ]
    assert (found["columns"][0]["min"], found["columns"][0]["max"]) == (20, 95)
    assert found["columns"][3]["constant"] is True
    assert found["label"]["counts"] == {"no": 31, "yes": 30}


def test_the_page_says_whose_eyes_it_is_for(table: Path, discreet: Discreet):
    text = " ".join(discreet(f"data check {COLUMNS}", table).out.split())
    assert "only the data owner may see it" in text
    assert "61 examples of 4 clients" in text
    assert "1 at least, median 20, 20 at most" in text
    assert "Labels: no (31), yes (30)" in text
    assert "'same' is constant" in text
    assert "'note' is free text" in text
    assert "--write-ranges" in text
    assert text.endswith("The table can be read. 2 remarks above ask for a remedy.")


def test_ranges_are_held_against_the_data(table: Path, tmp_path: Path, discreet: Discreet):
    ranges = tmp_path / "ranges.toml"
    ranges.write_text(RANGES)
    found = discreet(f"data check {COLUMNS} --json --ranges {ranges}", table).json
    assert (found["readable"], found["columns"][0]["outside"]) == (True, 1)
    ranges.write_text(RANGES.replace('"f", "m"', '"f"').replace('note = "ignore"\n', ""))
    ran = discreet(f"data check {COLUMNS} --json --ranges {ranges}", table)
    assert (ran.code, ran.json["readable"]) == (2, False)
    first, second = ran.json["problems"]
    assert "Column 'note' has no public range" in first
    assert "Line 3, column 'sex' must be one of the listed values (f), and got 'm'" in second
    assert "30 such cells" in second


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("A,,f,x,1,no", "Column 'age' is missing in 1 row, first in line 5."),
        ("A,50,f,x,1,", "Column 'readmitted' is missing in 1 row"),
        (",50,f,x,1,no", "Column 'hospital' names no client in 1 row, first in line 5."),
        ("NaN,50,f,x,1,no", "Column 'hospital' names no client in 1 row, first in line 5."),
        ("A,50,f,x,1", "Line 5 of"),
        ('A,50,f,"x,1,no', "is not CSV"),
    ],
)
def test_what_is_wrong_is_listed_and_the_exit_code_says_so(row: str, problem: str, table: Path, discreet: Discreet):
    replace_row(table, 4, row)
    ran = discreet(f"data check {COLUMNS} --json", table)
    assert (ran.code, ran.err) == (2, "")
    assert any(problem in each for each in ran.json["problems"])
    plainly = discreet(f"data check {COLUMNS}", table)
    assert plainly.code == 2
    assert "The table does not fit: 1 problem." in plainly.out


def test_missing_cells_have_their_remedy_with_and_without_ranges(table: Path, tmp_path: Path, discreet: Discreet):
    ranges = tmp_path / "ranges.toml"
    ranges.write_text(RANGES)
    replace_row(table, 4, "A,,f,x,1,no")
    for option in ("", f"--ranges {ranges}"):
        (problem,) = discreet(f"data check {COLUMNS} --json {option}", table).json["problems"]
        assert REMEDY in problem
    replace_row(table, 4, "A,50,f,x,1,")  # a label can't be ignored
    (problem,) = discreet(f"data check {COLUMNS} --json", table).json["problems"]
    assert problem.endswith("Drop these rows.")


def test_who_writes_ranges_is_not_advised_to_write_them(table: Path, tmp_path: Path, discreet: Discreet):
    advice = "--write-ranges FILE writes a starter file"
    assert advice in discreet(f"data check {COLUMNS} --json", table).out
    assert advice not in discreet(f"data check {COLUMNS} --json --write-ranges {tmp_path / 'new.toml'}", table).out


def as_parquet(table: Path, **columns: list[Any]) -> Path:
    rows = list(csv.reader(table.read_text().splitlines()))
    stored = dict(zip(rows[0], map(list, zip(*rows[1:], strict=True)), strict=True))
    stored |= {"age": list(map(int, stored["age"])), "same": [1] * len(stored["same"])}
    path = table.with_suffix(".parquet")
    pq.write_table(pa.table(stored | columns), path)
    return path


def test_a_parquet_file_is_described_as_the_same_rows_of_csv(table: Path, tmp_path: Path, discreet: Discreet):
    stored = as_parquet(table)
    ours = discreet(f"data check {COLUMNS} --write-ranges {tmp_path / 'ours.toml'} --json", stored)
    theirs = discreet(f"data check {COLUMNS} --write-ranges {tmp_path / 'theirs.toml'} --json", table)
    assert (ours.code, theirs.code) == (0, 0)
    apart = {"file": "", "ranges_written": ""}
    assert ours.json | apart == theirs.json | apart
    assert (tmp_path / "ours.toml").read_text() == (tmp_path / "theirs.toml").read_text()


def test_what_is_wrong_with_a_parquet_file_is_named_by_row(table: Path, discreet: Discreet):
    ran = discreet(f"data check {COLUMNS} --json", as_parquet(table, age=[*range(60), None]))
    assert (ran.code, ran.json["problems"]) == (2, [f"Column 'age' is missing in 1 row, first in row 61. {REMEDY}"])


def test_one_label_for_all_teaches_nothing(tmp_path: Path, discreet: Discreet):
    path = tmp_path / "one.csv"
    path.write_text("c,x,y\na,1,0\na,2,0\n")
    ran = discreet("data check --client c --label y --json", path)
    assert ran.code == 2
    assert "nothing to learn" in ran.json["problems"][0]


def test_a_starter_for_the_ranges_reads_back_and_says_where_its_numbers_come_from(
    table: Path, tmp_path: Path, discreet: Discreet
):
    ranges = tmp_path / "ranges.toml"
    text = " ".join(discreet(f"data check {COLUMNS} --write-ranges {ranges}", table).out.split())
    assert "Replace them by publicly known bounds" in text
    written = ranges.read_text()
    assert "copied from the data" in written
    assert "taken_from_data = true" in written
    task = clients_from_csv(table, client="hospital", label="readmitted", ranges=ranges)
    assert task.input_shape == (4,)
    assert "taken from the data" in task.not_covered[0]
    assert discreet(f"data check {COLUMNS} --ranges {ranges}", table).code == 0


def test_a_label_of_numbers_is_classes_when_they_are_few_and_whole(tmp_path: Path, discreet: Discreet):
    path = tmp_path / "numbers.csv"
    for name, label, expected in (("few", "2", "values = [1, 2]"), ("fractions", "2.5", "min = 1.0, max = 2.5")):
        path.write_text(f"c,x,y\na,1,1\nb,2,{label}\n")
        discreet(f"data check --client c --label y --write-ranges {tmp_path / name}", path)
        assert expected in (tmp_path / name).read_text()


def test_an_existing_file_is_never_written_over(table: Path, tmp_path: Path, discreet: Discreet):
    ranges = tmp_path / "ranges.toml"
    ranges.write_text("mine")
    ran = discreet(f"data check {COLUMNS} --write-ranges {ranges}", table)
    assert (ran.code, ran.out, ranges.read_text()) == (2, "", "mine")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--client hospital", "Missing option '--label'"),
        ("--label age", "Missing option '--client'"),
        ("--client clinic --label age", "has no column 'clinic'"),
        ("--client age --label age", "can't be both"),
        (f"{COLUMNS} --ranges none.toml", "There is no file none.toml"),
    ],
)
def test_a_wrong_question_is_one_sentence(options: str, sentence: str, table: Path, discreet: Discreet):
    ran = discreet(f"data check {options}", table)
    assert (ran.code, ran.out) == (2, "")
    assert sentence in ran.err
    assert ran.err.count("\n") == 1


def test_a_missing_file_is_one_sentence(tmp_path: Path, discreet: Discreet):
    ran = discreet(f"data check {COLUMNS}", tmp_path / "none.csv")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "There is no file" in ran.err


def test_how_unlike_clients_are_is_told_when_asked_for_and_marked_as_uncovered(table: Path, discreet: Discreet):
    """Hospitals A, B and C have 10 rows of each label. D has one row, so its label alone decides its distance."""
    found = discreet(f"data check {COLUMNS} --non-iid --json", table).json["non_iid"]
    assert (found["exact"], found["iterations"]) == (False, 500)
    assert found["gamma"] == pytest.approx(found["pooled_loss"] - found["own_loss"])
    assert found["share"] == pytest.approx(found["gamma"] / found["pooled_loss"])
    pooled = 31 / 61
    assert found["label_distance"] == pytest.approx((3 * (pooled - 0.5) + (1 - pooled)) / 4)
    assert "not covered by any guarantee" in found["note"]
    text = " ".join(discreet(f"data check {COLUMNS} --non-iid", table).out.split())
    assert "an estimate, by 500 iterations of gradient descent" in text
    assert "by chance" in text
    assert "not covered by any guarantee" in text


def test_a_number_to_predict_gives_gamma_exactly_and_no_distance_of_labels(tmp_path: Path, discreet: Discreet):
    """Two clients with labels at opposite ends of the range, and an uninformative input: Γ = F* = 1."""
    path = tmp_path / "ends.csv"
    path.write_text("who,seen,paid\nA,1,0.5\nA,2,0.5\nB,1,9.5\nB,2,9.5\n")
    ranges = tmp_path / "ranges.toml"
    ranges.write_text("[columns]\nseen = { min = 1, max = 2 }\npaid = { min = 0.5, max = 9.5 }\n")
    ran = discreet(f"data check --client who --label paid --ranges {ranges} --non-iid --json", path)
    found = ran.json["non_iid"]
    assert (found["exact"], found["label_distance"]) == (True, None)
    assert (found["gamma"], found["pooled_loss"], found["share"]) == pytest.approx((1, 1, 1))
    assert "(exact)" in discreet(f"data check --client who --label paid --ranges {ranges} --non-iid", path).out


def test_a_table_that_does_not_fit_has_no_clients_to_compare(table: Path, discreet: Discreet):
    replace_row(table, 4, "A,,f,x,1,no")
    assert discreet(f"data check {COLUMNS} --non-iid --json", table).json["non_iid"] is None
    assert "non_iid" not in discreet(f"data check {COLUMNS} --json", table).json


def test_a_table_fits_once_its_ranges_have_answered_every_remark(tmp_path: Path, discreet: Discreet):
    path, ranges = tmp_path / "visits.csv", tmp_path / "ranges.toml"
    path.write_text("who,value,day,y\n" + "".join(f"a,{n % 5}.5,2026-01-{n + 1:02},{n % 2}\n" for n in range(28)))
    asked = discreet("data check --client who --label y", path).out.splitlines()
    assert asked[-1] == "The table can be read. 1 remark above asks for a remedy."
    ranges.write_text(
        "[columns]\nvalue = { min = 0, max = 9 }\ny = { values = [0, 1] }\n"
        'day = { first = "2020-01-01", last = "2030-01-01" }\n'
    )
    answered = discreet(f"data check --client who --label y --ranges {ranges}", path).out.splitlines()
    assert answered[-1] == "The table fits."
    assert discreet("data check --client who --label y --json", path).json["fits"] is False
    assert discreet(f"data check --client who --label y --ranges {ranges} --json", path).json["fits"] is True


def test_a_row_without_a_client_is_no_example_and_its_label_does_not_count(table: Path, discreet: Discreet):
    replace_row(table, 1, ",20,f,x,1,no")
    found = discreet(f"data check {COLUMNS} --json", table).json
    assert found["examples"] == sum(found["label"]["counts"].values()) == 60


@pytest.mark.parametrize("day", ["Jan-1985", "Jan-85", "3 Jan 1985", "January 3, 1985"])
def test_dates_with_the_name_of_a_month_are_dates_and_name_no_persons(tmp_path: Path, discreet: Discreet, day: str):
    path, ranges = tmp_path / "loans.csv", tmp_path / "ranges.toml"
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    days = [day.replace("Jan", months[n % 12]).replace("85", str(10 + n // 12)) for n in range(100)]
    path.write_text("who,opened,y\n" + "".join(f'a,"{days[n % 100]}",{n % 2}\n' for n in range(300)))
    (remark,) = discreet(f"data check --client who --label y --write-ranges {ranges} --json", path).json["remarks"]
    assert "'opened' holds dates: write them as YYYY-MM-DD" in remark
    assert 'opened = "ignore" # dates: write them as YYYY-MM-DD, then give { first, last }' in ranges.read_text()
