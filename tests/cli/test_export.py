"""`discreet export` and `run.export`: files for other programs, and a model card, from the run directory alone."""

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import safetensors
import torch
from torch import nn

import discreet as discreet_module
from discreet.cli.main import run
from discreet.errors import InvalidInput
from tests.cli.conftest import Discreet
from tests.cli.test_standardised_runs import write_experiment

NEW = {"ward": ["a", "b", "b"], "weight": [95.0, 55.0, 400.0], "age": [70.0, 20.0, 33.25]}


@pytest.fixture(scope="module")
def moved_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of standardised numbers whose training data is gone."""
    home, away = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("away")
    file = write_experiment(home, changes={"seed = 5\n": ""})
    assert run(["run", str(file), "--set", "rounds=3", "--out", str(home / "run"), "--json"]) == 0
    shutil.move(home / "run", away / "run")
    shutil.rmtree(home)
    return away / "run"


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on images."""
    path = tmp_path_factory.mktemp("digits") / "run"
    assert run(["run", "--set", "rounds=1", "--out", str(path), "--json"]) == 0
    return path


def test_onnx_predicts_for_new_rows_what_predict_does(moved_run: Path, tmp_path: Path, discreet: Discreet) -> None:
    import onnxruntime

    ran = discreet(f"export {moved_run} --to onnx --out {tmp_path / 'a.onnx'}")
    assert (ran.code, ran.err) == (0, "")
    session = onnxruntime.InferenceSession(tmp_path / "a.onnx")
    types = {each.name: object if each.type == "tensor(string)" else np.float64 for each in session.get_inputs()}
    assert set(types) == set(NEW)
    rows = {name: np.array(NEW[name], dtype=kind) for name, kind in types.items()}
    prediction, probabilities = session.run(None, rows)
    expected = discreet_module.load(moved_run).predict(NEW)
    assert prediction.tolist() == list(expected)
    assert probabilities[:, 1] == pytest.approx(np.array(expected.probabilities["yes"]), abs=1e-6)
    facts = session.get_modelmeta().custom_metadata_map
    assert json.loads(facts["columns"])["label"] == "ill"
    assert "Any one example is protected against the server" in facts["guarantee"]


def test_safetensors_has_the_weights_and_the_columns_without_running_code(
    moved_run: Path, tmp_path: Path, discreet: Discreet
) -> None:
    made = discreet(f"export {moved_run} --to safetensors --out {tmp_path / 'a.safetensors'} --json").json
    assert made["bytes"] == (tmp_path / "a.safetensors").stat().st_size
    with safetensors.safe_open(tmp_path / "a.safetensors", framework="pt") as file:
        assert {"input centre", "input spread"} < set(file.keys())
        facts = file.metadata()
    assert json.loads(facts["columns"])["inputs"]["ward"] == {"values": ["a", "b"]}
    assert json.loads(facts["model"])["kind"] == "linear"


@pytest.mark.parametrize("to", ["onnx", "torchscript", "safetensors", "card"])
def test_a_file_is_not_overwritten(to: str, moved_run: Path, tmp_path: Path, discreet: Discreet) -> None:
    (tmp_path / "mine").write_text("mine")
    ran = discreet(f"export {moved_run} --to {to} --out {tmp_path / 'mine'}")
    assert (ran.code, (tmp_path / "mine").read_text()) == (2, "mine")
    assert "exists, and is not overwritten" in ran.err


def test_without_a_name_the_file_is_in_the_run_directory_and_a_resume_removes_it(
    moved_run: Path, discreet: Discreet
) -> None:
    from discreet.experiment.run_directory.run_record import RunRecord

    copy = moved_run.with_name("copy")
    shutil.copytree(moved_run, copy)
    assert discreet(f"export {copy} --to torchscript --json").json["out"] == str(copy / "exported.pt")
    assert discreet(f"export {copy} --to card --json").json["out"] == str(copy / "model_card.md")
    assert discreet(f"export {copy} --to card --public --json").json["out"] == str(copy / "model_card-public.md")
    RunRecord.open(copy).remove_outcome()
    assert not [path for path in copy.iterdir() if path.name.startswith(("exported", "model"))]


def test_the_model_card_has_the_guarantee_the_columns_and_metrics_that_are_marked(moved_run: Path) -> None:
    run = discreet_module.load(moved_run)
    card, public = run.model_card(), run.model_card(public=True)
    assert run.guarantee is not None
    for text in (card, public):
        assert run.guarantee.sentence() in text
        assert "- Certified: ε = 4 at δ = 1e-5" in text
        assert "| age | a number from 0 to 200 |" in text
        assert "It predicts `ill`, one of no, yes: the probability of each value." in text
        assert all(sentence in text for sentence in run.guarantee.assumptions)
        assert "commit" in text
    assert "## Metrics, not covered by the guarantee" in card
    assert "Accuracy on test data" in card
    assert "on test data" not in public


def test_ranges_from_the_data_are_not_on_the_public_card(tmp_path: Path, discreet: Discreet) -> None:
    file = write_experiment(tmp_path)
    ranges = tmp_path / "ranges.toml"
    ranges.write_text("taken_from_data = true\n" + ranges.read_text().replace("200", "93.75"))
    assert discreet(f"run {file} --set rounds=1 --accept-data-ranges --out {tmp_path / 'run'}").code == 0
    run = discreet_module.load(tmp_path / "run")
    assert "93.75" in run.model_card()
    assert "93.75" not in run.model_card(public=True)
    assert "Warning:" in run.model_card(public=True)
    assert "no guarantee covers what they reveal" in discreet(f"export {tmp_path / 'run'} --to safetensors").out


def test_a_model_of_images_takes_images(digits: Path, tmp_path: Path, discreet: Discreet) -> None:
    import onnxruntime

    assert discreet(f"export {digits} --to onnx --out {tmp_path / 'a.onnx'}").code == 0
    session = onnxruntime.InferenceSession(tmp_path / "a.onnx")
    images = np.random.default_rng(1).normal(size=(3, 64)).astype(np.float32)
    expected = discreet_module.load(digits).model(torch.from_numpy(images)).detach().numpy()
    assert session.run(None, {"inputs": images})[0] == pytest.approx(expected, abs=1e-5)
    assert "Inputs are as the task `digits` gives them" in discreet_module.load(digits).model_card()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("--to tflite", "is not one of 'onnx', 'torchscript', 'safetensors', 'card'"),
        ("", "Missing option '--to'"),
        ("--to onnx --public", "--public belongs to --to card"),
    ],
)
def test_wrong_options_are_explained(line: str, problem: str, moved_run: Path, discreet: Discreet) -> None:
    ran = discreet(f"export {moved_run} {line}")
    assert ran.code == 2
    assert problem in ran.err


def test_python_is_told_the_formats(moved_run: Path) -> None:
    with pytest.raises(InvalidInput, match="must be 'onnx', 'torchscript' or 'safetensors', and got 'card'"):
        discreet_module.load(moved_run).export("card")  # type: ignore[arg-type]


def test_a_run_from_python_is_exported_with_an_example_of_its_inputs(tmp_path: Path) -> None:
    torch.manual_seed(1)
    images = torch.randn(60, 1, 4, 4)
    net = nn.Sequential(nn.Flatten(), nn.Linear(16, 2))
    run = discreet_module.train(
        net,
        discreet_module.clients_from_arrays(images, (images.sum(dim=(1, 2, 3)) > 0).long(), sizes=[30, 30]),
        rounds=1,
        algorithm=discreet_module.fedavg(learning_rate=0.1, batch_size=10),
        out=tmp_path / "run",
    )
    with pytest.raises(InvalidInput, match="the shape of the model's inputs is not known"):
        run.export("torchscript")
    path = run.export("torchscript", inputs=images[:1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit is deprecated
        outputs = torch.jit.load(path)(images)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(outputs, run.model(images))
    assert "Network: the module `Sequential`, which a Python program passed" in run.model_card()
