"""`discreet predict` and `run.predict`: new rows, from the run directory alone."""

import csv
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import discreet as discreet_module
from discreet.cli.main import run
from discreet.data.tables.column_kinds import Range, Values
from discreet.data.tables.table_columns import TableColumns, table_from_columns
from discreet.errors import InvalidInput
from tests.cli.conftest import Discreet
from tests.cli.test_standardised_runs import write_experiment

NEW = "ward,weight,age,note\na,95,70,tall\nb,55,20,short\n"


class Frame:
    """As much of a pandas data frame as is used: the names of its columns, and a column by its name."""

    def __init__(self, **columns: Any) -> None:
        self.columns = list(columns)
        self._columns = columns

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]


@pytest.fixture(scope="module")
def moved_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose training data is gone."""
    home, away = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("away")
    file = write_experiment(home)
    assert run(["run", str(file), "--set", "privacy.epsilon=50", "--out", str(home / "run"), "--json"]) == 0
    shutil.move(home / "run", away / "run")
    shutil.rmtree(home)
    return away / "run"


def predict(discreet: Discreet, run: Path, text: str, folder: Path, more: str = "") -> tuple[int, str, list[list[str]]]:
    (folder / "new.csv").write_text(text)
    ran = discreet(f"predict {run} {folder / 'new.csv'} --out {folder / 'out.csv'} {more}")
    out = folder / "out.csv"
    written = list(csv.reader(out.read_text().splitlines())) if out.exists() else []
    return ran.code, ran.err, written


def test_each_row_has_its_value_and_the_probability_of_each_value(
    moved_run: Path, tmp_path: Path, discreet: Discreet
) -> None:
    code, _, (header, *rows) = predict(discreet, moved_run, NEW, tmp_path)
    assert code == 0
    assert header == ["prediction", "probability_no", "probability_yes"]
    assert [row[0] for row in rows] == ["yes", "no"]  # in the order of the rows; columns may be in any order
    assert all(sum(map(float, row[1:])) == pytest.approx(1) for row in rows)


def test_python_predicts_the_same_from_a_file_a_frame_and_columns(
    moved_run: Path, tmp_path: Path, discreet: Discreet
) -> None:
    _, _, (_, *rows) = predict(discreet, moved_run, NEW, tmp_path)
    run = discreet_module.load(moved_run)
    frame = Frame(ward=np.array(["a", "b"], dtype=object), weight=np.array([95, 55]), age=np.array([70.0, 20.0]))
    columns = {"ward": ["a", "b"], "weight": [95, 55], "age": [70.0, 20.0]}
    for source in (tmp_path / "new.csv", str(tmp_path / "new.csv"), frame, columns):
        predicted = run.predict(source)
        assert list(predicted) == ["yes", "no"]
        assert [str(each) for each in predicted.probabilities["yes"]] == [row[2] for row in rows]


def test_the_model_itself_gives_the_same_answer_to_scaled_inputs(moved_run: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text(NEW)
    run = discreet_module.load(moved_run)
    inputs = torch.tensor([[70 / 100 - 1, 95 / 150 - 1, 1, 0], [20 / 100 - 1, 55 / 150 - 1, 0, 1]])
    shares = run.model(inputs).softmax(dim=1)[:, 1].tolist()
    assert run.predict(tmp_path / "new.csv").probabilities["yes"] == pytest.approx(shares)


def test_without_a_file_the_predictions_are_printed(moved_run: Path, tmp_path: Path, discreet: Discreet) -> None:
    (tmp_path / "new.csv").write_text(NEW)
    assert discreet(f"predict {moved_run} {tmp_path / 'new.csv'}").out.startswith("prediction,probability_no,")
    data = discreet(f"predict {moved_run} {tmp_path / 'new.csv'} --json").json
    assert (data["label"], data["predictions"]) == ("ill", ["yes", "no"])


def test_a_parquet_file_is_predicted_as_a_csv_file_is(moved_run: Path, tmp_path: Path, discreet: Discreet) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (tmp_path / "new.csv").write_text(NEW)
    table = arrow.table({"ward": ["a", "b"], "weight": [95, 55], "age": [70, 20]})
    parquet.write_table(table, tmp_path / "new.parquet")
    shown = [discreet(f"predict {moved_run} {tmp_path / name}").out for name in ("new.csv", "new.parquet")]
    assert shown[0] == shown[1]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ward,age\na,70\n", "lacks a column of the 3 that the model needs: 'weight'"),
        ("age\n70\n", "lacks 2 columns of the 3 that the model needs: 'weight', 'ward'"),
        (NEW.replace("70", "old"), "Line 2, column 'age' must be a number with a decimal point, and got 'old'"),
        (NEW.replace("b,55", "c,55"), "Line 3, column 'ward' must be one of the listed values (a, b), and got 'c'"),
        (NEW.replace("55", ""), "Line 3, column 'weight': the value is missing. Correct the cell, or leave"),
        (NEW.replace("ward", "Ward"), "It has 'Ward': names must be the same in upper and lower case."),
        ("PK\x03\x04\0\0", "is not CSV: it is an Excel workbook or another archive. Save it as CSV in UTF-8."),
        ("\0\0\0", "is not CSV: it is not text."),
        (",".join(f"c{n}" for n in range(500)) + "\n", "Its columns: c0, c1, "),
        ("", "is empty"),
    ],
)
def test_what_does_not_fit_is_named_and_nothing_is_written(
    text: str, problem: str, moved_run: Path, tmp_path: Path, discreet: Discreet
) -> None:
    code, error, written = predict(discreet, moved_run, text, tmp_path)
    assert (code, written) == (2, [])
    assert problem in error


def test_a_pipe_is_told_that_a_file_is_needed(moved_run: Path, tmp_path: Path, discreet: Discreet) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, what in (("pipe", "a pipe or a device, which can be read only once"), ("", "a folder")):
        ran = discreet(f"predict {moved_run} {tmp_path / name}")
        assert ran.code == 2
        assert f"is {what}. Save the table to a file." in " ".join(ran.err.split())


def test_a_file_is_not_overwritten(moved_run: Path, tmp_path: Path, discreet: Discreet) -> None:
    (tmp_path / "out.csv").write_text("mine")
    code, error, written = predict(discreet, moved_run, NEW, tmp_path)
    assert (code, written) == (2, [["mine"]])
    assert "exists, and is not overwritten" in error


def test_no_rows_give_no_predictions(moved_run: Path, tmp_path: Path, discreet: Discreet) -> None:
    code, _, written = predict(discreet, moved_run, NEW.splitlines()[0] + "\n", tmp_path)
    assert (code, written) == (0, [["prediction", "probability_no", "probability_yes"]])


def test_a_model_of_images_is_no_model_of_a_table(tmp_path: Path, discreet: Discreet) -> None:
    discreet(f"run --set rounds=1 --out {tmp_path / 'digits'}")
    code, error, _ = predict(discreet, tmp_path / "digits", NEW, tmp_path)
    assert code == 2
    assert "was not trained on a table" in error
    with pytest.raises(InvalidInput, match="must be a file, a data frame or a mapping of columns"):
        table_from_columns(3)


def test_models_may_have_one_output_for_two_classes_or_for_a_number() -> None:
    classes = TableColumns(inputs={"x": Range(min=0, max=1)}, label="y", target=Values(values=("no", "yes")))
    for outputs in (np.array([[2.0], [-2.0]]), np.array([2.0, -2.0])):
        predicted = classes.name_predictions(outputs)
        assert list(predicted) == ["yes", "no"]
        assert predicted.probabilities["yes"][0] == pytest.approx(1 / (1 + np.exp(-2)))
    number = TableColumns(inputs={"x": Range(min=0, max=1)}, label="y", target=Range(min=100, max=200))
    assert list(number.name_predictions(np.array([-1.0, 0.0]))) == [100, 150]
    with pytest.raises(InvalidInput, match="probabilities of 2 values need one output for each"):
        classes.name_predictions(np.zeros((3, 5)))


def test_truth_values_and_spaces_of_a_frame_are_read_as_those_of_a_file() -> None:
    columns = TableColumns(inputs={"x": Values(values=("true", "false"))}, label="y", target=Range(min=0, max=1))
    frames = ({"x": np.array([True, False])}, {"x": [" true", "false "]}, {"x": ["true", "false"]})
    encoded = [next(columns.encode(table_from_columns(frame))).tolist() for frame in frames]
    assert encoded == [[[1, 0], [0, 1]]] * 3
