"""Which layers of a network run in the precision that is in force, and that all else is left to torch."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from discreet.algorithms.training.batches import Batch
from discreet.algorithms.training.per_example import gradients_by_way
from discreet.algorithms.training.shipped_modules import has_global_overrides
from discreet.client_layers import client_convolution, client_product, kernel_choice, layer_mode
from discreet.client_layers.client_product import WORTH_CASTING, multiply
from discreet.client_layers.layer_mode import LayerMode
from discreet.client_layers.precision import (
    in_float32,
    precision_context,
    precision_in_force,
)
from discreet.errors import Unsupported
from discreet.models.user_module.supervised_module import SupervisedModule
from discreet.params import Params, repeat_for_clients

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
CLIENTS, IMAGES = 2, 3


@pytest.fixture
def replacements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the mode serve a CPU, whose convolutions torch then does; list which layers it replaced."""
    names: list[str] = []

    def count(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def run(*arguments: object) -> Tensor:
            names.append(name)
            return function(*arguments)

        return run

    monkeypatch.setattr(kernel_choice, "is_on_device", lambda value: True)
    monkeypatch.setattr(kernel_choice, "serves", lambda *operands: False)
    monkeypatch.setattr(layer_mode, "convolve", count("convolution", client_convolution.convolve))
    monkeypatch.setattr(layer_mode, "linear", count("linear", client_product.linear))
    return names


IMAGE_LAYERS: dict[str, Callable[[], nn.Module]] = {
    "two dimensions": lambda: nn.Conv2d(4, 6, 3),
    "no bias": lambda: nn.Conv2d(4, 6, 3, bias=False),
    "a stride, padding and dilation": lambda: nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(1, 2)),
    "groups": lambda: nn.Conv2d(32, 32, 3, groups=2),
    "same": lambda: nn.Conv2d(4, 6, 3, padding="same"),
    "same with an even kernel": lambda: nn.Conv2d(4, 6, (2, 4), padding="same", dilation=(1, 3)),
    "valid": lambda: nn.Conv2d(4, 6, 3, padding="valid", stride=2),
    "padding by reflection": lambda: nn.Conv2d(4, 6, 3, padding=1, padding_mode="reflect"),
}
SEQUENCE_LAYERS: dict[str, Callable[[], nn.Module]] = {
    "one dimension": lambda: nn.Conv1d(4, 6, 3),
    "a stride, padding and dilation": lambda: nn.Conv1d(4, 6, 3, stride=2, padding=2, dilation=3),
    "same with an even kernel": lambda: nn.Conv1d(4, 6, 4, padding="same"),
}


def gradients(layer: nn.Module, inputs: Tensor) -> Params:
    """Return each client's gradient of the sum of squared outputs, with weights of its own."""
    params = {name: value.detach() for name, value in layer.named_parameters()}
    own = {name: torch.stack([value, value.flip(0)]) for name, value in params.items()}
    found: Params = vmap(grad(lambda each, x: functional_call(layer, each, (x,)).square().sum()))(own, inputs)
    return found


@pytest.mark.parametrize(
    ("layer", "size"),
    [(IMAGE_LAYERS[name], (7, 6)) for name in IMAGE_LAYERS]
    + [(SEQUENCE_LAYERS[name], (16,)) for name in SEQUENCE_LAYERS],
    ids=[*IMAGE_LAYERS, *(f"sequence: {name}" for name in SEQUENCE_LAYERS)],
)
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")  # torch's own, when it is the other way
def test_a_convolution_of_any_kind_is_replaced_and_has_the_same_gradients(
    layer: Callable[[], nn.Module], size: tuple[int, ...], replacements: list[str]
) -> None:
    torch.manual_seed(1)
    network = layer()
    channels = 32 if network.groups == 2 else 4
    inputs = torch.randn(CLIENTS, IMAGES, channels, *size)
    expected = gradients(network, inputs)
    assert not replacements
    with precision_context("tf32"), LayerMode():
        found = gradients(network, inputs)
    assert replacements == ["convolution"]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)


def test_one_image_without_a_batch_is_convolved_too(replacements: list[str]) -> None:
    layer, image = nn.Conv2d(4, 6, 3), torch.randn(4, 7, 6)
    with precision_context("tf32"), LayerMode():
        assert layer(image).shape == (6, 5, 4)
        assert nn.Conv1d(4, 6, 3)(torch.randn(4, 9)).shape == (6, 7)
    assert replacements == ["convolution", "convolution"]


LEFT_TO_TORCH: dict[str, Callable[[], object]] = {
    "double precision": lambda: nn.Conv2d(4, 6, 3).double()(torch.randn(1, 4, 7, 6).double()),
    "a depthwise convolution": lambda: nn.Conv2d(4, 8, 3, groups=4)(torch.randn(1, 4, 7, 6)),
    "three dimensions": lambda: nn.Conv3d(4, 6, 3)(torch.randn(1, 4, 5, 5, 5)),
    "no images": lambda: nn.Conv2d(4, 6, 3)(torch.randn(0, 4, 7, 6)),
    "a product in double precision": lambda: nn.Linear(3, 2).double()(torch.randn(4, 3).double()),
}


@pytest.mark.parametrize("name", LEFT_TO_TORCH)
def test_what_the_kernels_do_not_serve_is_left_to_torch(name: str, replacements: list[str]) -> None:
    with precision_context("bf16"), LayerMode():
        LEFT_TO_TORCH[name]()
    assert not replacements


def test_a_networks_own_autocast_decides_in_which_type_it_computes(replacements: list[str]) -> None:
    with precision_context("bf16"), LayerMode(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert nn.Conv2d(4, 6, 3)(torch.randn(1, 4, 7, 6)).dtype == torch.bfloat16
    assert not replacements


@pytest.mark.parametrize("channels", [3, 4])
def test_a_shape_that_does_not_fit_has_torchs_own_message(channels: int, replacements: list[str]) -> None:
    inputs = torch.randn(1, channels, 2, 2)  # too few channels, or smaller than the kernel
    with pytest.raises(RuntimeError) as expected:
        nn.functional.conv2d(inputs, torch.randn(6, 4, 3, 3))
    with precision_context("tf32"), LayerMode(), pytest.raises(RuntimeError) as found:
        nn.functional.conv2d(inputs, torch.randn(6, 4, 3, 3))
    assert str(found.value) == str(expected.value)


def test_bf16_rounds_operands_and_adds_up_in_float32(replacements: list[str]) -> None:
    torch.manual_seed(1)
    x, w = torch.randn(2, 32, 6, 6), torch.randn(8, 32, 3, 3)
    with precision_context("bf16"), LayerMode():
        found = nn.functional.conv2d(x, w)
    torch.testing.assert_close(found, nn.functional.conv2d(x.bfloat16().float(), w.bfloat16().float()))
    assert 1e-4 < float((found - nn.functional.conv2d(x, w)).norm() / found.norm()) < 1e-2


def test_a_linear_layer_is_rounded_if_its_product_is_large_enough_to_gain(replacements: list[str]) -> None:
    torch.manual_seed(1)
    layer, few, many = nn.Linear(200, 150), torch.randn(3, 200), torch.randn(4, WORTH_CASTING, 200)
    expected = many.bfloat16().float() @ layer.weight.bfloat16().float().mT + layer.bias
    with precision_context("bf16"), LayerMode():
        torch.testing.assert_close(layer(few), few @ layer.weight.mT + layer.bias)
        torch.testing.assert_close(layer(many), expected)
        assert layer(few[0]).shape == (150,)
    assert replacements == ["linear"] * 3
    with precision_context("tf32"), LayerMode():
        layer(many)  # torch's product, whose switch allows TF32
    assert len(replacements) == 3
    assert multiply(many[:1], layer.weight.mT[None]).dtype == torch.float32


def test_a_trial_inside_a_step_is_in_float32(replacements: list[str]) -> None:
    layer, inputs = nn.Conv2d(4, 6, 3), torch.randn(1, 4, 7, 6)
    with precision_context("bf16"), LayerMode():
        with in_float32():
            assert precision_in_force() == "float32"
            assert torch.equal(layer(inputs), nn.functional.conv2d(inputs, layer.weight, layer.bias))
        assert not replacements
        layer(inputs)
    assert replacements == ["convolution"]


def test_the_mode_is_known_as_ours_and_no_other_is() -> None:
    class Mine(LayerMode):
        """A user's own mode that calls itself ours."""

    assert not has_global_overrides()
    with LayerMode():
        assert not has_global_overrides()
    with Mine():
        assert has_global_overrides()


def test_only_rules_of_this_package_may_see_all_clients(replacements: list[str]) -> None:
    """A user's module gets the layers of this package, and its own vmap rules are refused as before."""

    class WholeBatch(torch.autograd.Function):
        @staticmethod
        def forward(x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def setup_context(ctx: object, inputs: tuple[Tensor, ...], output: Tensor) -> None: ...

        @staticmethod
        def backward(ctx: object, *gradients: Tensor) -> Tensor:
            return gradients[0]

        @staticmethod
        def vmap(info: object, in_dims: tuple[int, ...], x: Tensor) -> tuple[Tensor, int]:
            return x.flip(in_dims[0]), in_dims[0]

    class Network(nn.Module):
        def __init__(self, *, whole: bool) -> None:
            super().__init__()
            self.layer, self.whole = nn.Conv2d(1, 3, 6), whole

        def forward(self, inputs: Tensor) -> Tensor:
            outputs = self.layer(inputs).flatten(1)
            return WholeBatch.apply(outputs) if self.whole else outputs

    inputs, targets = torch.randn(CLIENTS, IMAGES, 1, 6, 6), torch.zeros(CLIENTS, IMAGES, dtype=torch.int64)
    for whole in (False, True):
        model = SupervisedModule(Network(whole=whole), "classification")
        params = repeat_for_clients(model.params, CLIENTS)
        client = vmap(grad(lambda p, x, y, model=model: model.loss(p, x, y).sum()))
        with precision_context("tf32"), LayerMode():
            if whole:
                with pytest.raises(Unsupported, match="WholeBatch has a vmap rule of its own"):
                    client(params, inputs, targets)
            else:
                client(params, inputs, targets)
    assert replacements == ["convolution"] * 2


class UserNetwork(nn.Module):
    """A network of a user's own, whose plan is tried before it is used."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Conv2d(1, 4, 3, padding=1), nn.Linear(4 * 36, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.head(torch.relu(self.layer(inputs)).flatten(1))
        return outputs


@pytest.mark.parametrize(
    "module", [UserNetwork, lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.Tanh(), nn.Conv2d(4, 3, 4))]
)
def test_dp_sgd_finds_its_faster_way_in_every_precision_and_forms_products_by_the_same_kernels(
    module: Callable[[], nn.Module], replacements: list[str]
) -> None:
    torch.manual_seed(1)
    model = SupervisedModule(module(), "classification")
    mask = torch.ones(CLIENTS, IMAGES, dtype=torch.bool)
    targets = torch.zeros((CLIENTS, IMAGES) + (1, 1) * isinstance(model.loss.module, nn.Sequential), dtype=torch.int64)
    batch = Batch(torch.randn(CLIENTS, IMAGES, 1, 6, 6), targets, mask, None)
    params = repeat_for_clients(model.params, CLIENTS)
    exact = gradients_by_way(model.loss, params, batch)
    model.loss.plans.clear()
    with precision_context("bf16"), LayerMode():
        found = gradients_by_way(model.loss, params, batch)
    assert found.keys() == exact.keys() == {"stacked", "first client alone"}
    weights = torch.ones(CLIENTS, IMAGES)
    for name, value in exact["stacked"].items():
        one, other = (each.weighted_sum(weights) for each in (value, found["stacked"][name]))
        assert float((one - other).norm() / one.norm()) < 2e-2
    assert replacements
