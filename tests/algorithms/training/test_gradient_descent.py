"""Full-batch gradient descent: equals a plain loop, for clients of any size."""

import pytest
import torch

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.population import Population
from discreet.algorithms.training import GradientDescent
from discreet.algorithms.training.gradient_rules import L2Clip
from discreet.algorithms.training.schedules import Harmonic
from discreet.errors import InvalidInput
from discreet.params import Params
from discreet.randomness.streams import RunKey
from tests.federations import CPU, cross_entropy, federation, linear

KEY = RunKey.from_seed(4)


def by_hand(data, client: int, rates: list[float], clip: float) -> Params:  # type: ignore[no-untyped-def]
    start = data.starts[client]
    inputs, targets = (value[start : start + data.sizes[client]].clone() for value in (data.inputs, data.targets))
    params = {name: value.clone().requires_grad_() for name, value in linear().items()}
    for rate in rates:
        loss = cross_entropy(params, inputs, targets).mean()
        gradient = torch.autograd.grad(loss, list(params.values()))
        length = torch.cat([each.flatten() for each in gradient]).norm()
        with torch.no_grad():
            for value, each in zip(params.values(), gradient, strict=True):
                value -= rate * each * min(1.0, float(clip / length))
    return {name: value.detach() - linear()[name] for name, value in params.items()}


@pytest.mark.parametrize(
    ("round", "rates"), [(0, [2 / 3, 2 / 4]), (1, [2 / 5, 2 / 6, 2 / 7]), (2, [2 / 8]), (4, [2 / 10])]
)
def test_iterations_follow_each_other_over_all_rounds(round: int, rates: list[float]) -> None:
    descent = GradientDescent(
        learning_rate=2.0, iterations=(2, 3, 1), schedule=Harmonic(gamma=3.0), gradient_clip=L2Clip(bound=0.2)
    )
    data, rows = federation(7, 1, 12), KEY.rows(0, b"", [0, 1, 2], CPU)
    found = descent.train(cross_entropy, Broadcast(round, linear(), {}), data.block([0, 1, 2]), rows)
    for client in range(3):
        for name, value in by_hand(data, client, rates, clip=0.2).items():
            assert torch.allclose(found[name][client], value, rtol=3e-5, atol=1e-12)  # the clip stays below by 1e-5


def test_one_client_alone_without_a_clip_is_the_plain_loop() -> None:
    data = federation(9)
    found = GradientDescent(learning_rate=0.3, iterations=4).train(
        cross_entropy, Broadcast(0, linear(), {}), data.block([0]), KEY.rows(0, b"", [0], CPU)
    )
    for name, value in by_hand(data, 0, [0.3] * 4, clip=1e9).items():
        assert torch.allclose(found[name][0], value, rtol=1e-11)


def test_it_reveals_nothing_of_its_own_so_rounds_of_other_lengths_are_alike() -> None:
    descent = GradientDescent(learning_rate=0.3, iterations=(4, 2), gradient_clip=L2Clip(bound=1.0))
    assert descent.exposure(0).own_event(range(9)) is None
    assert not descent.exposure(0).has_uneven_rounds
    assert descent.for_population(Population(examples=(3,))) == descent.with_noise(2.0) == descent
    assert descent.with_two_steps().iterations == (2,)


def test_a_whole_batch_counts_in_the_memory_of_a_client() -> None:
    descent = GradientDescent(learning_rate=0.3, iterations=1)
    assert descent.model_copies(Population(examples=(3, 90))) == 95


def test_iterations_are_whole_numbers_above_zero() -> None:
    with pytest.raises(InvalidInput, match=r"iterations.*at least 1"):
        GradientDescent(learning_rate=0.3, iterations=(2, 0))
