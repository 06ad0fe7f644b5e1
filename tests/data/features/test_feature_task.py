"""Features: a data set seen through a fixed extractor, ScatterNet or a user's own."""

import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from discreet.data.features.extractors import AnyExtractor, Scatternet, UserExtractor
from discreet.data.features.feature_task import Features, extract_features
from discreet.data.features.scatternet import ScatterNet
from discreet.data.tasks.any_task import AnyTask
from discreet.data.tasks.examples import Examples
from discreet.data.tasks.mnist import Mnist
from discreet.data.tasks.task_loading import load_task
from discreet.errors import InvalidInput
from discreet.part import from_plain, to_plain
from discreet.paths import Paths
from discreet.trust import Trust

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width=3):
        super().__init__()
        self.layer = nn.Linear(144, width)

    def forward(self, x):
        return torch.relu(self.layer(x.flatten(1)))

class Centred(Net):
    def forward(self, x):
        return x - x.mean(dim=0)

class Divided(Net):
    def forward(self, x):
        return x / (x - x)

class Endless(Net):
    def forward(self, x):
        return x + torch.inf

class Tuple(Net):
    def forward(self, x):
        return (x, x)

class Normal(Net):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(1, track_running_stats=False)
"""


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    (tmp_path / "net.py").write_text(NET)
    return Paths(folder=tmp_path, data=tmp_path / "data", cache=tmp_path / "cache", trust=Trust.all_code())


def examples(channels: int = 1, count: int = 6) -> Examples:
    drawn = torch.Generator().manual_seed(0)
    return Examples(
        name="pictures",
        inputs=torch.rand(count, channels, 12, 12, generator=drawn),
        targets=torch.arange(count) % 2,
        test_inputs=torch.rand(2, channels, 12, 12, generator=drawn),
        test_targets=torch.tensor([0, 1]),
        kind="classification",
        classes=2,
        facts=("Pictures are public.",),
    )


def test_inputs_become_features_and_all_else_stays(paths: Paths):
    before, after = (
        examples(channels=3),
        extract_features(examples(channels=3), Scatternet(depth=1, rotations=4), paths),
    )
    assert torch.allclose(after.inputs, ScatterNet(12, 12, 1, 4)(before.inputs), atol=1e-6)
    assert torch.allclose(after.test_inputs, ScatterNet(12, 12, 1, 4)(before.test_inputs), atol=1e-6)
    assert after.inputs.shape == (6, 15, 6, 6)
    assert torch.equal(after.targets, before.targets)
    assert after.name == "pictures-features"
    assert after.facts[0] == "Pictures are public."
    assert "fixed and public" in after.facts[1]
    assert after.not_covered == ()


def test_public_inputs_become_features_too(paths: Paths):
    before = examples().with_public(2)
    after = extract_features(before, Scatternet(depth=1, rotations=4), paths)
    assert before.public is not None
    assert after.public is not None
    assert torch.allclose(after.public[0], ScatterNet(12, 12, 1, 4)(before.public[0]), atol=1e-6)
    assert torch.equal(after.public[1], before.public[1])


def test_a_second_time_they_come_from_the_cache(paths: Paths):
    heard: list[tuple[str, int, int]] = []
    watched = replace(paths, on_progress=lambda *told: heard.append(told))
    first = extract_features(examples(), Scatternet(), watched)
    assert heard == [
        ("ScatterNet features of pictures, training examples", 6, 6),
        ("ScatterNet features of pictures, test examples", 2, 2),
    ]
    again = extract_features(examples(), Scatternet(), watched)
    assert len(heard) == 2
    assert torch.equal(first.inputs, again.inputs)
    extract_features(examples(), Scatternet(rotations=4), watched)
    assert len(heard) == 4


def test_ones_own_network_is_frozen_and_gets_its_weights_from_a_file(paths: Paths):
    weight, bias = torch.randn(3, 144), torch.randn(3)
    save_file({"layer.weight": weight, "layer.bias": bias}, paths.folder / "net.safetensors")
    torch.save({"layer.weight": weight, "layer.bias": bias}, paths.folder / "net.pt")
    expected = torch.relu(examples().inputs.flatten(1) @ weight.T + bias)
    for file in ("net.safetensors", "net.pt"):
        found = extract_features(examples(), UserExtractor(kind="net.py:Net", weights=file), paths)
        assert torch.allclose(found.inputs, expected, atol=1e-5)
        assert not found.inputs.requires_grad
        assert "frozen" in found.facts[1]
        assert "not known to Discreet" in found.not_covered[0]


def test_without_a_file_its_weights_are_at_least_the_same_each_time(paths: Paths):
    heard: list[str] = []
    watched = replace(paths, on_progress=lambda what, done, total: heard.append(what))
    own = UserExtractor(kind="net.py:Net", arguments={"width": 5})
    assert torch.equal(
        extract_features(examples(), own, watched).inputs, extract_features(examples(), own, watched).inputs
    )
    assert len(heard) == 2


def test_other_weights_or_other_code_give_other_features(paths: Paths):
    own = UserExtractor(kind="net.py:Net", weights="net.safetensors")
    save_file({"layer.weight": torch.ones(3, 144), "layer.bias": torch.ones(3)}, paths.folder / "net.safetensors")
    first = extract_features(examples(), own, paths).inputs
    save_file({"layer.weight": torch.ones(3, 144), "layer.bias": torch.zeros(3)}, paths.folder / "net.safetensors")
    second = extract_features(examples(), own, paths).inputs
    assert torch.allclose(first, second + 1, atol=1e-4)
    (paths.folder / "net.py").write_text(NET.replace("torch.relu", "-torch.relu"))
    assert torch.equal(extract_features(examples(), own, paths).inputs, -second)


@pytest.mark.parametrize(
    ("extractor", "sentence"),
    [
        ({"kind": "net.py:Centred"}, "mixes examples"),
        ({"kind": "net.py:Divided"}, "must return finite numbers, and Divided returned NaN or infinity"),
        ({"kind": "net.py:Endless"}, "must return finite numbers, and Endless returned NaN or infinity"),
        ({"kind": "net.py:Tuple"}, "must return a tensor .* returned tuple"),
        ({"kind": "net.py:Normal"}, "BatchNorm2d at 'norm' mixes the examples"),
        ({"kind": "net.py:Net", "weights": "none.pt"}, "There is no file"),
        ({"kind": "net.py:Net", "weights": "net.py"}, "damaged, or contains more than tensors"),
        ({"kind": "net.py:Net", "weights": "whole.pt"}, "damaged, or contains more than tensors"),
        ({"kind": "net.py:Net", "weights": "other.safetensors"}, "does not contain the weights of Net: .*Missing key"),
        ({"kind": "net.py:Net", "arguments": {"height": 3}}, "can't be called with"),
        ({"kind": "scatternet", "depth": 4}, "more than 16 pixels a side"),
    ],
)
def test_an_extractor_that_does_not_fit_is_told(extractor: dict[str, Any], sentence: str, paths: Paths):
    save_file({"weight": torch.ones(3)}, paths.folder / "other.safetensors")
    torch.save(nn.Linear(2, 2), paths.folder / "whole.pt")
    with pytest.raises(InvalidInput, match=sentence):
        extract_features(examples(), from_plain(AnyExtractor, extractor), paths)


def test_only_pictures_scatter(paths: Paths):
    flat = replace(examples(), inputs=torch.rand(6, 64), test_inputs=torch.rand(2, 64))
    with pytest.raises(InvalidInput, match=r"images as \(channels, height, width\), and got .* \(64,\)"):
        extract_features(flat, Scatternet(), paths)


@pytest.mark.parametrize(
    "task",
    [
        Features(of=Mnist(clients=3)),
        Features(of=Mnist(), extractor=UserExtractor(kind="net.py:Net", weights="net.pt", arguments={"width": 2})),
    ],
)
def test_a_file_gives_the_same_task(task: Features):
    assert from_plain(AnyTask, to_plain(task)) == task


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"kind": "features"}, "of: is missing"),
        ({"kind": "features", "of": {"kind": "digits"}}, "of"),
        ({"kind": "features", "of": {"kind": "mnist"}, "extractor": {"kind": "gabor"}}, "'scatternet' or your own"),
    ],
)
def test_what_names_no_features_is_refused(data: dict[str, Any], sentence: str):
    with pytest.raises(InvalidInput, match=sentence):
        from_plain(AnyTask, data)


def test_mnist_through_scatternet(data_dir: Path, paths: Paths):
    task = Features(of=Mnist(clients=10, limit=600))
    real = replace(paths, data=data_dir)
    first = load_task(task, torch.Generator().manual_seed(0), real)
    assert first.input_shape == (81, 7, 7)
    assert first.train.sizes == (60,) * 10
    assert first.name == "mnist-features"
    again = load_task(task, torch.Generator().manual_seed(0), real)
    assert torch.equal(first.train.inputs, again.train.inputs)
    assert first.train.order is not None
    assert again.train.order is not None
    assert torch.equal(first.train.order, again.train.order)


@pytest.mark.slow
def test_all_of_mnist_takes_90_seconds_at_most_and_3_from_the_cache(data_dir: Path, paths: Paths):
    real = replace(paths, data=data_dir)
    for seconds in (90, 3):
        started = time.monotonic()
        task = load_task(Features(of=Mnist()), torch.Generator().manual_seed(0), real)
        assert time.monotonic() - started < seconds
        assert task.train.inputs.shape == (60_000, 81, 7, 7)
    shutil.rmtree(paths.cache)  # a gigabyte, which pytest would keep
