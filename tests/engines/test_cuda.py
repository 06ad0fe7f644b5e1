"""A GPU computes the same sums, including recorded steps. Skipped without a CUDA device."""

import pytest
import torch
from torch import nn

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.clipping import Clip, clip_factors
from discreet.algorithms.recipes.dp_fedavg import dp_fedavg
from discreet.algorithms.recipes.fedavg import fedavg
from discreet.algorithms.recipes.pfl import pfl
from discreet.algorithms.sparsifiers import RandomK, TopK
from discreet.algorithms.training import (
    DpSgd,
    GradientDescent,
    LocalSgd,
    client_turns,
    compiled_step,
    cuda_graphs,
)
from discreet.algorithms.training.batches import Batch
from discreet.algorithms.training.gradient_records import DenseGradient, Gradient, OuterProductGradient
from discreet.algorithms.training.gradient_rules import Asam, Blur, L1Clip, Sam
from discreet.algorithms.training.layer_gradients import keep_rows
from discreet.algorithms.training.per_example import clipped_sum
from discreet.algorithms.training.position_sums import PositionSumGradient
from discreet.algorithms.training.schedules import Harmonic
from discreet.algorithms.training.word_gradients import WordGradient
from discreet.client_layers.precision import GradientPrecision
from discreet.client_layers.tensor_core_switches import tensor_cores
from discreet.engines.embedded import EmbeddedEngine, fitting_block_size, measure_client_bytes
from discreet.engines.engine import Simulation
from discreet.engines.reference import ReferenceEngine
from discreet.errors import DiscreetError
from discreet.models.user_module.supervised_module import SupervisedModule
from discreet.params import Params
from discreet.randomness.streams import RunKey
from tests.algorithms.training import user_modules
from tests.algorithms.training.test_isolation import (
    REFUSED,
    batch_of,
    largest_move,
    prepare_module,
    sum_gradients,
    update_after,
)
from tests.federations import images

pytestmark = pytest.mark.cuda

GPU = torch.device("cuda")
CATALOG = [
    fedavg(learning_rate=0.3, batch_size=2, epochs=2, momentum=0.5),
    pfl(learning_rate=0.5, clip_norm=0.5, sampling_rate=0.5, noise_multiplier=1e-6),
    dp_fedavg(learning_rate=0.3, batch_size=4, clip_norm=0.5, noise_multiplier=1e-6),
    Algorithm(
        trainer=DpSgd(steps=(4,), sampling_rate=0.9, clip_norm=0.5, noise_multiplier=1e-6, learning_rate=0.5),
    ),
    Algorithm(
        trainer=DpSgd(steps=(4,), sampling_rate=0.9, clip_norm=0.5, noise_multiplier=1e-6, learning_rate=0.5, piece=3),
    ),
    Algorithm(
        trainer=LocalSgd(
            learning_rate=0.3,
            batch_size=4,
            steps=3,
            gradient_clip=L1Clip(bound=2.0),
            perturbation=Asam(rho=0.1),
            regulariser=Blur(radius=0.1, strength=0.5),
        ),
        sparsifier=TopK(fraction=0.4, per_layer=False),
    ),
    Algorithm(
        trainer=GradientDescent(
            learning_rate=0.9, iterations=(3, 4), perturbation=Sam(rho=0.1), schedule=Harmonic(gamma=3.0)
        ),
        sparsifier=RandomK(fraction=0.4, scaled=True),
    ),
]


def test_tf32_changes_neither_the_norm_that_is_clipped_nor_the_sum() -> None:
    """TF32 keeps 11 bits of a factor: in the sum it would lengthen a clipped gradient by up to 0.1 %."""
    generator = torch.Generator().manual_seed(0)
    left, right = torch.randn(64, 200, generator=generator) * 9, torch.randn(64, 300, generator=generator)
    left, right = left.to(GPU), right.to(GPU)
    positions = left.reshape(64, 4, 50), right.reshape(64, 4, 75)
    kinds: tuple[Gradient, ...] = (
        DenseGradient(left),
        OuterProductGradient(left, right),
        PositionSumGradient(*positions, keep_rows, torch.Size((50, 75))),
        WordGradient(torch.arange(4, device=GPU).expand(64, 4), positions[0], 4),
    )
    with tensor_cores(allowed=True):
        for kind in kinds:
            weights = clip_factors(kind.squared_norms().sqrt(), 1.0)
            each = kind.weighted_sum(weights[:, None]).flatten(1)
            assert float(each.norm(dim=1).max()) <= 1
            assert torch.allclose(kind.weighted_sum(weights[None]).flatten(), each.sum(dim=0), rtol=1e-12, atol=1e-12)


def network(dropout: float = 0.0) -> SupervisedModule:
    torch.manual_seed(3)
    layers = [nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.Tanh(), nn.MaxPool2d(2), nn.Flatten()]
    return SupervisedModule(nn.Sequential(*layers, nn.Dropout(dropout), nn.Linear(64, 3)).double(), "classification")


def train(algorithm: Algorithm, device: torch.device, rounds: int, dropout: float = 0.0, slow: bool = False) -> Params:
    key, data, model = RunKey.from_seed(9), images(6, 6, 9, 5).move_to(device), network(dropout).move_to(device)
    simulation = Simulation(algorithm, data, model.loss, key)
    engine = ReferenceEngine(simulation) if slow else EmbeddedEngine(simulation)
    state = algorithm.init(model.params)
    for round in range(rounds):
        broadcast = algorithm.broadcast(state, round)
        gathered = engine.gather(broadcast, [0, 1, 2, 3])
        state = algorithm.server_step(
            state,
            broadcast,
            gathered.total,
            len(gathered.contributors),
            data.population,
            key.rows(round, b"", [-1], device),
        )
    return {name: value.cpu() for name, value in state.params.items()}


@pytest.mark.parametrize("algorithm", CATALOG, ids=lambda a: a.trainer.kind + a.mechanism.kind)
def test_a_gpu_trains_what_a_host_trains_through_recordings_too(algorithm: Algorithm) -> None:
    """Six rounds, so that steps are replayed; the noise differs between devices, and is almost zero."""
    host, gpu = train(algorithm, torch.device("cpu"), 6, slow=True), train(algorithm, GPU, 6)
    for name in host:
        assert (host[name] - gpu[name]).abs().max() < 1e-4


class SmallNetwork(nn.Module):
    """Convolutions of both kinds that the kernels tell apart, one with a stride, and a dense layer, by a user."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 24, 3, stride=2)
        self.dropout, self.head = nn.Dropout(0.25), nn.Linear(24 * 9, 3)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(self.second(torch.relu(self.first(inputs))))
        outputs: torch.Tensor = self.head(self.dropout(hidden.flatten(1)))
        return outputs


def train_in(
    precision: GradientPrecision,
    algorithm: Algorithm,
    device: torch.device = GPU,
    *,
    compile: bool = False,
    sizes: tuple[int, ...] = (6, 6, 9, 5),
) -> Params:
    """Train a user's network for six rounds in float32, so that steps are replayed, and return how it moved."""
    torch.manual_seed(3)
    module = SmallNetwork()
    module.dropout.p = 0.0
    model = SupervisedModule(module, "classification").move_to(device)
    key, data = RunKey.from_seed(9), images(*sizes, dtype=torch.float32).move_to(device)
    ready = algorithm.for_population(data.population)
    engine = EmbeddedEngine(Simulation(ready, data, model.loss, key, precision=precision, compile=compile))
    state = ready.init(model.params)
    for round in range(6):
        broadcast = ready.broadcast(state, round)
        total = engine.gather(broadcast, [0, 1, 2, 3]).total
        noise = key.rows(round, b"", [-1], device)
        state = ready.server_step(state, broadcast, total, 4, data.population, noise)
    assert device.type == "cpu" or model.loss.recordings.kept
    return {name: (value - model.params[name]).cpu() for name, value in state.params.items()}


@pytest.mark.parametrize(("precision", "most"), [("float32", 1e-4), ("tf32", 1e-2), ("bf16", 5e-2)])
@pytest.mark.parametrize("algorithm", CATALOG[:4], ids=["fedavg", "pfl", "dp_fedavg", "options"])
def test_a_users_network_moves_as_on_a_host_in_every_precision_and_repeats_its_bits(
    algorithm: Algorithm, precision: GradientPrecision, most: float
) -> None:
    host = train_in("float32", algorithm, torch.device("cpu"))
    first, again = (train_in(precision, algorithm) for _ in range(2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    if algorithm in CATALOG[1:3]:  # clips keep their steps short; others drive models apart, and choose coordinates
        off = sum(float((first[name] - host[name]).square().sum()) for name in host)
        assert off**0.5 <= most * sum(float(value.square().sum()) for value in host.values()) ** 0.5


@pytest.mark.parametrize(("precision", "most"), [("float32", 1e-4), ("tf32", 1e-2), ("bf16", 5e-2)])
def test_compiled_steps_move_a_model_as_on_a_host_and_repeat_their_bits(
    precision: GradientPrecision, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients of equal size take all steps of a round in one recording."""
    monkeypatch.setattr(compiled_step, "try_to_compile", compiled_step.CompiledStep.compile)  # a failure is an error
    monkeypatch.setattr(cuda_graphs, "try_to_compile", compiled_step.CompiledStep.compile)
    host = train_in("float32", CATALOG[2], torch.device("cpu"), sizes=(8, 8, 8, 8))
    first, again = (train_in(precision, CATALOG[2], compile=True, sizes=(8, 8, 8, 8)) for _ in range(2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    off = sum(float((first[name] - host[name]).square().sum()) for name in host)
    assert off**0.5 <= most * sum(float(value.square().sum()) for value in host.values()) ** 0.5


@pytest.mark.parametrize("sizes", [(6, 6, 9, 5), (8, 8, 8, 8)])
def test_clients_that_step_in_turns_move_a_model_as_on_a_host(
    sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = train_in("float32", CATALOG[2], torch.device("cpu"), sizes=sizes)
    monkeypatch.setattr(client_turns, "LARGE", {"cuda": 1})
    found = train_in("float32", CATALOG[2], sizes=sizes)
    off = sum(float((found[name] - host[name]).square().sum()) for name in host)
    assert off**0.5 <= 1e-4 * sum(float(value.square().sum()) for value in host.values()) ** 0.5


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_a_round_never_waits_for_the_device() -> None:
    """torch raises an error where the host waits. A round that records a step does wait."""
    algorithm, key = fedavg(learning_rate=0.3, batch_size=4, epochs=1), RunKey.from_seed(9)
    data, model = images(8, 8, 8, 8).move_to(GPU), network(0.5).move_to(GPU)
    engine, state = EmbeddedEngine(Simulation(algorithm, data, model.loss, key)), algorithm.init(model.params)
    try:
        for round in range(8):
            torch.cuda.set_sync_debug_mode("error" if round > 4 else "default")
            broadcast = algorithm.broadcast(state, round)
            total = engine.gather(broadcast, [0, 1, 2, 3]).total
            noise = key.rows(round, b"", [-1], GPU)
            state = algorithm.server_step(state, broadcast, total, 4, data.population, noise)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_the_kernels_are_used_where_they_should_be(monkeypatch: pytest.MonkeyPatch) -> None:
    from discreet.client_layers import kernel_operators

    called = []
    for name in ("outputs", "input_gradients", "weight_gradients"):
        function = getattr(kernel_operators, name)
        monkeypatch.setattr(
            kernel_operators,
            name,
            lambda *values, name=name, function=function: called.append(name) or function(*values),
        )
    train_in("bf16", CATALOG[2])
    assert {*called} == {"outputs", "input_gradients", "weight_gradients"}
    called.clear()
    train_in("bf16", CATALOG[1])  # DP-SGD forms each example's product by the kernel too
    assert "weight_gradients" in called
    called.clear()
    train_in("float32", CATALOG[2])
    assert not called


def test_a_seed_repeats_a_gpu_run_with_dropout_bit_for_bit() -> None:
    first, again = (train(CATALOG[0], GPU, 6, dropout=0.5) for _ in range(2))
    assert all(torch.equal(first[name], again[name]) for name in first)


def test_replayed_dropout_draws_anew_in_every_step() -> None:
    """If a recording repeated its masks, two rounds from one model would move it equally."""
    algorithm, key = fedavg(learning_rate=0.3, batch_size=9, steps=5), RunKey.from_seed(1)
    data, model = images(9, 9).move_to(GPU), network(0.5).move_to(GPU)
    engine = EmbeddedEngine(Simulation(algorithm, data, model.loss, key))
    state = algorithm.init(model.params)
    moved = [engine.gather(algorithm.broadcast(state, round), [0, 1]).total["6.weight"] for round in range(6)]
    assert len({tuple(each.flatten().tolist()) for each in moved}) == 6


def test_the_block_is_bounded_by_memory_that_was_measured() -> None:
    data, model = images(6, 6, 9, 5).move_to(GPU), network().move_to(GPU)
    simulation = Simulation(CATALOG[0], data, model.loss, RunKey.from_seed(1))
    broadcast = CATALOG[0].broadcast(CATALOG[0].init(model.params), 0)
    one = measure_client_bytes(simulation, broadcast)
    assert one > 4 * 8 * 239  # at least a few copies of the model
    assert fitting_block_size(simulation, broadcast, memory=int(3.5 * one)) == 3


class HostRead(nn.Module):
    """Reads a number from the device while it runs, which can't be recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 3)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        flat = inputs.flatten(1)
        shift = torch.tensor([0.5], dtype=flat.dtype).to(flat.device)  # a copy from ordinary memory
        outputs: torch.Tensor = self.layer(flat) + shift
        return outputs


def test_what_cannot_be_recorded_trains_all_the_same() -> None:
    data, key, algorithm = images(6, 6).move_to(GPU), RunKey.from_seed(1), CATALOG[0]
    model = SupervisedModule(HostRead().double(), "classification").move_to(GPU)
    engine = EmbeddedEngine(Simulation(algorithm, data, model.loss, key))
    state = algorithm.init(model.params)
    for round in range(6):
        broadcast = algorithm.broadcast(state, round)
        gathered = engine.gather(broadcast, [0, 1])
        state = algorithm.server_step(
            state,
            broadcast,
            gathered.total,
            len(gathered.contributors),
            data.population,
            key.rows(round, b"", [-1], GPU),
        )
    assert not model.loss.recordings.kept
    other = train(algorithm, GPU, 6, dropout=0.5)  # and afterwards others are recorded as before
    assert all(bool(torch.isfinite(value).all()) for value in other.values())


@pytest.mark.parametrize("name", sorted(set(user_modules.ALL) - REFUSED))
@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_a_users_module_keeps_examples_and_clients_apart_on_a_gpu(name: str):
    supervised, task = prepare_module(name, device=GPU)
    assert largest_move(supervised, task) <= 2 * (1 + 1e-5)
    first, second = update_after(supervised, task, None), update_after(supervised, task, 0)
    for key in first:
        torch.testing.assert_close(first[key], second[key], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["gru", "lstm", "gru cell"])
def test_a_recurrent_layers_clipped_sum_is_the_hosts(name: str):
    (host, task), (gpu, moved) = prepare_module(name), prepare_module(name, device=GPU)
    expected, found = sum_gradients(host, batch_of(task)), sum_gradients(gpu, batch_of(moved))
    for key in expected:
        torch.testing.assert_close(found[key].cpu(), expected[key], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["a bank in a list", "a bank in a global", "a hidden state", "a count of calls"])
def test_a_module_that_keeps_state_is_refused_on_a_gpu(name: str):
    with pytest.raises(DiscreetError, match="keeps state"):
        prepare_module(name, device=GPU)


@pytest.mark.parametrize("module", [nn.Conv2d(64, 64, 3, padding=1), nn.Embedding(7, 4)], ids=["factors", "words"])
def test_a_clipped_sum_of_clients_who_share_a_model_is_the_hosts(module: nn.Module) -> None:
    """The convolution is so wide that its gradients stay factors."""
    torch.manual_seed(0)
    wide = isinstance(module, nn.Conv2d)
    inputs = torch.randn(3, 5, 64, 2, 2) if wide else torch.randint(7, (3, 5, 6))
    network = nn.Sequential(module, nn.Flatten(), nn.Linear(256 if wide else 24, 3))
    batch = Batch(inputs, torch.randint(3, (3, 5)), torch.rand(3, 5) < 0.7, None)
    params = {name: value.detach().clone() for name, value in network.named_parameters()}
    expected = clipped_sum(SupervisedModule(network, "classification").loss, params, batch, Clip(0.5), shared=True)
    moved = Batch(batch.inputs.to(GPU), batch.targets.to(GPU), batch.mask.to(GPU), None)
    on_gpu = {name: value.to(GPU) for name, value in params.items()}
    loss = SupervisedModule(network.to(GPU), "classification").loss
    found, again = (clipped_sum(loss, on_gpu, moved, Clip(0.5), shared=True) for _ in range(2))
    for key in expected:
        torch.testing.assert_close(found[key].cpu(), expected[key], rtol=1e-4, atol=1e-5)
        assert torch.equal(found[key], again[key])
