"""The schemes for several local steps, through a lattice and a secure sum: the same guarantee, against the server."""

from typing import Any

import pytest
import torch

from discreet.algorithms.recipes.registry import RECIPES
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import Simulation
from discreet.engines.secure import SecureEngine
from discreet.errors import InvalidInput, Unsupported
from discreet.privacy.events import SkellamNoise, step_noise, steps
from discreet.randomness.streams import RunKey
from tests.algorithms.training.test_contract import PARAMS, loss
from tests.federations import federation

HELD = federation(7, 3, 12)


def recipe(name: str, **changed: Any) -> Any:
    return RECIPES[name](**{**RECIPES[name].example, "noise_multiplier": 2.0, **changed})


@pytest.mark.parametrize("name", ["convex_local", "proximal_local", "shards"])
def test_through_a_secure_sum_a_round_is_one_release_against_the_server(name: str):
    algorithm = recipe(name, noise="skellam").for_population(HELD.population, 18)
    found = {each.view: each for each in algorithm.planned_releases(3, HELD.population)}
    assert set(found) == {"server", "client"}
    ((step, count),) = steps(found["server"].event).items()
    assert count == 3
    assert isinstance(step_noise(step), SkellamNoise)
    sim = Simulation(algorithm, HELD, loss(), RunKey.from_seed(1))
    broadcast = algorithm.broadcast(algorithm.init(PARAMS), 0)
    embedded = EmbeddedEngine(sim)
    plain, secure = (each.gather(broadcast, [0, 1, 2]).total for each in (embedded, SecureEngine(embedded)))
    assert all(((plain[key] - secure[key]) % 2**32 == 0).all() for key in plain)


@pytest.mark.parametrize("name", ["convex_local", "proximal_local", "shards"])
def test_integers_say_what_real_numbers_say(name: str):
    """With almost no noise, the decoded sum is the sum of the updates."""
    decoded = []
    for noise in ("gaussian", "skellam"):
        algorithm = recipe(name, noise=noise, noise_multiplier=1e-3).for_population(HELD.population, 18)
        sim = Simulation(algorithm, HELD, loss(), RunKey.from_seed(1))
        state = algorithm.init(PARAMS)
        broadcast = algorithm.broadcast(state, 0)
        total = EmbeddedEngine(sim).gather(broadcast, [0, 1, 2]).total
        after = algorithm.server_step(state, broadcast, total, 3, HELD.population, sim.rows(broadcast, [-1]))
        decoded.append(after.params)
    reach = algorithm.sensitivity(0)
    for key in PARAMS:
        torch.testing.assert_close(decoded[0][key], decoded[1][key], rtol=0, atol=0.02 * reach)


def test_what_the_proof_does_not_cover_is_refused():
    with pytest.raises(InvalidInput, match="are for secure sums"):
        recipe("convex_local", noise="gaussian", dropouts=1)
    trainer = recipe("denoised_release").for_population(HELD.population).trainer
    noise = SkellamNoise(variance=1e6, l2_sensitivity=1e3, dimension=18)
    with pytest.raises(Unsupported):
        trainer.for_population(HELD.population).exposure(0).example_event(noise, range(1))
