"""How many bits a ring gets by default: the fewest with which rounding needs at most 1 % more noise."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.algorithms.aggregation import Lattice
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.message_sizes import message_bits
from discreet.algorithms.population import Population
from discreet.algorithms.recipes.ddp_fedavg import ddp_fedavg, ddp_fedavg_client
from discreet.errors import InvalidInput
from discreet.experiment.promise import calibrate
from discreet.experiment.promise.promise import Privacy
from discreet.privacy.skellam import l2_after_rounding
from discreet.secure_sums.lattice.grid import Load
from discreet.secure_sums.lattice.rounding import l2_of_rounded_sum
from discreet.secure_sums.lattice.scale import COARSEST, SumPlan, fewest_bits, fit_scale, wraparound_probability
from discreet.secure_sums.ring_bits import LEAST_BITS

PAPER = Population(examples=(5600,) * 10)  # Fashion-MNIST of Heikkilä 2025
NUMBERS = 26_010
PLANS = st.builds(
    SumPlan,
    bits=st.just(62),
    vectors=st.integers(1, 10**6),
    sums=st.none() | st.integers(1, 1000),
    clip_norm=st.floats(1e-3, 1e3),
    dimension=st.integers(1, 10**7),
    noise_deviation=st.floats(1e-2, 1e3),
    shares=st.integers(1, 1000),
    noise=st.sampled_from(["skellam", "discrete_gaussian"]),
    rotated=st.booleans(),
)


def added_by_rounding(plan: SumPlan, norm: float) -> float:
    """Return what rounding adds relative to the norm: conditionally for single vectors, √d for sums."""
    l2 = l2_after_rounding if plan.sums is None else l2_of_rounded_sum
    return l2(norm, plan.dimension) / norm - 1


@settings(max_examples=200)
@given(PLANS)
def test_they_are_enough_and_one_bit_less_is_not(plan: SumPlan) -> None:
    """Except where even the finest lattice on which shares can be drawn is coarser than requested."""
    found = fewest_bits(plan)
    at = fit_scale(replace(plan, bits=found))
    assert at.wraparound <= 1e-9
    assert added_by_rounding(plan, at.norm) <= COARSEST * (1 + 1e-6) or at.by != "ring"
    if found > 2:
        try:
            less = fit_scale(replace(plan, bits=found - 1))
        except InvalidInput:
            return
        assert added_by_rounding(plan, less.norm) > COARSEST * (1 - 1e-6)


@given(PLANS, st.floats(1.0, 100.0))
def test_for_a_scale_that_is_given_they_are_the_fewest_that_hold_it(plan: SumPlan, scale: float) -> None:
    found = fewest_bits(plan, 1e-9, scale)
    assert wraparound_probability(replace(plan, bits=found), scale) <= 1e-9
    assert found == 2 or wraparound_probability(replace(plan, bits=found - 1), scale) > 1e-9


def test_the_papers_ring_has_a_bit_to_spare() -> None:
    """110 sums of 56,000 examples: √26,010 steps are 1 % of a sum's range at 53,500 steps to the clip; so 31 bits
    are enough, and the paper has 32."""
    algorithm = ddp_fedavg(learning_rate=0.1, clip_norm=1.0, sampling_rate=1 / 11, local_steps=11, noise_multiplier=6.0)
    ready = algorithm.for_population(PAPER, NUMBERS)
    assert isinstance(ready.aggregation, Lattice)
    assert ready.aggregation.bits == 31
    grid = ready.grid(PAPER)
    assert grid is not None
    assert 0.005 < l2_of_rounded_sum(grid.scale / 11**0.5, NUMBERS) / (grid.scale / 11**0.5) - 1 < COARSEST


def test_whole_clients_take_half_as_many_and_so_half_the_bytes() -> None:
    algorithm = ddp_fedavg_client(learning_rate=0.1, batch_size=10, steps=5, clip_norm=1.0, noise_multiplier=6.0)
    ready = algorithm.for_population(PAPER, NUMBERS)
    assert isinstance(ready.aggregation, Lattice)
    assert ready.aggregation.bits == 17
    assert message_bits(ready, {"weight": torch.zeros(NUMBERS)}).up == 17 * NUMBERS


@pytest.mark.parametrize("recipe", [ddp_fedavg, ddp_fedavg_client])
def test_a_promise_is_kept_with_hardly_more_noise_than_32_bits_take(recipe: object) -> None:
    """The bits follow the noise during calibration, and both converge."""
    client = recipe is ddp_fedavg_client
    given = {"batch_size": 10, "steps": 2} if client else {"sampling_rate": 1 / 11}
    wanted = Privacy(unit="client" if client else "example", against="server", epsilon=1.0, delta=1e-5)

    def calibrate_bits(width: int | None) -> Algorithm:
        algorithm = recipe(learning_rate=0.1, clip_norm=1.0, bits=width, **given)  # type: ignore[operator]
        return calibrate.calibrate_noise(algorithm, wanted, 20, PAPER, NUMBERS)

    own, wide = calibrate_bits(None), calibrate_bits(40)
    assert isinstance(own.aggregation, Lattice)
    assert own.aggregation.bits is not None
    assert own.aggregation.bits < 32
    noises = [each.mechanism.noise_multiplier for each in (own, wide)]  # type: ignore[union-attr]
    assert 1 <= noises[0] / noises[1] < 1 + COARSEST + 1e-4
    assert own.for_population(PAPER, NUMBERS) == own


def test_no_ring_is_smaller_than_secure_sums_have_them_nor_larger_than_there_is() -> None:
    few = Load(vectors=2, sums=None, norm=1.0, deviation=0.1, shares=2, noise="skellam")
    assert Lattice(scale=1.0).for_sum(1, few).bits == LEAST_BITS
    many = Load(vectors=10**12, sums=None, norm=1.0, deviation=1e-3, shares=2, noise="skellam")
    assert Lattice(scale=1e9).for_sum(10**9, many).bits == 62
    with pytest.raises(InvalidInput, match="leaves the ring of 62 bits with a probability of up to 1, and 1e-9 is"):
        Lattice(scale=1e9).for_sum(10**9, many).check_load(many)
