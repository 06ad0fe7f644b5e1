"""Kim et al.'s clipped minibatches: a clipped mean, twice the sensitivity, and the noise that the event claims."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.func import grad

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.population import Population
from discreet.algorithms.recipes.fl_sgd_gaussian import fl_sgd_gaussian
from discreet.algorithms.training import MinibatchDp
from discreet.errors import InvalidInput
from discreet.params import norms
from discreet.privacy.events import GaussianNoise, PoissonSampled, steps
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey
from tests.federations import CPU, cross_entropy, federation, linear

KEY = RunKey.from_seed(5)


def trainer(**fields: object) -> MinibatchDp:
    given_ = {"sampling_rate": 1.0, "clip_norm": 0.1, "noise_multiplier": 1e-6, "learning_rate": 1.0}
    return MinibatchDp(**(given_ | fields))  # type: ignore[arg-type]


@pytest.mark.parametrize("piece", [2, 100])
def test_one_step_is_the_clipped_mean_gradient_however_it_is_cut_up(piece: int) -> None:
    data = federation(7, 4)
    rows = KEY.rows(0, b"", [0, 1], CPU)
    moved = trainer(piece=piece).train(cross_entropy, Broadcast(0, linear(), {}), data.block([0, 1]), rows)
    for client, (start, size) in enumerate(((0, 7), (7, 4))):
        own = slice(start, start + size)
        expected = grad(lambda p, own=own: cross_entropy(p, data.inputs[own], data.targets[own]).mean())(linear())
        length = float(norms({name: value[None] for name, value in expected.items()}))
        for name, value in expected.items():
            assert torch.allclose(moved[name][client], -value * min(1, 0.1 / length), atol=1e-5)


@given(st.integers(0, 10**6), st.floats(-1e6, 1e6))
def test_one_example_moves_a_step_by_at_most_twice_the_clip(seed: int, size: float) -> None:
    data = federation(4, seed=seed)
    data.inputs[0] *= size
    whole, less = (
        trainer().train(cross_entropy, Broadcast(0, linear(), {}), each.block([0]), KEY.rows(0, b"", [0], CPU))
        for each in (data, type(data)(data.inputs[1:], data.targets[1:], (3,)))
    )
    assert float(norms({name: whole[name] - less[name] for name in whole})) <= 0.2 + 1e-4


def test_the_noise_is_there_when_nobody_is_drawn_and_has_the_variance_that_is_claimed() -> None:
    """Chi-square on 2,000 × 18 normals: |z| < 5 has a false-alarm rate of 6e-7."""
    quiet = trainer(sampling_rate=1e-9, noise_multiplier=3.0)
    drawn = []
    for round in range(2000):
        rows = KEY.rows(round, b"", [0], CPU)
        moved = quiet.train(cross_entropy, Broadcast(round, linear(), {}), federation(3).block([0]), rows)
        drawn.append(torch.cat([value.flatten() for value in moved.values()]))
    standard = torch.cat(drawn) / (3.0 * 0.1)
    assert abs(float(standard.square().mean()) - 1) / math.sqrt(2 / standard.numel()) < 5


def test_no_two_steps_have_the_same_noise() -> None:
    """Two steps without gradients move the model by the sum of their noises: with one noise, by twice the first."""
    first, both = (
        trainer(sampling_rate=1e-9, noise_multiplier=3.0, steps=steps).train(
            cross_entropy, Broadcast(0, linear(), {}), federation(3).block([0]), KEY.rows(0, b"", [0], CPU)
        )["weight"]
        for steps in (1, 2)
    )
    assert not torch.isclose(both - first, first, rtol=1e-3).any()


def test_clipped_minibatches_count_half_their_noise_and_clipped_examples_all_of_it() -> None:
    population = Population(examples=(50,) * 4)
    common: dict[str, Any] = {"learning_rate": 0.1, "sampling_rate": 0.2, "clip_norm": 1.0, "noise_multiplier": 2.0}
    for clipping, counted in (("example", 2.0), ("minibatch", 1.0)):
        (release,) = fl_sgd_gaussian(**common, clipping=clipping).planned_releases(30, population)
        sampled = PoissonSampled(sampling_rate=0.2, event=GaussianNoise(noise_multiplier=counted))
        assert steps(release.event) == {sampled: 30}
        assert (release.unit, release.view) == ("example", "server")


def test_another_word_for_clipping_is_refused() -> None:
    with pytest.raises(InvalidInput, match='"example" or "minibatch"'):
        fl_sgd_gaussian(learning_rate=1, sampling_rate=0.1, clip_norm=1, clipping="batch")  # type: ignore[arg-type]


@pytest.mark.parametrize("content", [1.0, 3e38])
def test_an_example_that_is_not_drawn_changes_nothing_whatever_it_holds(content: float) -> None:
    """Empty cells of a batch once pointed at a client's first example, drawn or not."""
    quiet, params = trainer(sampling_rate=0.3), {name: value.float() + 2 for name, value in linear().items()}
    params["weight"][0] *= -1  # logits that overflow, and differ
    undrawn = 0
    for round in range(30):
        rows = KEY.rows(round, b"", [0, 1], CPU)
        updates = []
        for first in (0.0, content):
            data = federation(6, 9)
            inputs = data.inputs.float()
            inputs[0] = first
            block = type(data)(inputs, data.targets, (6, 9)).block([0, 1])
            drawn = rows.for_purpose(Purpose.BATCH).open().uniform((6, 9))[0, 0] < 0.3
            updates.append(quiet.train(cross_entropy, Broadcast(round, params, {}), block, rows))
        if not drawn:
            undrawn += 1
            assert all(torch.equal(updates[0][name], updates[1][name]) for name in params)
    assert undrawn > 10
