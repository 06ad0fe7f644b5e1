"""Per-example gradients layer by layer: the same as by nested vmap, for every known layer and both ways to run them."""

import math

import pytest
import torch
from torch import Tensor, nn

from discreet.batches import Batch
from discreet.params import Params
from discreet.training import per_example
from discreet.training.layers import layers_of
from discreet.training.module_loss import ModuleLoss

IMAGES, VECTORS, SEQUENCES = (2, 8, 8), (6,), (4, 6)
NETWORKS: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "linear": (nn.Linear(6, 3), VECTORS),
    "no bias": (nn.Sequential(nn.Linear(6, 5, bias=False), nn.ReLU(inplace=True), nn.Linear(5, 3)), VECTORS),
    "convolution": (
        nn.Sequential(
            nn.Conv2d(2, 4, 3, stride=2, padding=1), nn.Tanh(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 3)
        ),
        IMAGES,
    ),
    "normalised": (
        nn.Sequential(
            nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.LayerNorm(144), nn.Linear(144, 3)
        ),
        IMAGES,
    ),
    "sequence": (nn.Sequential(nn.Linear(6, 5), nn.LayerNorm(5), nn.Tanh(), nn.Flatten(), nn.Linear(20, 3)), SEQUENCES),
}


def losses(outputs: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(outputs, targets, reduction="none")


def case(name: str) -> tuple[ModuleLoss, Params, Batch]:
    torch.manual_seed(2)
    module, form = NETWORKS[name]
    module = module.double()
    params = {
        key: torch.stack([value.detach() * factor for factor in (1.0, 0.5, -1.0)])
        for key, value in module.named_parameters()
    }
    mask = torch.tensor([[True] * 5, [True, False, True, False, False], [False] * 5])
    inputs = torch.randn(3, 5, *form, dtype=torch.float64)
    return ModuleLoss.of(module, losses), params, Batch(inputs, torch.randint(3, (3, 5)), mask, mask.any(dim=1))


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("large", [1, 10**9], ids=["one by one", "stacked"])
def test_layer_by_layer_is_example_by_example(name: str, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    loss, params, batch = case(name)
    assert layers_of(loss, params) is not None
    monkeypatch.setattr(per_example, "LARGE", large)
    found = per_example.clipped_sum(loss, params, batch, 0.7)
    expected = per_example._by_vmap(loss, params, batch, 0.7)
    for key in params:
        assert torch.allclose(found[key], expected[key], rtol=1e-9, atol=1e-12)
    assert all(float(value[2].abs().sum()) == 0 for value in found.values())  # that client had no examples


@pytest.mark.parametrize("large", [1, 10**9], ids=["one by one", "stacked"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e300])
def test_an_example_that_is_not_finite_counts_for_nothing(
    large: int, bad: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss, params, batch = case("convolution")
    monkeypatch.setattr(per_example, "LARGE", large)
    inputs = batch.inputs.clone()
    inputs[0, 1] = bad
    mask = batch.mask.clone()
    mask[0, 1] = False
    found = per_example.clipped_sum(loss, params, batch._replace(inputs=inputs), 0.7)
    without = per_example.clipped_sum(loss, params, batch._replace(mask=mask), 0.7)
    moved = math.sqrt(sum(float((found[key] - without[key]).square().sum()) for key in params))
    assert moved <= 0.7


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layer(torch.tanh(self.layer(inputs)))


def test_a_layer_used_twice_goes_by_vmap_and_is_right() -> None:
    module = Tied().double()
    params = {key: value.detach()[None] for key, value in module.named_parameters()}
    inputs, targets = torch.randn(1, 4, 6, dtype=torch.float64), torch.randint(6, (1, 4))
    batch = Batch(inputs, targets, torch.ones(1, 4, dtype=torch.bool), torch.ones(1, dtype=torch.bool))
    found = per_example.clipped_sum(ModuleLoss.of(module, losses), params, batch, 0.3)
    expected = per_example._by_vmap(ModuleLoss.of(module, losses), params, batch, 0.3)
    assert torch.allclose(found["layer.weight"], expected["layer.weight"])


def test_a_network_with_an_unknown_layer_goes_by_vmap() -> None:
    assert (
        layers_of(ModuleLoss.of(nn.Sequential(nn.Linear(3, 3), nn.PReLU()), losses), {"1.weight": torch.zeros(1)})
        is None
    )
    assert layers_of(ModuleLoss.of(nn.Conv2d(4, 4, 3, groups=2), losses), {"weight": torch.zeros(1)}) is None
    assert layers_of(lambda params, inputs, targets: inputs, {}) is None
