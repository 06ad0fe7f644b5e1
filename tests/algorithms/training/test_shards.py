"""Shards: one example turns one clipped update into another, which may be its opposite."""

import pytest
import torch
from torch import Tensor

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.population import Population
from discreet.algorithms.recipes.local_schemes import shards
from discreet.algorithms.training import LocalSgd, Shards
from discreet.algorithms.training.batches import Batches
from discreet.algorithms.training.gradient_rules import Sam
from discreet.part import from_plain, to_plain
from discreet.privacy import accountant, calibration
from discreet.privacy.calibration import EpsilonTarget
from discreet.privacy.events import GaussianNoise, Repeated, steps
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey
from discreet.secure_sums.lattice.lattice_encoding import Encoding
from tests.federations import CPU, DOUBLE, cross_entropy, federation, linear

LOCAL = LocalSgd(learning_rate=2.0, batch_size=2, epochs=2, momentum=0.9, perturbation=Sam(rho=0.3))
TRAINER = Shards(shards=3, clip_norm=0.5, local=LOCAL)


def update(trainer: Shards, inputs: Tensor, targets: Tensor, seed: int = 0) -> Tensor:
    """Return the only client's update as one vector."""
    batches = Batches(inputs, targets, (0,), (len(inputs),))
    features = inputs.shape[1]
    rows = RunKey.from_seed(seed).rows(0, b"", [0], CPU)
    delta = trainer.train(cross_entropy, Broadcast(0, linear(features), {}), batches, rows)
    return torch.cat([value.flatten() for value in delta.values()])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("spread", [0.1, 100.0])
def test_no_example_moves_the_update_by_more_than_its_reach(seed: int, spread: float):
    """Each example draws its own shard, so without the last one the others stay in theirs."""
    held = federation(8, seed=seed)
    whole = update(TRAINER, spread * held.inputs, held.targets, seed)
    fewer = update(TRAINER, spread * held.inputs[:7], held.targets[:7], seed)
    reach = TRAINER.exposure(0).example.sensitivity
    assert reach == 2 * 0.5 / 3
    assert (whole - fewer).norm() <= reach


def test_one_example_can_turn_an_update_into_its_opposite():
    """One example can move the update by 2C, not only by the norm bound C. One shard; a stronger example joins."""
    inputs = torch.tensor([[1.0], [100.0]], dtype=DOUBLE)
    targets = torch.tensor([0, 1])
    trainer = Shards(shards=1, clip_norm=0.01, local=LocalSgd(learning_rate=1.0, batch_size=2, epochs=1))
    without, whole = update(trainer, inputs[:1], targets[:1]), update(trainer, inputs, targets)
    assert max(without.norm(), whole.norm()) <= 0.01
    moved = (whole - without).norm()
    assert 1.7 * 0.01 < moved <= trainer.exposure(0).example.sensitivity  # type: ignore[union-attr]


def test_counting_the_bound_on_the_norm_would_promise_1_and_give_more_than_2():
    """Ten rounds with noise for ε = 1 under sensitivity C: relative to the true 2C the noise is half as large."""
    target = EpsilonTarget(epsilon=1.0, delta=1e-5)
    noise = calibration.calibrate_noise(lambda z: Repeated(count=10, event=GaussianNoise(noise_multiplier=z)), target)
    true = Repeated(count=10, event=GaussianNoise(noise_multiplier=noise / 2))
    assert accountant.epsilon(true, 1e-5, "zero_out") == pytest.approx(2.15, abs=0.01)


def test_an_update_is_the_mean_of_its_shards_clipped_updates():
    """Three shards computed by hand: the shard that each example drew, then local SGD on each with its own stream."""
    held, key = federation(9), RunKey.from_seed(5)
    rows = key.rows(0, b"", [0], CPU)
    drawn = (rows.for_purpose(Purpose.SHARD).open().uniform([9])[0] * 3).floor()
    assert sorted(set(drawn.tolist())) == [0, 1, 2]
    total = torch.zeros(18, dtype=DOUBLE)
    for shard in range(3):
        own = drawn == shard
        batches = Batches(held.inputs[own], held.targets[own], (0,), (int(own.sum()),))
        delta = LOCAL.train(cross_entropy, Broadcast(0, linear(), {}), batches, rows.for_purpose(Purpose.LOCAL, shard))
        one = torch.cat([value.flatten() for value in delta.values()])
        total += one * min(1.0, 0.5 / float(one.norm())) / 3
    assert torch.allclose(update(TRAINER, held.inputs, held.targets, 5), total, rtol=1e-4)


def test_an_empty_shard_sends_nothing():
    held = federation(1)
    many = Shards(shards=50, clip_norm=0.5, local=LOCAL)
    alone = Shards(shards=1, clip_norm=0.5, local=LocalSgd(learning_rate=2.0, batch_size=2, epochs=3))
    assert update(many, held.inputs, held.targets).norm() <= 0.5 / 50
    assert 0.01 < update(alone, held.inputs, held.targets).norm() <= 0.5


def test_a_round_is_one_noise_and_the_algorithm_its_own_configuration():
    population = Population(examples=(100,) * 4)
    algorithm = shards(
        shards=5, learning_rate=1, batch_size=4, epochs=2, clip_norm=1, noise_multiplier=4.0, momentum=0.5
    ).for_population(population)
    found = {each.view: each for each in algorithm.planned_releases(3, population)}
    assert steps(found["public"].event) == {GaussianNoise(noise_multiplier=4.0): 3}
    assert steps(found["server"].event) == {GaussianNoise(noise_multiplier=2.0): 3}
    assert algorithm.sensitivity(0) == pytest.approx(2 / 5)
    assert from_plain(Algorithm, to_plain(algorithm)) == algorithm


def test_shards_are_added_up_in_doubles_with_a_lattice_and_without():
    """In single precision 1,024 shards at the clip can move their mean by 0.6 % more than the sensitivity."""
    trainer = Shards(shards=3, clip_norm=1.0, local=LocalSgd(learning_rate=0.1, batch_size=2, steps=1))
    batches = Batches(torch.ones(6, 5), torch.zeros(6, dtype=torch.long), (0,), (6,))
    rows = RunKey.from_seed(0).rows(0, b"", [0], CPU)
    for encoding in (None, Encoding(100.0, 32)):
        heard = Broadcast(0, linear(dtype=torch.float32), {}, encoding)
        assert {value.dtype for value in trainer.train(cross_entropy, heard, batches, rows).values()} == {torch.float64}
