"""Models are built for their task from one generator, both ours and a user's own."""

from pathlib import Path

import pytest
import torch
from torch import nn

from discreet.data.tasks.from_arrays import clients_from_arrays
from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput
from discreet.experiment.loop.job_builder import build_model
from discreet.models import AnyModel
from discreet.models.networks.linear import Linear
from discreet.models.networks.mlp import Mlp
from discreet.models.networks.user_model import UserModel
from discreet.part import from_plain, to_plain
from discreet.paths import Paths
from discreet.trust import Trust

FLAT = clients_from_arrays(torch.zeros(4, 6), [0, 1, 2, 0], sizes=[4], classes=3)
IMAGES = clients_from_arrays(torch.zeros(4, 1, 2, 3), [0, 1, 2, 0], sizes=[4], classes=3)
PRICES = clients_from_arrays(torch.zeros(4, 6), torch.zeros(4), sizes=[4])
WORDS = clients_from_arrays(torch.zeros(4, 6, dtype=torch.int64), [0, 1, 2, 0], sizes=[4], classes=3)

NET = """
from torch import nn

class Net(nn.Module):
    def __init__(self, width=2, task=None):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(6, width), nn.Linear(width, task.classes))

    def forward(self, x):
        return self.layers(x)

def plain(width):
    return nn.Linear(6, width)

def wrong():
    return 3
"""


def build(model: Linear | Mlp | UserModel, task: Task = FLAT, seed: int = 0) -> nn.Module:
    return build_model(model, task, Paths.default(trust=Trust.all_code()), torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("model", [Linear(), Mlp(), Mlp(hidden=(5, 4), activation="relu"), Mlp(hidden=())])
@pytest.mark.parametrize("task", [FLAT, IMAGES, PRICES], ids=["flat", "images", "regression"])
def test_outputs_are_one_a_class(model: Linear | Mlp, task: Task):
    assert build(model, task)(task.train.inputs).shape == (4, task.classes)


def test_a_linear_model_starts_at_zero():
    assert all(not bool(value.any()) for value in build(Linear()).parameters())


@pytest.mark.parametrize("model", [Linear(), Mlp()])
def test_whole_number_inputs_need_an_embedding(model: Linear | Mlp):
    with pytest.raises(InvalidInput, match="Embedding"):
        build(model, WORDS)


def test_the_generator_alone_decides_how_a_model_starts():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, again, other = build(Mlp()), build(Mlp()), build(Mlp(), seed=1)
    weights = [module.get_parameter("0.weight") for module in (first, again, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("model", [Linear(), Mlp(hidden=(3,)), UserModel(kind="net.py:Net", arguments={"width": 4})])
def test_a_file_gives_the_same_model(model: Linear | Mlp | UserModel):
    assert from_plain(AnyModel, to_plain(model)) == model


@pytest.fixture
def net(tmp_path: Path) -> str:
    path = tmp_path / "net.py"
    path.write_text(NET)
    return str(path)


def test_a_model_of_ones_own_comes_from_a_file_and_gets_the_task_if_it_asks(net: str):
    module = build(UserModel(kind=f"{net}:Net", arguments={"width": 4}), IMAGES)
    assert module(IMAGES.train.inputs).shape == (4, 3)
    assert type(module).__name__ == "Net"
    assert torch.equal(
        build(UserModel(kind=f"{net}:plain", arguments={"width": 2})).get_parameter("weight"),
        build(UserModel(kind=f"{net}:plain", arguments={"width": 2})).get_parameter("weight"),
    )


def test_or_from_an_installed_module():
    assert isinstance(
        build(UserModel(kind="torch.nn:Linear", arguments={"in_features": 6, "out_features": 3})), nn.Linear
    )


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("None_", "has no 'None_'"),
        ("plain", "can't be called with no arguments"),
        ("wrong", "must return a torch.nn.Module"),
    ],
)
def test_a_name_that_makes_no_module_is_told(name: str, sentence: str, net: str):
    with pytest.raises(InvalidInput, match=sentence):
        build(UserModel(kind=f"{net}:{name}"))


def test_a_file_that_is_not_there_or_fails_is_told(tmp_path: Path):
    with pytest.raises(InvalidInput, match="There is no file"):
        build(UserModel(kind="nowhere.py:Net"))
    with pytest.raises(InvalidInput, match="can't be imported"):
        build(UserModel(kind="no_such_module:Net"))
    (tmp_path / "bad.py").write_text("1/0")
    with pytest.raises(InvalidInput, match="can't be imported: ZeroDivisionError"):
        build(UserModel(kind=f"{tmp_path}/bad.py:Net"))


@pytest.mark.parametrize(
    "kind", ["https://example.org/net.py:Net", "net.py", "net.py:", ":Net", "cnn", "net.py:a b", 3]
)
def test_what_names_no_model_on_this_machine_is_refused(kind: object):
    with pytest.raises(InvalidInput):
        from_plain(AnyModel, {"kind": kind})


def test_an_unknown_kind_lists_the_known_ones():
    with pytest.raises(InvalidInput, match=r"'linear', 'mlp', .*'resnet18' or your own as 'file\.py:Class'"):
        from_plain(AnyModel, {"kind": "cnn"})
