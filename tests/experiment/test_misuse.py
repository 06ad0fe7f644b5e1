"""What a newcomer gets wrong in Python is said in a sentence that names the argument, and nothing is written."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import discreet as d
from discreet.algorithms.recipes.registry import RECIPES
from discreet.errors import InvalidInput

INPUTS = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
LABELS = (INPUTS.sum(dim=1) > 0).long()
CLIENTS = d.clients_from_arrays(INPUTS, LABELS, sizes=[20, 20, 20], classes=2)
PAIRS = TensorDataset(INPUTS, LABELS)
ARGUMENTS: dict[str, Any] = {
    "rounds": 2,
    "algorithm": d.pfl(local_steps=1, sampling_rate=0.2, clip_norm=1.0, learning_rate=1.0),
    "privacy": d.Privacy(unit="example", against="server", epsilon=8, delta=1e-4),
}


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        outputs: torch.Tensor = self.layer(inputs)
        return outputs


class NamedOutputs(Net):
    def forward(self, inputs: torch.Tensor) -> Any:
        return {"logits": self.layer(inputs)}


class Frame:
    """What is asked of a data frame."""

    def __array__(self) -> Any:
        return INPUTS.numpy()


def with_targets(targets: Any) -> Any:
    return d.clients_from_arrays(INPUTS, targets, sizes=[60])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"model": Net}, "model must be an object, and got the class Net. Write Net(...)."),
        ({"model": "net"}, "model must be a torch.nn.Module, and got an object of the class str. Pass the network"),
        ({"model": None}, "model must be a torch.nn.Module, and got None."),
        ({"model": with_targets}, "model must be a torch.nn.Module, and got the function with_targets."),
        ({"model": Net().state_dict()}, "model must be a torch.nn.Module, and got an object of the class OrderedDict."),
        ({"model": NamedOutputs()}, "forward() must return one tensor, and returned dict."),
        ({"model": nn.Linear(5, 2)}, "The model can't take inputs of the shape (4,)"),
        ({"model": nn.Linear(4, 1)}, "2 classes need (32, 2). Let its last layer have 2 outputs."),
        (
            {"model": nn.Sequential(nn.LazyLinear(2))},
            "and 0.weight of a lazy layer has none. Call the model once",
        ),
        ({"model": nn.Flatten()}, "The module has no trainable parameter."),
        (
            {"algorithm": d.pfl},
            "algorithm must be what the recipe pfl returns, and got the recipe itself. Call it with",
        ),
        ({"algorithm": "pfl"}, "algorithm must be what the recipe pfl returns, and got its name. Call it with its set"),
        ({"algorithm": "sgd"}, "algorithm must be an algorithm, and got an object of the class str. Use a recipe"),
        ({"algorithm": {"recipe": "pfl"}}, "algorithm must be an algorithm, and got an object of the class dict."),
        ({"algorithm": None}, "algorithm must be an algorithm, and got None."),
        (
            {"algorithm": torch.optim.SGD(Net().parameters())},
            "of the class Algorithm, and got an object of the class SGD",
        ),
        (
            {"privacy": {"epsilon": 8}},
            "privacy must be a promise, and got an object of the class dict. Write discreet.P",
        ),
        ({"privacy": 2.0}, "privacy must be a promise, and got an object of the class float."),
        ({"privacy": d.Privacy}, "privacy must be a promise, and got the class Privacy."),
        ({"rounds": "10"}, "rounds: must be a whole number, and got '10'."),
        ({"rounds": 2.0}, "rounds: must be a whole number, and got 2.0."),
        ({"rounds": 0}, "rounds: must be at least 1"),
        (
            {"epochs": 3},
            "There is no argument 'epochs' here. It belongs to the algorithm, such as discreet.pfl(ep",
        ),
        ({"learning_rate": 3}, "here. It belongs to the algorithm, such as discreet.pfl(learning_rate=...)."),
        (
            {"lr": 0.1},
            "There is no argument 'lr' here. It belongs to the algorithm, such as discreet.pfl(learning_rate",
        ),
        ({"optimizer": "adam"}, "belongs to the algorithm, such as discreet.dp_fedavg(server="),
        ({"criterion": nn.MSELoss()}, "There is no argument 'criterion' here (did you mean 'loss'?)."),
        ({"epsilon": 3}, "It belongs to the promise: privacy=discreet.Privacy(epsilon=...)."),
        ({"privcy": None}, "There is no argument 'privcy' here (did you mean 'privacy'?)."),
        ({"device": "gpu"}, "device: must be 'auto', 'cpu' or 'cuda', and got 'gpu'."),
        (
            {"clients": INPUTS},
            "got an object of the class Tensor. Write discreet.clients_from_arrays(inputs, targets, cl",
        ),
        ({"clients": (INPUTS, LABELS)}, "got an object of the class tuple. Write discreet.clients_from_arrays("),
        ({"clients": Frame()}, "got an object of the class Frame. Write discreet.clients_from_arrays("),
        ({"clients": PAIRS}, "got an object of the class TensorDataset. Write discreet.clients_from_datasets([...])"),
        (
            {"clients": DataLoader(PAIRS)},
            "got an object of the class DataLoader. Write discreet.clients_from_datasets([",
        ),
        (
            {"clients": [DataLoader(PAIRS)]},
            "got an object of the class list. Write discreet.clients_from_datasets([...])",
        ),
        ({"clients": "visits.csv"}, "got an object of the class str. Write discreet.clients_from_csv(path, client="),
        (
            {"clients": d.clients_from_arrays},
            "got the function clients_from_arrays. Call it: clients_from_arrays(...).",
        ),
        ({"clients": None}, "clients must be the clients' data, and got None. Use clients_from_arrays"),
        ({"clients": with_targets(LABELS.float())}, "Labels of classes are whole numbers: targets.long()."),
        ({"clients": with_targets(LABELS[:, None])}, "targets.squeeze(1) for a column"),
        ({"clients": with_targets(nn.functional.one_hot(LABELS))}, "targets.argmax(1) for one-hot labels."),
        (
            {"clients": d.clients_from_arrays((INPUTS * 9).int(), LABELS, sizes=[60])},
            "Whole numbers stay whole, as an embedding needs them; for any other layer pass inputs.float().",
        ),
        (
            {"loss": nn.CrossEntropyLoss},
            "loss must be a function, and got the class CrossEntropyLoss. Write CrossEntropyL",
        ),
        (
            {"loss": "mse"},
            "loss must be a function, and got an object of the class str. Pass a function of (outputs, tar",
        ),
        ({"loss": lambda outputs, targets: 1.0}, "The loss must return a tensor, and returned float."),
        ({"metric": nn.L1Loss}, "metric must be a function, and got the class L1Loss. Write L1Loss()."),
        ({"out": 3}, "A path must be text or a pathlib.Path, and got an object of the class int."),
        ({"resume": 3}, "A path must be text or a pathlib.Path"),
        ({"callbacks": None}, "callbacks must be a list"),
    ],
)
@pytest.mark.parametrize("function", [d.train, d.session])
def test_what_is_wrong_is_named_before_anything_is_written(
    function: Any, arguments: dict[str, Any], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    given = {"model": Net(), "clients": CLIENTS, **ARGUMENTS, **arguments}
    if function is d.session and "callbacks" in given:
        sentence = "There is no argument 'callbacks' here. It belongs to discreet.train(callbacks=...)"
    with pytest.raises(InvalidInput) as caught:
        function(given.pop("model"), given.pop("clients"), **given)
    assert sentence in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("read", [d.clients_from_csv, d.clients_from_parquet])
def test_a_table_without_ranges_is_told_what_they_are_and_how_to_write_them(read: Any):
    with pytest.raises(InvalidInput, match=r"A table needs ranges.*discreet data check .my visits.csv. --client"):
        read("my visits.csv", client="clinic", label="ill")


def test_negative_labels_are_called_negative():
    with pytest.raises(InvalidInput, match="0 or more, and the training labels are negative, between -3 and -2"):
        with_targets(LABELS - 3)


def test_numbers_of_numpy_are_numbers(tmp_path: Path):
    run = d.train(Net(), CLIENTS, **{**ARGUMENTS, "rounds": np.int64(1)}, out=tmp_path / "run")
    assert run.rounds == 1


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        (Net, "module must be an object, and got the class Net."),
        ("net", "module must be a torch.nn.Module, and got an object of the class str."),
        (nn.Linear(4, 2), "which has no 'bias', and this one has 'bias' of the shape (2,)."),
        (
            nn.ModuleDict({"layer": nn.Linear(5, 2)}),
            "of the shape (2, 4), and this one has 'layer.weight' of the shape (2, 5)",
        ),
    ],
)
def test_a_module_that_was_not_trained_is_not_loaded(module: Any, sentence: str, tmp_path: Path):
    d.train(Net(), CLIENTS, **{**ARGUMENTS, "rounds": 1}, out=tmp_path / "run")
    with pytest.raises(InvalidInput) as caught:
        _ = d.load(tmp_path / "run", module=module).model
    assert sentence in str(caught.value)


def test_a_directory_that_is_no_path_is_refused():
    with pytest.raises(InvalidInput, match=r"A path must be text or a pathlib\.Path"):
        d.load(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"lr": 0.1, "clip_norm": 1.0},
            r"discreet\.pfl takes no 'lr' \(did you mean 'learning_rate'\?\)\. It takes: learn",
        ),
        ({"learning_rate": 0.1, "max_grad_norm": 1.0}, "no 'max_grad_norm' .did you mean 'clip_norm'"),
        ({"learning_rate": 0.1, "clip_norm": 1.0, "clip_nrom": 1.0}, "no 'clip_nrom' .did you mean 'clip_norm'"),
        ({"learning_rate": 0.1}, r"discreet\.pfl needs clip_norm\. It takes: learning_rate, clip_norm"),
    ],
)
def test_a_recipe_names_the_argument_that_was_meant(arguments: dict[str, Any], words: str):
    with pytest.raises(InvalidInput, match=words):
        d.pfl(**arguments)


def test_a_recipe_takes_its_arguments_by_name():
    with pytest.raises(InvalidInput, match=r"discreet\.pfl takes its arguments by name.* Write learning_rate="):
        d.pfl(0.1)  # type: ignore[call-arg, misc]


def test_every_recipe_refuses_unknown_names_and_is_the_same_object_each_time():
    for name in RECIPES:
        assert getattr(d, name) is getattr(d, name)
        with pytest.raises(InvalidInput, match=f"discreet.{name} takes no 'lrate'"):
            getattr(d, name)(lrate=1.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"lr": 2.0}, "There is no argument 'lr' here. It belongs to the algorithm"),
        ({"rounds": 2}, "session needs algorithm. Write session.model, clients, algorithm="),
        ({"resume": "somewhere", "lrate": 1.0}, "There is no argument 'lrate' here"),
    ],
)
def test_a_session_names_what_is_unknown_or_missing(arguments: dict[str, Any], words: str):
    with pytest.raises(InvalidInput, match=words):
        d.session(Net(), with_targets(LABELS), **arguments)
