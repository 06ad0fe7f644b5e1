"""The papers' networks: their parameter counts, and exact gradients for each example."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from discreet.algorithms.clipping import ROUNDING, Clip
from discreet.algorithms.training import per_example
from discreet.algorithms.training.batches import Batch
from discreet.algorithms.training.layer_gradients import supported_layers
from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.data.tasks.from_arrays import clients_from_arrays
from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput
from discreet.models import AnyModel
from discreet.models.networks.activation import TemperedActivation
from discreet.models.networks.emnist_cnn import EmnistCnn
from discreet.models.networks.femnist_cnn import FemnistCnn
from discreet.models.networks.linear import Linear
from discreet.models.networks.papernot_cnn import PapernotCnn
from discreet.models.networks.resnet18 import Resnet18
from discreet.models.networks.scatter_cnn import ScatterCnn
from discreet.models.user_module.supervised_module import SupervisedModule
from discreet.part import from_plain, to_plain

COUNTED: list[tuple[Any, tuple[int, ...], int, int]] = [
    (PapernotCnn(), (1, 28, 28), 10, 26_010),
    (PapernotCnn(), (3, 32, 32), 10, 550_570),
    (ScatterCnn(), (81, 7, 7), 10, 33_066),
    (ScatterCnn(norm_groups=81), (243, 8, 8), 10, 187_210),
    (Linear(norm_groups=27), (81, 7, 7), 10, 39_700),
    (Linear(norm_groups=27), (243, 8, 8), 10, 155_530),
    (FemnistCnn(), (1, 28, 28), 62, 214_590),
    (EmnistCnn(), (1, 28, 28), 62, 903_614),
    (EmnistCnn(), (1, 32, 32), 62, 903_614),
    (Resnet18(), (3, 32, 32), 10, 11_173_962),
    (Resnet18(), (3, 32, 32), 100, 11_220_132),
]
NAMES = [f"{model.kind} {shape} {classes}" for model, shape, classes, _ in COUNTED]
ONCE = [case for case in COUNTED if not isinstance(case[0], Resnet18)]


def task_of(shape: tuple[int, ...], classes: int = 10) -> Task:
    return clients_from_arrays(torch.zeros(2, *shape), [0, 1], sizes=[2], classes=classes)


def build(model: Any, shape: tuple[int, ...], classes: int = 10, seed: int = 0) -> nn.Module:
    made: nn.Module = model.build(task_of(shape, classes), torch.Generator().manual_seed(seed))
    return made


@pytest.mark.parametrize(("model", "shape", "classes", "count"), COUNTED, ids=NAMES)
def test_a_network_has_the_parameters_of_its_paper(model: Any, shape: tuple[int, ...], classes: int, count: int):
    module = build(model, shape, classes)
    assert sum(value.numel() for value in module.parameters()) == count
    assert not list(module.buffers())
    assert module(torch.randn(2, *shape)).shape == (2, classes)
    SupervisedModule(module, "classification")  # no layer that mixes examples
    loss = ModuleLoss.from_module(module, losses)
    assert supported_layers(loss, dict(module.named_parameters())) is not None


def test_resnet18_has_62_parameter_tensors():
    assert len(list(build(Resnet18(), (3, 32, 32)).parameters())) == 62


def losses(outputs: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(outputs, targets, reduction="none")


def clip_by_backward(module: nn.Module, inputs: Tensor, targets: Tensor, clip_norm: float) -> list[Tensor]:
    """Return Σ min(1, clip/‖g‖)·g by its definition: one backward pass for each example."""
    total = [torch.zeros_like(value) for value in module.parameters()]
    for example, target in zip(inputs, targets, strict=True):
        found = torch.autograd.grad(losses(module(example[None]), target[None]).sum(), list(module.parameters()))
        norm = float(torch.cat([each.flatten() for each in found]).norm())
        factor = min(1.0, ROUNDING * clip_norm / norm)
        total = [old + factor * each for old, each in zip(total, found, strict=True)]
    return total


@pytest.mark.parametrize(
    ("model", "shape", "classes"),
    [
        *((model, shape, classes) for model, shape, classes, count in ONCE if count < 200_000),
        (PapernotCnn(activation="relu"), (1, 28, 28), 10),
        (EmnistCnn(), (1, 28, 28), 5),
        (Resnet18(), (2, 8, 8), 3),
    ],
    ids=lambda value: getattr(value, "kind", str(value)),
)
def test_the_clipped_sum_is_that_of_a_loop_over_examples(model: Any, shape: tuple[int, ...], classes: int):
    generator = torch.Generator().manual_seed(3)
    module = build(model, shape, classes).double()
    inputs = torch.randn(3, *shape, generator=generator, dtype=torch.float64)
    targets = torch.randint(classes, (3,), generator=generator)
    params = {name: value.detach()[None] for name, value in module.named_parameters()}
    mask = torch.ones(1, 3, dtype=torch.bool)
    found = per_example.clipped_sum(
        ModuleLoss.from_module(module, losses),
        params,
        Batch(inputs[None], targets[None], mask, mask.any(dim=1)),
        Clip(0.5),
    )
    for name, expected in zip(params, clip_by_backward(module, inputs, targets, 0.5), strict=True):
        assert torch.allclose(found[name][0], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("model", "shape", "classes", "count"), ONCE, ids=NAMES[: len(ONCE)])
def test_the_generator_alone_decides_how_it_starts(model: Any, shape: tuple[int, ...], classes: int, count: int):
    first, again, other = (list(build(model, shape, classes, seed).parameters()) for seed in (0, 0, 1))
    assert all(map(torch.equal, first, again))
    if isinstance(model, Linear):
        assert not any(bool(value.any()) for value in first)
    else:
        assert not any(map(torch.equal, first, other))


def test_a_small_picture_gets_a_dark_margin():
    small, large = build(EmnistCnn(), (1, 28, 28), 62), build(EmnistCnn(), (1, 32, 32), 62)
    pictures = torch.rand(2, 1, 28, 28)
    assert torch.equal(small(pictures), large(nn.functional.pad(pictures, (2, 2, 2, 2))))


def test_normalisation_of_channels_is_each_examples_own():
    module = build(Linear(norm_groups=3), (81, 7, 7))
    normal = module.get_submodule("0")(torch.randn(2, 81, 7, 7) * 5 + 2)
    assert normal.reshape(2, 3, -1).mean(dim=2).abs().max() < 1e-5
    assert normal.reshape(2, 3, -1).std(dim=2, correction=0).tolist() == [pytest.approx([1.0] * 3, abs=1e-4)] * 2


@pytest.mark.parametrize(
    ("model", "shape", "sentence"),
    [
        (PapernotCnn(), (64,), r"needs inputs of the shape \(1, 28, 28\) or \(3, 32, 32\), and task .* has \(64,\)"),
        (ScatterCnn(), (1, 28, 28), r"\(81, 7, 7\) or \(243, 8, 8\)"),
        (FemnistCnn(), (1, 32, 32), r"\(1, 28, 28\), and task"),
        (EmnistCnn(), (3, 32, 32), r"\(1, 32, 32\) or \(1, 28, 28\)"),
        (Resnet18(), (3, 4, 4), "at least 8 pixels per side"),
        (ScatterCnn(norm_groups=7), (81, 7, 7), "must divide the 81 channels .* got 7. Use one of 1, 3, 9, 27, 81"),
        (Linear(norm_groups=7), (64,), "needs inputs with channels"),
    ],
)
def test_what_does_not_fit_is_told(model: Any, shape: tuple[int, ...], sentence: str):
    with pytest.raises(InvalidInput, match=sentence):
        build(model, shape)


@pytest.mark.parametrize(
    "model",
    [
        PapernotCnn(activation=TemperedActivation(s=1.58, temperature=3, o=0.71)),
        ScatterCnn(norm_groups=9),
        Resnet18(),
        Linear(),
    ],
)
def test_a_file_gives_the_same_network(model: Any):
    assert from_plain(AnyModel, to_plain(model)) == model
