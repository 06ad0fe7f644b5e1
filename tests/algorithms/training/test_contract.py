"""The contract of every trainer: alone or in a block, stored in a file, and priced by an accountant."""

import math
from dataclasses import replace
from typing import get_args

import pytest
import torch
from torch.nn.functional import cross_entropy

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.training import (
    AnyTrainer,
    BroadcastGradients,
    ConvexLocal,
    DenoisedRelease,
    DpSgd,
    GradientDescent,
    LocalSgd,
    MinibatchDp,
    Shards,
)
from discreet.algorithms.training.gradient_rules import L1Clip, L2Clip
from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.engines.engine import Simulation
from discreet.params import norms
from discreet.part import from_plain, to_plain
from discreet.privacy import accountant
from discreet.privacy.events import GaussianNoise
from discreet.randomness.streams import RunKey
from discreet.testing import check_trainer
from tests.federations import federation

HELD = federation(7, 3, 12, dtype=torch.float64)
POPULATION = HELD.population
MODULE = torch.nn.Linear(5, 3).double()
PARAMS = {name: value.detach().clone() for name, value in MODULE.named_parameters()}
STEPS = {"steps": 2, "sampling_rate": 0.5, "clip_norm": 0.4, "learning_rate": 0.3}
TRAINERS: dict[str, AnyTrainer] = {
    "local_sgd": LocalSgd(learning_rate=0.1, batch_size=4, epochs=1, momentum=0.5),
    "local_sgd, clipped": LocalSgd(learning_rate=0.1, batch_size=4, steps=3, gradient_clip=L2Clip(bound=0.2)),
    "gradient_descent": GradientDescent(learning_rate=0.2, iterations=3, gradient_clip=L1Clip(bound=0.5)),
    "dp_sgd": DpSgd(noise_multiplier=1.5, **STEPS),  # type: ignore[arg-type]
    "minibatch_dp": MinibatchDp(noise_multiplier=1.5, **STEPS),  # type: ignore[arg-type]
    "broadcast_gradients": BroadcastGradients(**STEPS),  # type: ignore[arg-type]
    "convex_local": ConvexLocal(learning_rate=2.0, clip_norm=0.4, feature_bound=3.0, steps=2),
    "proximal_local": ConvexLocal(learning_rate=1.0, clip_norm=0.4, feature_bound=3.0, steps=2, passes=2, strength=0.5),
    "denoised_release": DenoisedRelease(state_noise=1.0, **STEPS),  # type: ignore[arg-type]
    "shards": Shards(local=LocalSgd(learning_rate=0.1, batch_size=4, epochs=1), shards=3, clip_norm=0.4),
}


def loss() -> ModuleLoss:
    found = ModuleLoss.from_module(MODULE, lambda outputs, targets: cross_entropy(outputs, targets, reduction="none"))
    return replace(found, independent=True)


def simulate(trainer: AnyTrainer) -> Simulation:
    return Simulation(Algorithm(trainer=trainer.for_population(POPULATION)), HELD, loss(), RunKey.from_seed(3))


def test_every_kind_is_here():
    (union, *_) = get_args(AnyTrainer)
    assert {type(each) for each in TRAINERS.values()} == set(get_args(union))


@pytest.mark.parametrize("name", TRAINERS)
def test_it_keeps_the_contract(name: str):
    assert check_trainer(TRAINERS[name])


@pytest.mark.parametrize("name", TRAINERS)
def test_a_block_of_clients_does_what_each_does_alone(name: str):
    sim, broadcast = simulate(TRAINERS[name]), Broadcast(0, PARAMS, {})
    together = sim.step(broadcast, [0, 1, 2]).rows
    for client in range(3):
        for key, value in sim.step(broadcast, [client]).rows.items():
            torch.testing.assert_close(together[key][client], value[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", TRAINERS)
def test_a_file_holds_it_before_and_after_it_is_fitted(name: str):
    for trainer in (TRAINERS[name], TRAINERS[name].for_population(POPULATION)):
        assert from_plain(AnyTrainer, to_plain(trainer)) == trainer
    assert TRAINERS[name].for_population(POPULATION).for_population(POPULATION) == TRAINERS[name].for_population(
        POPULATION
    )


@pytest.mark.parametrize("name", TRAINERS)
def test_what_it_reveals_can_be_priced_and_more_rounds_reveal_no_less(name: str):
    exposure = TRAINERS[name].for_population(POPULATION).exposure(0)
    assert (exposure.own_noise is None) == (exposure.own_event(range(3)) is None)
    events = [] if exposure.own_noise is None else [exposure.own_event]
    if exposure.example is not None:
        events.append(lambda rounds: exposure.example_event(GaussianNoise(noise_multiplier=2.0), rounds))
    for event in events:
        found = [event(range(rounds)) for rounds in (1, 3)]
        few, many = (accountant.epsilon(each, 1e-5, "zero_out") for each in found)  # type: ignore[arg-type]
        assert 0 < few <= many < math.inf


@pytest.mark.parametrize("name", TRAINERS)
def test_no_update_exceeds_the_norm_that_it_is_bounded_by(name: str):
    sim = simulate(TRAINERS[name])
    bound = sim.algorithm.trainer.exposure(0).update_norm
    if bound is not None:
        order = 1 if name == "gradient_descent" else 2
        rows = sim.step(Broadcast(0, PARAMS, {}), [0, 1, 2]).rows
        assert float(norms(rows, order=order).max()) <= bound * (1 + 1e-12)


@pytest.mark.parametrize("name", TRAINERS)
def test_clients_weigh_by_examples_and_a_brief_one_fits_too(name: str):
    trainer = TRAINERS[name].for_population(POPULATION)
    weights = trainer.examples_per_step(POPULATION)
    assert [each / weights[0] for each in weights] == pytest.approx([1, 3 / 7, 12 / 7])
    assert trainer.model_copies(POPULATION) > 0
    assert trainer.with_two_steps().kind == trainer.kind
    example = trainer.exposure(0).example
    assert example is None or example.sensitivity > 0
