"""Settings by which torch computes in 16 bits or in TF32 change neither what is clipped nor what is summed."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import pytest
import torch
from torch import Tensor, nn

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.broadcast import CLIP, Broadcast
from discreet.algorithms.clipping import Clip, clip, clip_factors
from discreet.algorithms.mechanisms import AdaptiveGaussian, DistributedGaussian
from discreet.algorithms.recipes.dp_fedavg import dp_fedavg
from discreet.algorithms.recipes.pfl import pfl
from discreet.algorithms.training import BroadcastGradients
from discreet.algorithms.training.batches import Batch
from discreet.algorithms.training.gradient_records import DenseGradient, Gradient, OuterProductGradient
from discreet.algorithms.training.layer_gradients import keep_rows
from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.algorithms.training.per_example import clipped_sum
from discreet.algorithms.training.position_sums import PositionSumGradient
from discreet.algorithms.training.word_gradients import WordGradient
from discreet.client_layers import kernel_choice
from discreet.client_layers.layer_mode import LayerMode
from discreet.client_layers.precision import GradientPrecision, precision_context
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import Simulation
from discreet.errors import InvalidInput
from discreet.params import Params, norms, repeat_for_clients
from discreet.randomness.streams import RunKey
from tests.federations import images

FLOAT = torch.float32
NORM = 0.1


def network() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(144, 16), nn.Tanh(), nn.Linear(16, 3))


class OwnAutocast(nn.Module):
    """A network that computes in bfloat16, as users write it to save time."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = network()

    def forward(self, inputs: Tensor) -> Tensor:
        with torch.autocast(inputs.device.type, dtype=torch.bfloat16):
            outputs: Tensor = self.inner(inputs)
        return outputs.float()


def prepare(module: nn.Module) -> tuple[ModuleLoss, Params]:
    params = {name: value.detach().clone() for name, value in module.named_parameters()}
    losses = nn.functional.cross_entropy
    return ModuleLoss.from_module(module, lambda out, targets: losses(out, targets, reduction="none")), params


def autocast() -> AbstractContextManager[object]:
    return torch.autocast("cpu", dtype=torch.bfloat16)


@contextmanager
def medium() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def default_of_16_bits() -> Iterator[None]:
    torch.set_default_dtype(torch.bfloat16)
    try:
        yield
    finally:
        torch.set_default_dtype(FLOAT)


@contextmanager
def as_on_a_gpu(precision: GradientPrecision) -> Iterator[None]:
    """Round the operands of layers as a GPU does in this precision, with torch's convolutions in place of kernels."""
    with pytest.MonkeyPatch.context() as patch, precision_context(precision), LayerMode():
        patch.setattr(kernel_choice, "is_on_device", lambda value: True)
        patch.setattr(kernel_choice, "serves", lambda *operands: False)
        yield


def bf16() -> AbstractContextManager[object]:
    return as_on_a_gpu("bf16")


def play(algorithm: Algorithm, loss: ModuleLoss, params: Params) -> Params:
    data = images(5, 4, 6, dtype=FLOAT)
    ready = algorithm.for_population(data.population)
    simulation = Simulation(ready, data, loss, RunKey.from_seed(2))
    state = ready.init(params)
    told = ready.broadcast(state, 0)
    gathered = EmbeddedEngine(simulation).gather(told, [0, 1, 2])
    noise = simulation.rows(told, [-1])
    return ready.server_step(state, told, gathered.total, 3, simulation.population, noise).params


ALGORITHMS = {
    "dp_fedavg": dp_fedavg(learning_rate=0.3, batch_size=4, clip_norm=NORM, noise_multiplier=0.5),
    "pfl": pfl(learning_rate=0.5, clip_norm=NORM, sampling_rate=0.5, noise_multiplier=0.5),
    "shares": Algorithm(
        trainer=BroadcastGradients(steps=(2,), sampling_rate=0.5, clip_norm=NORM, learning_rate=0.5),
        mechanism=DistributedGaussian(noise_multiplier=0.5),
    ),
}


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("setting", [autocast, default_of_16_bits])
def test_a_round_has_the_same_bits_whatever_the_caller_has_set(
    name: str, setting: Callable[[], AbstractContextManager[object]]
) -> None:
    models = [prepare(network()) for _ in range(2)]
    expected = play(ALGORITHMS[name], *models[0])
    with setting():
        found = play(ALGORITHMS[name], *models[1])
    assert all(torch.equal(found[each], expected[each]) for each in expected)


@pytest.mark.parametrize("setting", [nullcontext, autocast, medium, bf16])
@pytest.mark.parametrize("module", [network, OwnAutocast])
def test_each_example_is_clipped_as_it_is_summed(
    module: Callable[[], nn.Module], setting: Callable[[], AbstractContextManager[object]]
) -> None:
    """The norm of each example's gradient, as the sum has it, is the clip; also with an autocast in the network."""
    loss, params = prepare(module())
    data = images(6, dtype=FLOAT)
    for example in range(6):
        inputs, targets = data.inputs[None, example : example + 1] * 10, data.targets[None, example : example + 1]
        mask = torch.ones(1, 1, dtype=torch.bool)
        with setting():
            found = clipped_sum(
                loss, repeat_for_clients(params, 1), Batch(inputs, targets, mask, mask[:, 0]), Clip(NORM)
            )
        assert NORM * (1 - 2e-5) <= float(norms(found)[0]) <= NORM


@pytest.mark.parametrize("name", ["dp_fedavg", "pfl"])
def test_bf16_changes_gradients_and_leaves_every_client_within_its_clip(name: str) -> None:
    data = images(5, 4, 6, dtype=FLOAT)
    algorithm = ALGORITHMS[name].for_population(data.population)
    sums = []
    for setting in (nullcontext, bf16):
        loss, params = prepare(network())
        simulation = Simulation(algorithm, data, loss, RunKey.from_seed(2))
        with setting():
            sent = simulation.step(algorithm.broadcast(algorithm.init(params), 0), [0, 1, 2])
        sums.append(sent.rows if sent.clean is None else sent.clean)
    assert any(not torch.equal(sums[0][each], sums[1][each]) for each in sums[0])
    if name == "dp_fedavg":  # whole updates, in units of the clip; the test above has the examples of pfl
        assert 1 - 2e-5 <= float(norms(sums[1]).min()) <= float(norms(sums[1]).max()) <= 1


@pytest.mark.parametrize("setting", [autocast, medium, bf16])
def test_a_weighted_sum_is_in_double_precision_in_every_context(
    setting: Callable[[], AbstractContextManager[object]],
) -> None:
    generator = torch.Generator().manual_seed(0)
    left, right = torch.randn(64, 20, generator=generator), torch.randn(64, 30, generator=generator)
    weights = torch.rand(2, 32, generator=generator).double()
    shape, words = torch.Size((5, 6)), torch.arange(4).expand(64, 4)
    kinds: list[Gradient] = [
        DenseGradient(left),
        OuterProductGradient(left, right),
        PositionSumGradient(left.reshape(64, 4, 5), right[:, :24].reshape(64, 4, 6), keep_rows, shape),
        WordGradient(words, left.reshape(64, 4, 5), 4),
    ]
    for found in kinds:
        expected = found.weighted_sum(weights)
        assert expected.dtype == torch.float64
        with setting():
            assert torch.equal(found.weighted_sum(weights), expected)


def test_the_norm_of_gradients_of_16_bits_has_all_digits() -> None:
    """The norm itself must not be rounded to 16 bits."""
    value = (torch.arange(1, 4 * 700 + 1).reshape(4, 700) % 97).to(torch.bfloat16)
    found = DenseGradient(value)
    assert torch.allclose(found.squared_norms(), value.double().square().sum(dim=1), rtol=1e-5, atol=0)
    weights = clip_factors(found.squared_norms().sqrt(), 1.0)
    assert float(found.weighted_sum(weights[:, None]).norm(dim=1).max()) <= 1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_clip_of_16_bits_is_refused(dtype: torch.dtype) -> None:
    with pytest.raises(InvalidInput, match="float32 or float64, and 'w' is"):
        clip({"w": torch.ones(2, 3, dtype=dtype)}, 1.0)


def test_a_flag_next_to_one_leaves_room_for_rounding_whatever_the_default_type() -> None:
    told = Broadcast(0, {"w": torch.zeros(3)}, {CLIP: torch.tensor(1.0, dtype=torch.float64)})
    for flag in (0.1, 0.9, 0.99999, 1 - 1e-9):
        with default_of_16_bits():
            rows = AdaptiveGaussian(clip_norm=1.0, flag=flag).bound({"w": torch.full((2, 3), 9.0, dtype=FLOAT)}, told)
        assert float(norms(rows).max()) <= 1 - 4e-6
