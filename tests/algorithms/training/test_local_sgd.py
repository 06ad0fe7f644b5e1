"""Local SGD: equals torch's own optimiser, for clients of any size."""

import pytest
import torch

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.training import LocalSgd
from discreet.algorithms.training.schedules import Exponential, Inverse
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
