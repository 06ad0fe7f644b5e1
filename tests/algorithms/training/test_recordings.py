"""What a recording returns is overwritten by its next replay, and no trainer loses anything by that."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import pytest
import torch
from torch import nn

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.training import BroadcastGradients, DenoisedRelease, DpSgd, GradientDescent, LocalSgd
from discreet.algorithms.training.cuda_graphs import Recordings
from discreet.algorithms.training.gradient_rules import Sam
from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.algorithms.training.trainer import LocalTrainer
from discreet.data.tasks.from_arrays import clients_from_arrays
from discreet.params import Params
from discreet.randomness.streams import RunKey

T = TypeVar("T")
CLIENTS, EXAMPLES = 2, 11


def replay_in_place(self: Recordings, name: Any, step: Callable[..., T], *arguments: Any) -> T:
    """Run a step and put its results where the results of the last such step were, as a CUDA graph does."""
    flat, form = torch.utils._pytree.tree_flatten(step(*arguments))
    memory: list[Any] = MEMORY.setdefault((name, *(getattr(value, "shape", None) for value in flat)), flat)
    for kept, new in zip(memory, flat, strict=True):
        if isinstance(kept, torch.Tensor) and kept is not new:
            kept.copy_(new)
    results: T = torch.utils._pytree.tree_unflatten(memory, form)
    return results


MEMORY: dict[Any, list[Any]] = {}

TRAINERS = {
    "dp_sgd in one piece": DpSgd(steps=(3,), sampling_rate=1.0, clip_norm=0.5, noise_multiplier=0.5, learning_rate=0.5),
    "dp_sgd in four pieces": DpSgd(
        steps=(3,), sampling_rate=1.0, clip_norm=0.5, noise_multiplier=0.5, learning_rate=0.5, piece=3
    ),
    "broadcast_gradients in four pieces": BroadcastGradients(
        steps=(3,), sampling_rate=1.0, clip_norm=0.5, learning_rate=0.5, piece=3, expected_batch=11
    ),
    "denoised_release in four pieces": DenoisedRelease(
        steps=(3,), sampling_rate=1.0, clip_norm=0.5, learning_rate=0.5, piece=3, expected_batch=11, state_noise=0.5
    ),
    "local_sgd": LocalSgd(learning_rate=0.3, batch_size=4, steps=4, momentum=0.5, perturbation=Sam(rho=0.1)),
    "gradient_descent": GradientDescent(learning_rate=0.3, iterations=(4,)),
}


def train(trainer: LocalTrainer) -> Params:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))
    loss = ModuleLoss.from_module(module, partial(nn.functional.cross_entropy, reduction="none"))
    inputs, targets = torch.randn(CLIENTS * EXAMPLES, 4), torch.randint(3, (CLIENTS * EXAMPLES,))
    federation = clients_from_arrays(inputs, targets, sizes=[EXAMPLES] * CLIENTS, classes=3).train
    params = {name: value.detach().clone() for name, value in module.named_parameters()}
    rows = RunKey.from_seed(1).rows(0, b"", range(CLIENTS), torch.device("cpu"))
    return trainer.train(loss, Broadcast(0, params, {}), federation.block(range(CLIENTS)), rows)


@pytest.mark.parametrize("name", TRAINERS)
def test_a_trainer_gives_the_same_if_results_are_overwritten(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = train(TRAINERS[name])
    MEMORY.clear()
    monkeypatch.setattr(Recordings, "run", replay_in_place)
    found = train(TRAINERS[name])
    assert MEMORY
    assert all(torch.equal(found[key], expected[key]) for key in expected)
