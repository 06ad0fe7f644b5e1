"""A CSV file becomes clients: scaled by public ranges, with every fault named by its line and column."""

from pathlib import Path
from typing import Any

import pytest
import torch

from discreet.data.tables.file_reader import open_csv
from discreet.data.tables.table_task import TableTask, clients_from_csv
from discreet.data.tasks.any_task import AnyTask
from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput
from discreet.part import from_plain, to_plain
from discreet.paths import Paths

HEADER = "hospital,age,sex,readmitted\n"
RANGES: dict[str, Any] = {
    "age": {"min": 0, "max": 100},
    "sex": {"values": ["f", "m"]},
    "readmitted": {"values": ["no", "yes"]},
}


def table(tmp_path: Path, text: str, encoding: str = "utf-8") -> Path:
    path = tmp_path / "visits.csv"
    path.write_bytes(text.encode(encoding))
    return path


def load(path: Path, ranges: Any = RANGES, test_fraction: float = 0.0, **columns: str) -> Task:
    named: dict[str, Any] = {"client": "hospital", "label": "readmitted", **columns}
    return clients_from_csv(path, ranges=ranges, test_fraction=test_fraction, **named)


def test_numbers_are_scaled_and_categories_become_one_input_each(tmp_path: Path):
    task = load(table(tmp_path, HEADER + "B,50,f,no\nA,100,m,yes\nB,0,m,yes\n"))
    assert (task.client_names, task.train.sizes) == (("A", "B"), (1, 2))
    assert task.train.inputs.tolist() == [[1, 0, 1], [0, 1, 0], [-1, 0, 1]]
    assert task.train.targets.tolist() == [1, 0, 1]
    assert (task.kind, task.classes, task.name) == ("classification", 2, "visits")
    assert any("The ranges are public." in fact for fact in task.facts)


def test_values_outside_a_range_are_moved_to_its_end(tmp_path: Path):
    task = load(table(tmp_path, HEADER + "A,-5,f,no\nA,1e9,f,no\n"))
    assert task.train.inputs[:, 0].tolist() == [-1, 1]
    assert not any(digit in fact for fact in task.facts for digit in ("2 values", "1 value"))  # the count is private


@pytest.mark.parametrize("row", ["A,50,f", 'A,50,"f,no'], ids=["a missing cell", "an open quote"])
def test_a_file_with_a_malformed_row_is_closed_before_its_error_is_raised(
    row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = table(tmp_path, HEADER + row)
    chunks, opened, open_file = open_csv(path).chunks(), list[Any](), Path.open

    def open_and_note(*args: Any, **options: Any) -> Any:
        opened.append(open_file(*args, **options))
        return opened[-1]

    monkeypatch.setattr(Path, "open", open_and_note)
    with pytest.raises(InvalidInput):
        list(chunks)
    assert [file.closed for file in opened] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + HEADER + "A,50,f,no\n",
        HEADER.replace("\n", "\r\n") + "A,50,f,no\r\n\r\n",
        HEADER + '"A", 50 ,"f","no"',
        HEADER.replace("\n", "\r") + "A,50,f,no\r",
        HEADER.replace(",", ";") + "A;50;f;no\n",
        HEADER.replace(",", "\t") + "\n\nA\t50\tf\tno\n",
    ],
    ids=["byte order mark", "windows", "quotes", "old mac", "semicolons", "tabs and empty lines"],
)
def test_dialects_of_csv_read_alike(text: str, tmp_path: Path):
    task = load(table(tmp_path, text))
    assert task.train.inputs.tolist() == [[0, 1, 0]]
    assert task.client_names == ("A",)


def test_a_quoted_cell_may_hold_the_delimiter_and_line_ends(tmp_path: Path):
    task = load(table(tmp_path, HEADER + '"St. Mary, north\nwing",50,f,no\n'))
    assert task.client_names == ("St. Mary, north\nwing",)


def test_a_label_with_a_range_makes_a_regression(tmp_path: Path):
    ranges = {**RANGES, "readmitted": {"min": 0, "max": 10}}
    task = load(table(tmp_path, HEADER + "A,50,f,2.5\n"), ranges)
    assert (task.kind, task.classes, task.train.targets.tolist()) == ("regression", 1, [-0.5])
    assert any("scaled from [0, 10] to [-1, 1]" in fact for fact in task.facts)


def test_classes_may_be_numbers_however_they_are_written(tmp_path: Path):
    ranges = {**RANGES, "readmitted": {"values": [0, 1, 2]}}
    task = load(table(tmp_path, HEADER + "A,50,f,2\nA,50,f,1.0\n"), ranges)
    assert task.train.targets.tolist() == [2, 1]


def test_columns_may_be_ignored_whatever_they_hold(tmp_path: Path):
    task = load(table(tmp_path, HEADER + "A,,f,no\n"), {**RANGES, "age": "ignore"})
    assert task.train.inputs.tolist() == [[1, 0]]


def test_each_client_keeps_its_share_for_evaluation_and_one_example_to_train_on(tmp_path: Path):
    rows = "".join(f"A,{age},f,no\n" for age in range(10)) + "B,99,f,no\n"
    task = load(table(tmp_path, HEADER + rows), test_fraction=0.25)
    assert (task.train.sizes, len(task.test_inputs)) == ((8, 1), 2)
    both = torch.cat([task.train.inputs, task.test_inputs])[:, 0]
    assert sorted(both.tolist()) == pytest.approx([age / 50 - 1 for age in [*range(10), 99]])
    assert any("held out" in fact for fact in task.facts)


def test_ranges_come_from_a_file_beside_the_data(tmp_path: Path):
    table(tmp_path, HEADER + "A,50,f,no\n")
    (tmp_path / "ranges.toml").write_text(
        '[columns]\nage = { min = 0, max = 100 }\nsex = { values = ["f", "m"] }\nreadmitted.values = ["no", "yes"]\n'
    )
    made = from_plain(
        AnyTask,
        {"kind": "csv", "path": "visits.csv", "client": "hospital", "label": "readmitted", "ranges": "ranges.toml"},
    )
    assert from_plain(AnyTask, to_plain(made)) == made
    task = made.load(torch.Generator().manual_seed(0), Paths.default(tmp_path))
    assert task.train.inputs.tolist() == [[0, 1, 0]]


def test_in_how_many_clients_an_example_lies_is_declared(tmp_path: Path):
    path = table(tmp_path, HEADER + "A,50,f,no\nB,50,f,no\n")
    named: dict[str, Any] = {"path": str(path), "client": "hospital", "label": "readmitted", "ranges": RANGES}
    for kind in ("csv", "parquet"):
        made = from_plain(AnyTask, {"kind": kind, **named, "max_multiplicity": 2})
        assert from_plain(AnyTask, to_plain(made)) == made
        with pytest.raises(InvalidInput, match="max_multiplicity: must be at least 1"):
            from_plain(AnyTask, {"kind": kind, **named, "max_multiplicity": 0})
    task = clients_from_csv(path, client="hospital", label="readmitted", ranges=RANGES, max_multiplicity=2)
    assert task.train.population.max_multiplicity == 2


def test_ranges_taken_from_the_data_are_told_as_not_covered(tmp_path: Path):
    task = load(table(tmp_path, HEADER + "A,50,f,no\n"), {"columns": RANGES, "taken_from_data": True})
    assert "taken from the data" in task.not_covered[0]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("A,,f,no", "Line 3, column 'age': the value is missing"),
        ("A,NA,f,no", "Line 3, column 'age': the value is missing"),
        ("A,nan,f,no", "Line 3, column 'age': the value is missing"),
        ("A,inf,f,no", "Line 3, column 'age' must be a number"),
        ("A,old,f,no", "Line 3, column 'age' must be a number with a decimal point, and got 'old'"),
        ('A,"3,5",f,no', "got '3,5'"),
        ("A,1_0,f,no", "got '1_0'"),
        ("A,50,x,no", "column 'sex' must be one of the listed values (f, m), and got 'x'"),
        ("A,50,,no", "column 'sex': the value is missing"),
        ("A,50,f,maybe", "column 'readmitted' must be one of the listed values"),
        (",50,f,no", "column 'hospital' must name a client, and got nothing"),
        ("NA,50,f,no", "column 'hospital' must name a client, and got 'NA'"),
        ("nan,50,f,no", "column 'hospital' must name a client, and got 'nan'"),
        ("A,50,f", "Line 3 of .* has 3 cells, and the header names 4"),
        ('A,50,"f,no', "is not CSV"),
    ],
)
def test_a_bad_row_is_named_by_line_and_column(row: str, sentence: str, tmp_path: Path):
    with pytest.raises(InvalidInput, match=sentence.replace("(", r"\(").replace(")", r"\)")):
        load(table(tmp_path, f"{HEADER}A,50,f,no\n{row}\n"))


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ("", "is empty"),
        (HEADER, "has no rows"),
        ("a,a\n1,2\n", "twice"),
        ("a,,b\n1,2,3\n", "Column 2 .* has no name"),
        ("clinic,age,sex,readmitted\nA,1,f,no\n", "has no column 'hospital' for the client"),
        ("hospital,age,sex\nA,1,f\n", "has no column 'readmitted' for the label"),
        ("hospital,age,sex,readmitted,x\nA,1,f,no,1\n", "Column 'x' has no public range"),
        ("hospital,age,readmitted\nA,1,no\n", "ranges name column 'sex', which"),
    ],
)
def test_a_bad_header_is_told(header: str, sentence: str, tmp_path: Path):
    with pytest.raises(InvalidInput, match=sentence):
        load(table(tmp_path, header))


@pytest.mark.parametrize(
    ("ranges", "sentence"),
    [
        ({**RANGES, "age": {"min": 5, "max": 5}}, "column 'age': A range needs min below max"),
        ({**RANGES, "age": {"min": 5}}, "column 'age' must be"),
        ({**RANGES, "age": {"min": float("nan"), "max": 5}}, "column 'age': Range: min"),
        ({**RANGES, "age": {"min": "0", "max": 5}}, "column 'age': Range: min"),
        ({**RANGES, "age": 3}, "column 'age' must be"),
        ({**RANGES, "sex": {"values": []}}, "column 'sex': Values must be listed"),
        ({**RANGES, "sex": {"values": ["f", "f"]}}, "column 'sex': Values must be listed"),
        ({**RANGES, "readmitted": "ignore"}, "label 'readmitted' needs a public range"),
        ({**RANGES, "readmitted": {"values": ["no"]}}, "at least two classes"),
        ({**RANGES, "age": "ignore", "sex": "ignore"}, "there are no inputs"),
        ("none.toml", "There is no file none.toml"),
    ],
)
def test_bad_ranges_are_told_by_column(ranges: Any, sentence: str, tmp_path: Path):
    with pytest.raises(InvalidInput, match=sentence):
        load(table(tmp_path, HEADER + "A,50,f,no\n"), ranges)


@pytest.mark.parametrize("text", ["age = {min = 0}", "[columns", "columns = 3"])
def test_a_bad_ranges_file_is_told(text: str, tmp_path: Path):
    (tmp_path / "ranges.toml").write_text(text)
    with pytest.raises(InvalidInput, match=r"ranges\.toml"):
        load(table(tmp_path, HEADER + "A,50,f,no\n"), tmp_path / "ranges.toml")


def test_files_that_are_no_table_are_told(tmp_path: Path):
    with pytest.raises(InvalidInput, match="There is no file"):
        load(tmp_path / "none.csv")
    with pytest.raises(InvalidInput, match="not UTF-8"):
        load(table(tmp_path, HEADER + "Köln,50,f,no\n", encoding="latin-1"))
    with pytest.raises(InvalidInput, match="both the client and the label"):
        load(table(tmp_path, HEADER), client="age", label="age")
    with pytest.raises(InvalidInput, match="test_fraction: must be at least 0 and below 1"):
        TableTask(kind="csv", path="x", client="a", label="b", ranges="r", test_fraction=1)
