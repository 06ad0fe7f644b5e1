"""The block size of an [engine] table: who decides it."""

import pytest

from discreet.algorithms.recipes.dp_fedavg import dp_fedavg
from discreet.algorithms.recipes.registry import RECIPES
from discreet.engines.embedded import LARGEST_BLOCK
from discreet.engines.engine import Simulation
from discreet.engines.engine_table import Embedded, EngineSetup, Ray, Secure
from discreet.errors import InvalidInput
from discreet.randomness.streams import RunKey
from tests.federations import cross_entropy, federation, linear

DATA = federation(7, 1, 12, 4)
DP_FEDAVG = dp_fedavg(learning_rate=0.3, batch_size=4, clip_norm=0.5, noise_multiplier=1.0)


def setup(block_size: int | None = None) -> EngineSetup:
    return EngineSetup(Simulation(DP_FEDAVG, DATA, cross_entropy, RunKey.from_seed(1)), linear(), block_size)


def test_the_table_sets_the_block_size_and_memory_decides_without_it() -> None:
    assert Embedded(block_size=3).build(setup()).block_size == 3
    assert Embedded().build(setup()).block_size == LARGEST_BLOCK
    assert Embedded(memory_gb=1e-9).build(setup()).block_size == 1


def test_a_secure_engine_takes_the_block_size_of_its_table() -> None:
    recipe = RECIPES["ddp_fedavg"]
    algorithm = recipe(**{**recipe.example, "noise": "skellam"}).with_noise(1.0).for_population(DATA.population, 18)
    simulation = Simulation(algorithm, DATA, cross_entropy, RunKey.from_seed(1))
    assert Secure(block_size=2).build(EngineSetup(simulation, linear())).block_size == 2


def test_a_resumed_run_keeps_the_block_size_that_it_began_with() -> None:
    assert Embedded(block_size=3).build(setup(block_size=2)).block_size == 2


def test_moments_are_summed_in_blocks_of_the_same_size() -> None:
    assert Ray(block_size=3).for_moments() == Embedded(block_size=3)


@pytest.mark.parametrize("wrong", [0, -1, 2.5, True, "3"])
def test_a_block_size_is_a_whole_number_of_at_least_one(wrong: object) -> None:
    with pytest.raises(InvalidInput, match="block_size"):
        Embedded(block_size=wrong)  # type: ignore[arg-type]
