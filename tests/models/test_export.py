"""Exported models: raw columns in, and the probabilities of `predict` out."""

import io
import json
import math
import sys
import warnings
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import discreet
from discreet.data.tables.column_kinds import DateRange, HashedText, InputColumn, Range, Values, hash_words
from discreet.data.tables.table_columns import TableColumns, table_from_columns
from discreet.errors import InvalidInput, MissingExtra
from discreet.models.export.model_file import model_bytes, table_model_bytes
from discreet.models.export.table_network import TableNetwork
from discreet.models.table_prediction import predict_rows

CLASSES = TableColumns(
    inputs={
        "ward": Values(values=("a", "b", "c")),
        "age": Range(min=0, max=120),
        "stay": Values(values=("0", "1")),
        "note": HashedText(text_buckets=5),
        "day": DateRange(first="2020-01-01", last="2026-12-31"),
        "weight": Range(min=-50, max=1e6),
    },
    label="ill",
    target=Values(values=("no", "perhaps", "yes")),
)
NUMBER = TableColumns(inputs={"age": Range(min=0, max=120)}, label="cost", target=Range(min=100, max=900))
WORDS = TableColumns(inputs={"ward": Values(values=("a", "b", "c"))}, label="ill", target=Values(values=("no", "yes")))
ROWS: dict[str, Any] = {
    "age": [1.0, 70.5, 500.0, -3.0, 44.25],  # some are outside the range
    "weight": [0.1, 99999.99, -60.0, 12.5, 3e6],
    "ward": ["c", "a", "b", "b", "a"],
    "stay": ["0", "1", "1", "0", "0"],
    "note": ["fever and pain", "", "no fever", "pain", "tired"],
    "day": ["2021-03-04", "2026-12-31", "1990-01-01", "2023-06-07", "2099-01-01"],
}
FACTS = {"guarantee": "ε = 2", "columns": "{}"}


def make_network(columns: TableColumns, outputs: int) -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(columns.width, 7), nn.Tanh(), nn.Linear(7, outputs)).eval()


def give_column(column: InputColumn, cells: list[Any]) -> Any:
    """Return the cells of a column as an input of an ONNX file, as the guide says."""
    match column:
        case HashedText():
            return hash_words(cells, column.text_buckets)
        case DateRange():
            return np.array(cells, dtype="datetime64[D]").astype(np.float64)
        case _:
            return np.array(cells, dtype=np.float64 if isinstance(column, Range) else object)


def give_columns(columns: TableColumns, rows: dict[str, Any]) -> dict[str, Any]:
    """Return rows as the inputs of an ONNX file."""
    return {name: give_column(column, rows[name]) for name, column in columns.inputs.items()}


def give_blocks(network: TableNetwork, rows: dict[str, Any]) -> list[torch.Tensor]:
    """Return rows as the inputs of a TorchScript file."""
    values = dict(network.codes)
    numbers = [torch.from_numpy(give_column(column, rows[name])) for name, column in network.numbers]
    codes = [torch.tensor([values[name].index_of(cell) for cell in rows[name]]) for name in values]
    texts = [torch.from_numpy(give_column(column, rows[name])) for name, column in network.texts]
    blocks = [torch.stack(block, dim=1) for block in (numbers, codes) if block]
    return [*blocks, *([torch.cat(texts, dim=1)] if texts else [])]


@cache
def classes_onnx() -> bytes:
    return table_model_bytes("onnx", make_network(CLASSES, 3), CLASSES, FACTS)


def run_onnx(content: bytes, named: dict[str, Any]) -> list[Any]:
    import onnxruntime

    return onnxruntime.InferenceSession(content).run(None, named)


@pytest.mark.parametrize("columns", [CLASSES, NUMBER, WORDS], ids=["mixed", "numbers", "values"])
def test_the_encoding_in_torch_is_that_of_the_table(columns: TableColumns) -> None:
    network = TableNetwork(make_network(columns, columns.target.width), columns)
    encoded = network.encode(*give_blocks(network, ROWS))
    expected = np.concatenate(list(columns.encode(table_from_columns(ROWS))))
    assert encoded.numpy().tolist() == expected.tolist()


@pytest.mark.parametrize(("columns", "outputs"), [(CLASSES, 3), (WORDS, 1)], ids=["mixed", "one output"])
def test_onnx_gives_the_predictions_and_probabilities_of_predict(columns: TableColumns, outputs: int) -> None:
    model = make_network(columns, outputs)
    expected = predict_rows(model, columns, table_from_columns(ROWS))
    content = classes_onnx() if columns is CLASSES else table_model_bytes("onnx", model, columns, FACTS)
    prediction, probabilities = run_onnx(content, give_columns(columns, ROWS))
    assert prediction.tolist() == expected.values
    assert probabilities == pytest.approx(np.array(list(expected.probabilities.values())).T, abs=1e-6)


def test_onnx_predicts_a_number_in_its_own_units() -> None:
    model = make_network(NUMBER, 1)
    expected = predict_rows(model, NUMBER, table_from_columns(ROWS))
    (prediction,) = run_onnx(table_model_bytes("onnx", model, NUMBER, FACTS), {"age": np.array(ROWS["age"])})
    assert prediction == pytest.approx(np.array(expected.values), rel=1e-6)


def test_onnx_takes_any_number_of_rows() -> None:
    content = classes_onnx()
    for rows in (1, 2, 50):
        many = {name: (cells * 10)[:rows] for name, cells in ROWS.items()}
        assert run_onnx(content, give_columns(CLASSES, many))[1].shape == (rows, 3)


@pytest.mark.parametrize("change", [{"ward": "d"}, {"ward": ""}, {"age": math.nan}, {"age": math.inf}])
def test_a_row_that_predict_refuses_has_no_prediction_in_onnx(change: dict[str, Any]) -> None:
    good = {"ward": "a", "age": 50.0, "stay": "1", "weight": 3.0, "note": "", "day": "2021-01-01"}
    content = classes_onnx()
    rows = {name: [change.get(name, cell), cell] for name, cell in good.items()}
    prediction, probabilities = run_onnx(content, give_columns(CLASSES, rows))
    assert prediction[0] == ""
    assert np.isnan(probabilities[0]).all()
    assert prediction[1] in ("no", "perhaps", "yes")
    assert np.isfinite(probabilities[1]).all()


def test_onnx_says_what_it_is_and_nothing_about_this_machine() -> None:
    import onnx

    content = classes_onnx()
    model = onnx.load_from_string(content)
    onnx.checker.check_model(model)
    assert {each.key: each.value for each in model.metadata_props} == FACTS
    assert [each.name for each in model.graph.input] == ["age", "day", "weight", "ward", "stay", "note"]
    assert __file__.encode() not in content
    assert b"discreet/models" not in content


@pytest.mark.parametrize("columns", [CLASSES, NUMBER, WORDS], ids=["mixed", "numbers", "values"])
def test_torchscript_gives_the_probabilities_of_predict(columns: TableColumns) -> None:
    model = make_network(columns, columns.target.width)
    expected = predict_rows(model, columns, table_from_columns(ROWS))
    content, kept = table_model_bytes("torchscript", model, columns, FACTS), {"columns": b""}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit is deprecated
        loaded = torch.jit.load(io.BytesIO(content), _extra_files=kept)
    outputs = loaded(*give_blocks(TableNetwork(model, columns), ROWS)).detach().numpy()
    wanted = list(expected.probabilities.values()) or [expected.values]
    assert outputs.reshape(len(expected), -1) == pytest.approx(np.array(wanted).T, rel=1e-6, abs=1e-6)
    assert json.loads(kept["columns"]) == {}


def test_torchscript_says_nothing_about_this_machine_and_keeps_no_inputs() -> None:
    content = table_model_bytes("torchscript", make_network(CLASSES, CLASSES.target.width), CLASSES, FACTS)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    assert any(name.endswith("data.pkl") for name in records)
    assert not [name for name in records if "debug" in name or "traced_inputs" in name]
    for path in (__file__, str(Path(torch.__file__).parent), str(Path(discreet.__file__).parent)):
        assert not [name for name, record in records.items() if path.encode() in record]


def test_a_network_of_other_data_is_exported_with_its_inputs_as_they_are() -> None:
    torch.manual_seed(4)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 10)).eval()
    images = torch.rand(5, 1, 8, 8)
    (outputs,) = run_onnx(model_bytes("onnx", model, images[:1], {}), {"inputs": images.numpy()})
    assert outputs == pytest.approx(model(images).detach().numpy(), abs=1e-5)


class Branch(nn.Module):
    """A network that decides by its inputs, which no traced file can."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(1, 1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        if inputs.sum() > 0:
            return self.linear(inputs)
        return -self.linear(inputs)


@pytest.mark.parametrize(("to", "name"), [("onnx", "ONNX"), ("torchscript", "TorchScript")])
def test_a_network_that_branches_on_its_inputs_is_refused_in_one_sentence(to: Any, name: str) -> None:
    with pytest.raises(InvalidInput, match=f"can't be exported to {name}: .*safetensors") as refused:
        table_model_bytes(to, Branch().eval(), NUMBER, FACTS)
    assert "\n" not in str(refused.value)


def test_outputs_that_are_no_probabilities_are_refused() -> None:
    with pytest.raises(InvalidInput, match="probabilities of 3 values need one output for each"):
        table_model_bytes("torchscript", make_network(CLASSES, 5), CLASSES, FACTS)


def test_a_column_named_as_an_output_is_refused() -> None:
    columns = TableColumns(inputs={"prediction": Range(min=0, max=1)}, label="y", target=Range(min=0, max=1))
    with pytest.raises(InvalidInput, match="which an output of the ONNX file has"):
        table_model_bytes("onnx", make_network(columns, 1), columns, FACTS)


def test_onnx_without_its_extra_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(MissingExtra, match=r"ONNX needs onnxscript.*discreet\[onnx\]"):
        table_model_bytes("onnx", make_network(NUMBER, 1), NUMBER, FACTS)
