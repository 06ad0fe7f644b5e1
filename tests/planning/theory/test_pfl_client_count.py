"""PFL's Theorem 3: by hand, and against simulated means."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidInput
from discreet.planning.theory import pfl_client_count, pfl_local_epochs
from discreet.planning.theory.pfl_client_count import ModelSpread
from tests.planning.theory.test_pfl_local_epochs import MNIST


def test_theorem_3_by_hand() -> None:
    """σ = 0.1, β = 2, l = 0.5, k = 4: printed 1 − 0.04/1; in nine coordinates 1 − 0.36; a bias of 0.1 costs 0.16."""
    spread = ModelSpread(deviation=0.1, dimension=9, lipschitz=2.0, loss=0.5)
    assert pfl_client_count.theorem3_printed(spread, 4) == pytest.approx(0.96)
    assert pfl_client_count.theorem3_corrected(spread, 4) == pytest.approx(0.64)
    assert pfl_client_count.theorem3_corrected(replace(spread, bias=0.1), 4) == pytest.approx(0.48)
    assert pfl_client_count.theorem3_corrected(replace(spread, dimension=1), 4) == pytest.approx(0.96)


@given(st.floats(0, 10), st.integers(1, 10**6), st.floats(0.01, 10), st.integers(1, 10**9))
def test_a_bias_is_what_no_number_of_clients_averages_out(
    deviation: float, dimension: int, bias: float, clients: int
) -> None:
    spread = ModelSpread(deviation=deviation, dimension=dimension, lipschitz=1.0, loss=0.5, bias=bias)
    assert pfl_client_count.theorem3_corrected(spread, clients) <= 1 - 4 * bias**2


def test_means_that_were_drawn_keep_to_the_corrected_utility_and_not_to_the_printed_one() -> None:
    """Four clients in a hundred coordinates at σ = 0.1: the mean's norm is near ½, where 99 in 100 should be below.

    Over 20,000 draws the fraction is off by more than 0.02 less than once in 10^7.
    """
    spread = ModelSpread(deviation=0.1, dimension=100, lipschitz=1.0, loss=0.55)
    means = np.random.default_rng(5).normal(0, 0.1, (20_000, 4, 100)).mean(axis=1)
    within = float((np.linalg.norm(means, axis=1) < 0.55).mean())
    assert pfl_client_count.theorem3_printed(spread, 4) > 0.99 > within + 0.02
    assert pfl_client_count.theorem3_corrected(spread, 4) < within - 0.02


def test_a_crowd_has_the_root_of_its_number_less_noise_when_it_shares_it() -> None:
    for clients in (1, 10, 25):
        found = pfl_client_count.evaluate_client_count(replace(MNIST, clients=clients), 2.93, 1e-5, 0.5)
        assert found.local_noise == pytest.approx(found.noise_multiplier / math.sqrt(clients))
        assert found.shared_noise == pytest.approx(found.noise_multiplier / clients)
        assert found.noise_multiplier == pytest.approx(1.531, abs=6e-4)
    assert found.valid


def test_a_utility_below_0_says_nothing() -> None:
    found = pfl_client_count.evaluate_client_count(replace(MNIST, clients=1), 2.93, 1e-5, 0.5)
    assert found.corrected_utility < 0 < found.printed_utility
    assert not found.valid
    assert found.reason == "a probability of at least 0 or less: says nothing"


def test_clients_who_share_a_training_set_have_less_each_and_need_more_noise() -> None:
    examples = [pfl_client_count.examples_per_client(60_000, clients) for clients in (10, 100)]
    assert examples == [6000, 600]
    few, many = (pfl_local_epochs.calibrate_noise(replace(MNIST, examples=each), 2.93, 1e-5) for each in examples)
    assert many > 2 * few
    with pytest.raises(InvalidInput, match="60 examples can't be shared by 61 clients"):
        pfl_client_count.examples_per_client(60, 61)
