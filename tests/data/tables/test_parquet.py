"""A Parquet file becomes the same clients as the CSV file of the same rows, and its faults are named by row."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import discreet
from discreet.data.tables import file_reader
from discreet.data.tables.table_task import TableTask, clients_from_csv, clients_from_parquet
from discreet.data.tasks.any_task import AnyTask
from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput
from discreet.part import from_plain, to_plain
from discreet.paths import Paths

RANGES: dict[str, Any] = {
    "age": {"min": 0, "max": 100},
    "sex": {"values": ["f", "m"]},
    "ward": {"values": [1, 2, 3]},
    "readmitted": {"values": ["no", "yes"]},
}
COLUMNS: dict[str, Any] = {
    "hospital": ["B", "A", "B"],
    "age": [50, 100, 0],
    "sex": ["f", " m", "m"],
    "ward": [3, 1, 2],
    "readmitted": ["no", "yes", "yes"],
}


def table(tmp_path: Path, **columns: Any) -> Path:
    path = tmp_path / "visits.parquet"
    pq.write_table(pa.table({**COLUMNS, **columns}), path)
    return path


def load(path: Path, ranges: Any = RANGES, test_fraction: float = 0.0) -> Task:
    return clients_from_parquet(path, client="hospital", label="readmitted", ranges=ranges, test_fraction=test_fraction)


def test_numbers_are_scaled_and_categories_become_one_input_each(tmp_path: Path):
    task = load(table(tmp_path))
    assert (task.client_names, task.train.sizes, task.name) == (("A", "B"), (1, 2), "visits")
    assert task.train.inputs.tolist() == [[1, 0, 1, 1, 0, 0], [0, 1, 0, 0, 0, 1], [-1, 0, 1, 0, 1, 0]]
    assert task.train.targets.tolist() == [1, 0, 1]
    assert any("The ranges are public." in fact for fact in task.facts)


@pytest.mark.parametrize(
    "columns",
    [
        {"age": pa.array([50, 100, 0], pa.uint8())},
        {"age": pa.array([50.0, 100.0, 0.0], pa.float32())},
        {"age": pa.array(["50", "100", "0"])},
        {"age": [50, 1000, -7]},
        {"sex": pa.array(["f", "m", "m"]).dictionary_encode()},
        {"sex": pa.array([b"f", b"m", b"m"])},
        {"ward": [3.0, 1.0, 2.0]},
        {"ward": ["3", "1.0", "2"]},
    ],
    ids=["bytes", "floats", "texts", "outside", "dictionary", "binary", "float classes", "text classes"],
)
def test_a_column_reads_alike_however_it_is_stored(columns: dict[str, Any], tmp_path: Path):
    assert torch.equal(load(table(tmp_path, **columns)).train.inputs, load(table(tmp_path)).train.inputs)


def test_true_and_false_are_values(tmp_path: Path):
    path = table(tmp_path, sex=[True, False, False])
    assert torch.equal(
        load(path, {**RANGES, "sex": {"values": [True, False]}}).train.inputs, load(table(tmp_path)).train.inputs
    )


def test_clients_may_be_named_by_numbers(tmp_path: Path):
    assert load(table(tmp_path, hospital=[20, 3, 20])).client_names == ("20", "3")


def test_a_label_with_a_range_makes_a_regression(tmp_path: Path):
    task = load(table(tmp_path, readmitted=[2.5, 10, 0]), {**RANGES, "readmitted": {"min": 0, "max": 10}})
    assert (task.kind, task.train.targets.tolist()) == ("regression", [1.0, -0.5, -1.0])


def test_it_gives_what_the_same_rows_give_as_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(file_reader, "ROWS", 64)  # several chunks
    generator = np.random.default_rng(0)
    columns = {
        "hospital": [f"h{n}" for n in generator.integers(0, 9, 500)],
        "age": generator.normal(50, 30, 500),
        "sex": generator.choice(["f", "m"], 500),
        "ward": generator.integers(1, 4, 500),
        "readmitted": generator.choice(["no", "yes"], 500),
    }
    path = table(tmp_path, **columns)
    rows = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    (tmp_path / "visits.csv").write_text("\n".join([",".join(columns), *rows]))
    ours = load(path, test_fraction=0.3)
    theirs = clients_from_csv(
        tmp_path / "visits.csv", client="hospital", label="readmitted", ranges=RANGES, test_fraction=0.3
    )
    assert (ours.client_names, ours.train.sizes, ours.facts) == (theirs.client_names, theirs.train.sizes, theirs.facts)
    assert torch.equal(ours.train.inputs, theirs.train.inputs)
    assert torch.equal(ours.test_targets, theirs.test_targets)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"age": [50, None, 0]}, "Row 2, column 'age': the value is missing"),
        ({"age": [50, 1, float("nan")]}, "Row 3, column 'age': the value is missing"),
        ({"age": [50, 1, float("inf")]}, "Row 3, column 'age' must be a number"),
        ({"age": ["50", "old", "1"]}, "Row 2, column 'age' must be a number with a decimal point, and got 'old'"),
        ({"ward": [1, 2, 4]}, r"Row 3, column 'ward' must be one of the listed values \(1, 2, 3\), and got '4'"),
        ({"ward": [1, 2.5, 4]}, "Row 2, column 'ward' must be one of the listed values .*, and got '2.5'"),
        ({"sex": ["f", None, "m"]}, "Row 2, column 'sex': the value is missing"),
        ({"hospital": ["A", None, "B"]}, "Row 2, column 'hospital' must name a client, and got nothing"),
        ({"hospital": [1.0, float("nan"), 2.0]}, "Row 2, column 'hospital' must name a client, and got 'nan'"),
        ({"readmitted": ["no", "yes", "maybe"]}, "Row 3, column 'readmitted' must be one of the listed values"),
        ({"x": [1, 2, 3]}, "Column 'x' has no public range"),
        ({"": [1, 2, 3]}, "Column 6 of .* has no name"),
    ],
)
def test_what_is_wrong_is_named_by_row_and_column(columns: dict[str, Any], sentence: str, tmp_path: Path):
    with pytest.raises(InvalidInput, match=sentence):
        load(table(tmp_path, **columns))


def test_files_that_are_no_parquet_are_told(tmp_path: Path):
    with pytest.raises(InvalidInput, match="There is no file"):
        load(tmp_path / "none.parquet")
    path = table(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with pytest.raises(InvalidInput, match="is not a Parquet file that can be read"):
        load(path)
    path.write_bytes(whole[:4] + b"\xff" * 60 + whole[64:])
    with pytest.raises(InvalidInput, match="can't be read from row 1 on"):
        load(path)
    pq.write_table(pa.table({name: cells[:0] for name, cells in COLUMNS.items()}), path)
    with pytest.raises(InvalidInput, match="has no rows"):
        load(path)


def test_a_parquet_file_is_not_taken_for_csv(tmp_path: Path):
    with pytest.raises(InvalidInput, match='kind = "parquet"'):
        clients_from_csv(table(tmp_path), client="hospital", label="readmitted", ranges=RANGES)


def test_without_pyarrow_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = table(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InvalidInput, match=r"pip install 'discreet\[tables\]'"):
        load(path)


def test_a_file_names_it_as_it_names_csv(tmp_path: Path):
    table(tmp_path)
    made = from_plain(
        AnyTask,
        {"kind": "parquet", "path": "visits.parquet", "client": "hospital", "label": "readmitted", "ranges": RANGES},
    )
    assert from_plain(AnyTask, to_plain(made)) == made
    assert sum(made.load(torch.Generator().manual_seed(0), Paths.default(tmp_path)).train.sizes) == 3
    with pytest.raises(InvalidInput, match="test_fraction: must be at least 0 and below 1"):
        TableTask(kind="parquet", path="x", client="a", label="b", ranges="r", test_fraction=1)


def test_it_is_offered_beside_the_others():
    assert discreet.clients_from_parquet is clients_from_parquet
