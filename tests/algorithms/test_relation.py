"""Under which relation examples are protected: sizes are public and divide the noise, so a removal is visible."""

import math

import pytest
import torch

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.population import Population
from discreet.algorithms.recipes.registry import RECIPES
from discreet.algorithms.training import BroadcastGradients, ConvexLocal, DenoisedRelease, DpSgd
from discreet.algorithms.training.trainer import Loss
from discreet.data.federation import Federation
from discreet.params import Params, flatten
from discreet.privacy import accountant
from discreet.privacy.events import GaussianNoise
from discreet.randomness.streams import RunKey
from tests.algorithms.test_contract import EVERY
from tests.algorithms.training.test_contract import POPULATION, TRAINERS
from tests.federations import CPU, cross_entropy, federation, linear

KEY, CLIP = RunKey.from_seed(11), 0.5
NOISY = {name: Algorithm(trainer=TRAINERS[name].for_population(POPULATION)) for name in ("dp_sgd", "minibatch_dp")}
PROTECTING = {
    name: algorithm
    for name, algorithm in (NOISY | EVERY).items()
    if any(each.unit == "example" for each in algorithm.planned_releases(1, POPULATION))
}
LESS_ONE = Population(examples=(7, 3, 11))
STEPS = {"epochs": 1, "batch_size": 11, "clip_norm": CLIP, "learning_rate": 1.0}
SIZED = {  # with the numbers that follow from the clients left open
    "dp_sgd": DpSgd(noise_multiplier=1.0, **STEPS),  # type: ignore[arg-type]
    "broadcast_gradients": BroadcastGradients(**STEPS),  # type: ignore[arg-type]
    "denoised_release": DenoisedRelease(state_noise=1.0, **STEPS),  # type: ignore[arg-type]
    "convex_local": ConvexLocal(learning_rate=1.0, clip_norm=0.5, feature_bound=3.0, steps=11),
}


def update(held: Federation, params: Params, noise_multiplier: float = 1.0, loss: Loss = cross_entropy) -> torch.Tensor:
    """Return what the only client sends after a step on all its examples, with the same noise each time."""
    fields = {"sampling_rate": 1.0, "clip_norm": CLIP, "noise_multiplier": noise_multiplier, "learning_rate": 1.0}
    trainer = DpSgd(steps=1, **fields)  # type: ignore[arg-type]
    rows = KEY.rows(0, b"", [0], CPU)
    return flatten(trainer.train(loss, Broadcast(0, params, {}), held.block([0]), rows), leading=1)[0]


def blind(params: Params, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """A loss without gradients: the update is only noise."""
    return 0 * cross_entropy(params, inputs, targets)


def blank_loss(params: Params, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return cross-entropy, except for an example of zeros, a blank, which has no loss."""
    return cross_entropy(params, inputs, targets) * (inputs != 0).any(dim=-1)


def test_a_removed_example_shows_in_the_scale_of_dp_sgds_noise():
    """The divisor is the client's true size, so noise of 3 examples is 4/3 of that of 4, at any noise multiplier.

    Over d = 1,503 coordinates the mean square, in units of 4 examples, is 1 ± 0.04 with the example and 1.78 ± 0.07
    without: a threshold at 1.3 is more than 6 standard deviations from both, so it errs with less than 1e-8.
    """
    params, noise_multiplier = linear(features=500), 1000.0
    four, three = federation(4, features=500), federation(3, features=500)
    more, fewer = (update(held, params, noise_multiplier, blind) for held in (four, three))
    torch.testing.assert_close(fewer, 4 / 3 * more)
    assert float((more / (noise_multiplier * CLIP / 4)).square().mean()) < 1.3
    assert float((fewer / (noise_multiplier * CLIP / 4)).square().mean()) > 1.3
    noise = GaussianNoise(noise_multiplier=noise_multiplier)  # what add-or-remove would promise
    assert accountant.true_positive_rate(noise, 1e-3, "add_or_remove") < 1.01e-3


def test_a_blanked_example_moves_the_update_by_its_clip_and_leaves_the_noise():
    held, params = federation(4), linear()
    inputs = held.inputs.clone()
    inputs[3] = 0.0
    blank = Federation(inputs, held.targets, (4,))
    with_it, without = (update(each, params, loss=blank_loss) for each in (held, blank))
    assert 0 < float((with_it - without).norm()) <= CLIP / 4 * (1 + 1e-12)


@pytest.mark.parametrize("name", SIZED)
def test_a_removed_example_changes_numbers_that_clients_divide_or_step_by(name: str):
    """Rates, numbers of steps, batch sizes and expected batches: all are public, and all differ for 11 examples."""
    assert SIZED[name].for_population(POPULATION) != SIZED[name].for_population(LESS_ONE)


def test_every_training_that_bounds_an_example_is_here():
    exposures = {trainer.kind: trainer.for_population(POPULATION).exposure(0) for trainer in TRAINERS.values()}
    bounding = {kind for kind, each in exposures.items() if each.own_noise is not None or each.example is not None}
    assert bounding == {each.trainer.kind for each in PROTECTING.values()}


@pytest.mark.parametrize("name", PROTECTING)
def test_every_example_level_release_is_certified_for_an_example_against_a_blank(name: str):
    found = [each for each in PROTECTING[name].planned_releases(2, POPULATION) if each.unit == "example"]
    assert {each.relation for each in found} == {"zero_out"}


@pytest.mark.parametrize("name", RECIPES)
def test_no_recipe_promises_that_an_example_can_be_removed(name: str):
    assert {each.relation for each in RECIPES[name].protects if each.unit == "example"} <= {"zero_out"}


def test_the_recipes_that_protect_examples_are_these():
    protecting = {name for name, each in RECIPES.items() if any(it.unit == "example" for it in each.protects)}
    assert protecting == {
        "pfl",
        "fl_sgd_gaussian",
        "ddp_fedavg",
        "convex_local",
        "proximal_local",
        "denoised_release",
        "shards",
    }


@pytest.mark.parametrize("name", NOISY)
def test_a_blank_costs_what_a_removal_would(name: str):
    """The sums with a blank are those without the example, so the certified numbers are the same."""
    (release,) = NOISY[name].planned_releases(3, POPULATION)
    found = accountant.epsilon(release.event, 1e-5, release.relation)
    assert found == accountant.epsilon(release.event, 1e-5, "add_or_remove")
    assert 0 < found < math.inf


def test_what_is_certified_for_clients_is_as_before():
    (release,) = (each for each in RECIPES["dp_fedavg"].protects if each.view == "public")
    assert (release.unit, release.relation) == ("client", "add_or_remove")
