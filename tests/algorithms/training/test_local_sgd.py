"""Local SGD: equals torch's own optimiser, for clients of any size."""

from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.training import LocalSgd, client_turns, local_step
from discreet.algorithms.training.gradient_rules import Asam, Blur, L2Clip, Prox, Sam
from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.algorithms.training.round_batches import WholeBatches
from discreet.algorithms.training.schedules import Exponential, Inverse
from discreet.data.tasks.from_arrays import clients_from_arrays
from discreet.errors import InvalidInput
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey
from tests.federations import CPU, cross_entropy, federation, linear

KEY = RunKey.from_seed(4)


def by_torch(local: LocalSgd, data, client: int, rate: float) -> dict[str, torch.Tensor]:  # type: ignore[no-untyped-def]
    params = {name: value.clone().requires_grad_() for name, value in linear().items()}
    optimiser = torch.optim.SGD(params.values(), lr=rate, momentum=local.momentum, weight_decay=local.weight_decay)
    block = data.block([client])
    for batch in block.draw_shuffled(
        local.batch_size, local._steps(block), KEY.rows(0, b"", [client], CPU).for_purpose(Purpose.BATCHES).open()
    ):
        optimiser.zero_grad()
        mask = batch.mask[0]
        cross_entropy(params, batch.inputs[0][mask], batch.targets[0][mask]).mean().backward()
        optimiser.step()
    return {name: value.detach() - linear()[name] for name, value in params.items()}


@pytest.mark.parametrize(
    "local",
    [
        LocalSgd(learning_rate=0.3, batch_size=4, epochs=2),
        LocalSgd(learning_rate=0.3, batch_size=3, steps=5, momentum=0.9),
        LocalSgd(learning_rate=0.1, batch_size=100, epochs=3, momentum=0.5, weight_decay=0.01),
        LocalSgd(learning_rate=0.2, batch_size=1, epochs=1),
    ],
    ids=str,
)
def test_a_block_of_unlike_clients_does_what_each_alone_would_do_in_torch(local: LocalSgd) -> None:
    data = federation(7, 1, 12)
    rows = KEY.rows(0, b"", [0, 1, 2], CPU)
    found = local.train(cross_entropy, Broadcast(0, linear(), {}), data.block([0, 1, 2]), rows)
    for client in range(3):
        for name, value in by_torch(local, data, client, local.learning_rate).items():
            assert torch.allclose(found[name][client], value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"epochs": 2},
        {"steps": 5, "momentum": 0.9},
        {"epochs": 2, "momentum": 0.5, "weight_decay": 0.01},
        {"epochs": 1, "gradient_clip": L2Clip(bound=0.1)},
        {"steps": 4, "perturbation": Sam(rho=0.1), "regulariser": Prox(strength=0.5)},
        {"epochs": 2, "perturbation": Asam(rho=0.1), "regulariser": Blur(radius=0.01, strength=0.5)},
    ],
    ids=str,
)
def test_clients_that_step_in_turns_do_what_they_do_together(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 36, 3)).double()
    loss = ModuleLoss.from_module(module, partial(nn.functional.cross_entropy, reduction="none"))
    params = {name: value.detach().clone() for name, value in module.named_parameters()}
    inputs, targets = torch.randn(20, 1, 8, 8, dtype=torch.float64), torch.randint(3, (20,))
    data = clients_from_arrays(inputs, targets, sizes=[7, 1, 12], classes=3).train
    federation = data.move_to(CPU, torch.float64)
    local, found = LocalSgd(learning_rate=0.3, batch_size=4, **options), []
    turns = spy_on_turns(monkeypatch)
    for least in (1, 10**9):
        monkeypatch.setattr(client_turns, "LARGE", {"cpu": least})
        rows = KEY.rows(0, b"", [0, 1, 2], CPU)
        found.append(local.train(loss, Broadcast(0, params, {}), federation.block([0, 1, 2]), rows))
    assert set(turns) == {True, False}
    for name, value in found[0].items():
        torch.testing.assert_close(value, found[1][name], rtol=1e-9, atol=1e-12)
        assert torch.equal(params[name], dict(module.named_parameters())[name])


def spy_on_turns(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    taken: list[bool] = []
    decide = client_turns.take_turns
    monkeypatch.setattr(local_step, "take_turns", lambda *given: taken.append(decide(*given)) or taken[-1])
    return taken


@pytest.mark.parametrize(
    ("module", "width"),
    [(nn.Sequential(nn.Flatten(), nn.Linear(4096, 3)), 4096), (nn.Sequential(nn.Conv2d(1, 1, 1), nn.Flatten()), 64)],
)
def test_without_large_convolutions_clients_step_together(module: nn.Module, width: int) -> None:
    loss = ModuleLoss.from_module(module, partial(nn.functional.cross_entropy, reduction="none"))
    side = int(width**0.5)
    inputs, targets = torch.randn(60, 1, side, side), torch.arange(60) % 3
    data = clients_from_arrays(inputs, targets, sizes=[20, 20, 20], classes=3).train.block([0, 1, 2])
    assert not client_turns.take_turns(loss, dict(module.named_parameters()), WholeBatches(data, 1))


def test_a_schedule_scales_the_rate_by_the_round() -> None:
    assert Exponential(decay=0.5).factor(3) == 0.125
    assert Inverse(decay=1.0).factor(3) == 0.25
    data = federation(6)
    local = LocalSgd(learning_rate=0.4, batch_size=6, steps=1, schedule=Exponential(decay=0.5))
    first = local.train(cross_entropy, Broadcast(0, linear(), {}), data.block([0]), KEY.rows(0, b"", [0], CPU))
    later = local.train(cross_entropy, Broadcast(2, linear(), {}), data.block([0]), KEY.rows(0, b"", [0], CPU))
    assert torch.allclose(later["weight"], first["weight"] / 4)


@pytest.mark.parametrize("fields", [{}, {"epochs": 1, "steps": 1}])
def test_epochs_or_steps_and_not_both(fields: dict[str, int]) -> None:
    with pytest.raises(InvalidInput, match="either epochs or steps"):
        LocalSgd(learning_rate=0.1, batch_size=2, **fields)
