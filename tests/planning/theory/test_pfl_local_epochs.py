"""PFL's Theorem 2: by hand, against simulated noise, and against the exact accountant."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.planning.theory import pfl_local_epochs
from discreet.planning.theory.pfl_local_epochs import Training
from discreet.privacy import accountant

MNIST = Training(
    examples=6000,
    batch_size=256,
    epochs=20,
    clients=10,
    clip_norm=1.0,
    learning_rate=0.3,
    dimension=26_010,
    lipschitz=1.0,
)
# α = 2, L = 4, so αC/L = 1/2; a batch is the whole data.
SMALL = Training(
    examples=4,
    batch_size=4,
    epochs=6,
    clients=3,
    clip_norm=1.0,
    learning_rate=2.0,
    dimension=1,
    lipschitz=3.0,
)
ONE = math.sqrt(2 / math.pi)  # E|N(0, 1)|


@pytest.mark.parametrize(
    ("epsilon", "examples", "noise"),
    [(2.93, 6000, 1.531), (1.2, 6000, 3.042), (2.7, 6000, 1.619), (7.53, 5000, 0.943), (3.0, 5000, 1.621)],
)
def test_the_papers_promises_take_so_much_noise(epsilon: float, examples: int, noise: float) -> None:
    """Values of another accountant, whose coarser grid adds up to 0.001 to them."""
    found = pfl_local_epochs.calibrate_noise(replace(MNIST, examples=examples), epsilon, 1e-5)
    assert noise - 1e-3 <= found <= noise + 5e-4


def test_the_norm_of_a_normal_vector_is_the_known_one_in_few_dimensions_and_near_the_root_in_many() -> None:
    assert pfl_local_epochs.expected_normal_norm(1) == pytest.approx(ONE)
    assert pfl_local_epochs.expected_normal_norm(2) == pytest.approx(math.sqrt(math.pi / 2))
    assert pfl_local_epochs.expected_normal_norm(3) == pytest.approx(2 * ONE)
    below, above = (pfl_local_epochs.expected_normal_norm(pfl_local_epochs.SERIES_FROM + i) for i in (0, 1))
    assert above - below == pytest.approx(1 / (2 * math.sqrt(pfl_local_epochs.SERIES_FROM)), rel=1e-3)


def test_the_noise_is_one_and_the_rule_of_thumb_is_too_small_for_one_epoch_and_large_enough_for_four() -> None:
    noise = pfl_local_epochs.calibrate_noise(MNIST, 2.93, 1e-5)
    by_epochs = {each.epochs: each for each in pfl_local_epochs.split_epochs(MNIST, noise, 2.93, 1e-5)}
    assert list(by_epochs) == [1, 2, 4, 5, 10, 20]
    assert by_epochs[1].asymptotic == pytest.approx(2.93 / math.sqrt(20))
    assert by_epochs[1].epsilon == pytest.approx(0.7126, abs=5e-5)
    assert [each.valid for each in by_epochs.values()] == [False, False, True, True, True, True]
    assert by_epochs[2].reason == "asymptotic: less than the true cost of one round"
    for each in by_epochs.values():
        assert each.epochs * each.rounds == 20
        assert each.epsilon == accountant.epsilon(pfl_local_epochs.event(MNIST, noise, each.epochs), 1e-5)
    assert by_epochs[20].epsilon <= 2.93


def test_the_bounds_of_theorem_2_by_hand() -> None:
    """Four steps: α(C + C_1) = 2·(1 + 3) = 8 for each, and a noise of ½·z·E|N(0, 1)|, four times or twice."""
    assert pfl_local_epochs.theorem2_printed(SMALL, 1.5, 4) == pytest.approx(3 * 4 * (8 + 0.75 * ONE))
    assert pfl_local_epochs.theorem2_corrected(SMALL, 1.5, 4) == pytest.approx(3 * (4 * 8 + 2 * 0.75 * ONE))
    assert pfl_local_epochs.theorem2_corrected(SMALL, 1.5, 1) == pfl_local_epochs.theorem2_printed(SMALL, 1.5, 1)
    assert pfl_local_epochs.theorem2_whole_run(SMALL, 1.5) == pytest.approx(3 * (6 * 8 + math.sqrt(6 / 3) * 0.75 * ONE))


@given(st.integers(1, 60), st.floats(0.01, 100), st.integers(1, 10**7))
def test_theorem_2_added_up_over_all_rounds_is_the_same_at_every_split(epochs: int, noise: float, size: int) -> None:
    training = replace(SMALL, epochs=epochs, dimension=size)
    whole = pfl_local_epochs.theorem2_printed(training, noise, training.steps)
    for each in (d for d in range(1, epochs + 1) if epochs % d == 0):
        one_round = pfl_local_epochs.theorem2_printed(training, noise, each * training.steps_per_epoch)
        assert epochs // each * one_round == pytest.approx(whole)
        assert pfl_local_epochs.theorem2_corrected(training, noise, each * training.steps_per_epoch) <= one_round * (
            1 + 1e-12
        )


@pytest.mark.parametrize("epochs", [1, 2, 3, 6])
def test_the_mean_of_the_last_round_carries_the_same_noise_however_the_steps_were_cut_into_rounds(epochs: int) -> None:
    """Three clients, six steps, gradients that don't depend on the state: the very same number at every E."""
    noises = np.random.default_rng(3).normal(size=(6, 3))
    model = np.zeros(3)
    for step in range(6):
        model = model - SMALL.step_length * noises[step]
        if (step + 1) % epochs == 0:
            model = np.full(3, model.mean())
    assert model[0] == pytest.approx(-SMALL.step_length * noises.sum() / 3)


def test_noise_that_was_drawn_has_the_norm_that_is_carried() -> None:
    """20,000 norms, of deviation below 0.75 of one step's: off by 5 standard errors once in 1.7 million."""
    training = replace(SMALL, dimension=5)
    drawn = np.random.default_rng(4).normal(0, 1.5 * training.step_length, (20_000, 6, 3, 5)).sum(axis=1).mean(axis=1)
    norms = np.linalg.norm(drawn, axis=1)
    carried = pfl_local_epochs.expected_noise_norm(training, 1.5, 6, 3)
    assert norms.mean() == pytest.approx(carried, abs=5 * norms.std() / math.sqrt(20_000))
