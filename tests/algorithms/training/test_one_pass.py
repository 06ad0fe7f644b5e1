"""Clients that have the same model share one pass through it, on devices where that is faster."""

import pytest
import torch
from torch import nn

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.training import BroadcastGradients, DenoisedRelease, DpSgd, per_example
from discreet.data.federation import Federation
from discreet.models.user_module.supervised_module import SupervisedModule
from discreet.params import ClientModels, Params, repeat_for_clients
from discreet.randomness.streams import RunKey

CLIENTS, EXAMPLES = 3, 6
TRAINERS = {
    "dp_sgd": DpSgd(steps=(2,), sampling_rate=0.5, clip_norm=0.5, noise_multiplier=0.1, learning_rate=2.0),
    "broadcast_gradients": BroadcastGradients(
        steps=(2,), sampling_rate=0.5, clip_norm=0.5, learning_rate=2.0, expected_batch=3.0
    ),
    "denoised_release": DenoisedRelease(
        steps=(2,), sampling_rate=0.5, clip_norm=0.5, state_noise=0.1, learning_rate=2.0, expected_batch=3.0
    ),
}


def train(name: str, *, own_models: bool = False, rate: float | None = None) -> Params:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(64, 3)).double()
    params = {key: value.detach().clone() for key, value in network.named_parameters()}
    inputs = torch.randn(CLIENTS * EXAMPLES, 1, 6, 6, dtype=torch.float64)
    data = Federation(inputs, torch.randint(3, (len(inputs),)), (EXAMPLES,) * CLIENTS)
    everyone = list(range(CLIENTS))
    rows = RunKey.from_seed(0).rows(0, b"", everyone, torch.device("cpu"))
    model = ClientModels(repeat_for_clients(params, CLIENTS)) if own_models else params
    trainer = TRAINERS[name] if rate is None else TRAINERS[name].with_example_rate(rate)
    loss = SupervisedModule(network, "classification").loss
    return trainer.train(loss, Broadcast(0, model, {}), data.block(everyone), rows)


@pytest.mark.parametrize("name", TRAINERS)
def test_two_steps_are_those_of_clients_who_each_pass_through_their_own_model(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only where all clients still have the model of the broadcast may they share a pass."""
    expected = train(name, own_models=True)
    monkeypatch.setattr(per_example, "ONE_PASS", {"cpu"})
    found = train(name)
    for key in expected:
        torch.testing.assert_close(found[key], expected[key], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", TRAINERS)
def test_an_update_without_any_example_has_a_row_for_each_client(name: str) -> None:
    found = train(name, rate=1e-12)
    assert all(len(value) == CLIENTS for value in found.values())
