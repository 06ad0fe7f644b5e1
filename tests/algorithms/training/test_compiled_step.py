"""Compiled local steps do what the steps do, with the same random numbers; one that can't be compiled still runs."""

import pickle
from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.training import LocalSgd, compiled_step, cuda_graphs
from discreet.algorithms.training.compiled_step import CompiledStep, compile_steps, try_to_compile
from discreet.algorithms.training.cuda_graphs import Recordings
from discreet.algorithms.training.gradient_rules import L2Clip, Sam
from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.data.federation import Federation
from discreet.data.tasks.from_arrays import clients_from_arrays
from discreet.params import Params
from discreet.randomness.streams import RunKey

CLIENTS, EXAMPLES = 2, 9
CPU = torch.device("cpu")


def federation_of(sizes: Iterable[int]) -> Federation:
    """Return clients with so many examples."""
    counts = list(sizes)
    inputs, targets = torch.zeros(sum(counts), 2), torch.arange(sum(counts)) % 3
    return clients_from_arrays(inputs, targets, sizes=counts, classes=3).train


def network_loss() -> tuple[ModuleLoss, Params]:
    torch.manual_seed(0)
    layers = nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(48, 3)
    module = nn.Sequential(*layers)
    loss = ModuleLoss.from_module(module, partial(nn.functional.cross_entropy, reduction="none"))
    return loss, {name: value.detach().clone() for name, value in module.named_parameters()}


def train(trainer: LocalSgd, *, compiled: bool) -> tuple[Params, ModuleLoss]:
    """Return two clients' updates; the last batch is shorter than the others."""
    loss, params = network_loss()
    torch.manual_seed(5)
    inputs, targets = torch.randn(CLIENTS * EXAMPLES, 1, 6, 6), torch.randint(3, (CLIENTS * EXAMPLES,))
    federation = clients_from_arrays(inputs, targets, sizes=[EXAMPLES] * CLIENTS, classes=3).train
    rows = RunKey.from_seed(1).rows(0, b"", range(CLIENTS), torch.device("cpu"))
    with compile_steps(enabled=compiled), rows.seed_network():
        return trainer.train(loss, Broadcast(0, params, {}), federation.block(range(CLIENTS)), rows), loss


def test_compiled_steps_do_what_the_steps_do_with_the_same_dropout() -> None:
    trainer = LocalSgd(learning_rate=0.3, batch_size=4, epochs=1, momentum=0.5, perturbation=Sam(rho=0.1))
    (plain, _), (compiled, loss) = (train(trainer, compiled=each) for each in (False, True))
    assert [type(step) for step in loss.recordings.compiled.values()] == [CompiledStep, CompiledStep]
    for name, value in plain.items():
        torch.testing.assert_close(compiled[name], value, rtol=1e-4, atol=1e-6)


def test_what_a_step_returns_besides_tensors_is_kept() -> None:
    value = torch.arange(3.0)
    flat, form = torch.utils._pytree.tree_flatten((value, None, 2.0))

    def step(value: torch.Tensor, nothing: None, factor: float) -> tuple[dict[str, torch.Tensor], None, float]:
        return {"scaled": value * factor}, nothing, factor

    found, nothing, factor = CompiledStep.compile(step, flat, form)(value, None, 2.0)
    assert torch.equal(found["scaled"], value * 2)
    assert (nothing, factor) == (None, 2.0)


def test_a_step_that_can_not_be_compiled_runs_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def decides_by_data(value: torch.Tensor) -> torch.Tensor:
        return value * 2 if float(value.sum()) > 0 else value

    flat, form = torch.utils._pytree.tree_flatten((torch.ones(2),))
    before = torch.get_rng_state()
    assert try_to_compile(decides_by_data, flat, form) is decides_by_data
    assert torch.equal(torch.get_rng_state(), before)


def test_steps_are_compiled_only_where_it_is_asked_for() -> None:
    trainer = LocalSgd(learning_rate=0.3, batch_size=9, epochs=1)
    _, loss = train(trainer, compiled=False)
    assert not loss.recordings.compiled
    assert not compiled_step.steps_are_compiled()


def test_a_clip_of_gradients_is_compiled_with_the_step() -> None:
    trainer = LocalSgd(learning_rate=0.3, batch_size=9, epochs=1, gradient_clip=L2Clip(bound=0.1))
    (plain, _), (compiled, loss) = (train(trainer, compiled=each) for each in (False, True))
    assert [type(step) for step in loss.recordings.compiled.values()] == [CompiledStep]
    for name, value in plain.items():
        torch.testing.assert_close(compiled[name], value, rtol=1e-4, atol=1e-6)


def test_recordings_with_a_compiled_step_travel_to_another_process_empty() -> None:
    recordings, value = Recordings(), torch.ones(2)
    with compile_steps(enabled=True):
        assert torch.equal(recordings.run_compiled("double", lambda value: value * 2, value), value * 2)
    assert recordings.compiled
    copy = pickle.loads(pickle.dumps(recordings))
    assert not copy.compiled
    assert copy.may_compile


def test_models_whose_tensors_come_in_another_order_are_compiled_apart() -> None:
    recordings, made = Recordings(), []

    def compile_nothing(step: Any, flat: Any, form: Any) -> Any:
        made.append(form)
        return step

    values = {"first": torch.ones(2), "second": torch.zeros(2)}
    with pytest.MonkeyPatch.context() as patch, compile_steps(enabled=True):
        patch.setattr(cuda_graphs, "try_to_compile", compile_nothing)
        for params in (values, dict(reversed(values.items())), values, {**values, "first": torch.ones(2, 2)[:, 0]}):
            recordings.run_compiled("step", lambda params: params["first"], params)
    assert len(made) == 3


def test_a_loss_without_a_network_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its recordings are forgotten after the block, so each block would compile anew."""
    monkeypatch.setattr(cuda_graphs, "try_to_compile", lambda *_: pytest.fail("compiled"))
    loss, params = network_loss()
    inputs, targets = torch.randn(CLIENTS * EXAMPLES, 1, 6, 6), torch.randint(3, (CLIENTS * EXAMPLES,))
    data = clients_from_arrays(inputs, targets, sizes=[EXAMPLES] * CLIENTS, classes=3).train.block(range(CLIENTS))
    rows = RunKey.from_seed(1).rows(0, b"", range(CLIENTS), torch.device("cpu"))
    with compile_steps(enabled=True):
        LocalSgd(learning_rate=0.3, batch_size=9, epochs=1).train(loss.loss, Broadcast(0, params, {}), data, rows)


def test_compiled_steps_have_few_shapes() -> None:
    """40 clients of 21 to 60 examples, of which other ones join in each round."""
    shapes = set()
    for first in range(30):
        federation = federation_of(range(21 + first, 31 + first))
        with compile_steps(enabled=True):
            block = federation.block(range(10))
            shapes.add(block.full_batch().inputs.shape)
            drawn = block.draw_shuffled(64, [1] * 10, RunKey.from_seed(first).rows(0, b"", range(10), CPU).open())
            shapes |= {batch.inputs.shape for batch in drawn}
    assert len(shapes) <= 10
