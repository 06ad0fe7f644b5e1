"""The mean of separately trained models: all of Heikkilä's Table 1, and which of its rows are true."""

import pytest

from discreet.errors import InvalidInput
from discreet.planning.theory.heikkila_model_averaging import calibrate_local_noise, evaluate_average, paper_epsilon
from discreet.privacy import accountant, gaussian
from experiments.distributed import table1
from experiments.distributed.table1 import PRINTED


@pytest.mark.parametrize(("steps", "clients", "sigma", "epsilon"), PRINTED)
def test_the_row_comes_out_as_printed(steps: int, clients: int, sigma: float, epsilon: float) -> None:
    found = evaluate_average(5.0, clients, steps, 0.1, 1e-5)
    assert round(found.total_noise, 2) == sigma
    assert round(found.claimed_epsilon, 2) == epsilon


# Tight values, known from another accountant: of one step at the noise of the sum, of more at that of one model.
@pytest.mark.parametrize(("steps", "clients", "tight"), [(1, 1, 3.67), (1, 10, 0.31), (10, 1, 3.53), (10, 10, 3.53)])
def test_one_step_is_certified_at_the_noise_of_all_and_more_at_that_of_one(
    steps: int, clients: int, tight: float
) -> None:
    found = evaluate_average(5.0, clients, steps, 0.1, 1e-5)
    assert found.epsilon == accountant.epsilon(found.event, 1e-5) == pytest.approx(tight, abs=0.005)
    assert found.is_sound is (steps == 1 or clients == 1)
    assert found.is_sound or found.epsilon > found.claimed_epsilon


def test_without_sampling_one_step_of_the_sum_is_one_gaussian() -> None:
    found = evaluate_average(5.0, 4, 1, 1.0, 1e-5)
    assert found.total_noise == pytest.approx(2 * found.local_noise)
    assert found.epsilon == pytest.approx(gaussian.epsilon(1 / found.total_noise, 1e-5), rel=1e-3)


def test_the_noise_is_the_least_for_the_papers_accountant() -> None:
    noise = calibrate_local_noise(3.0, 7, 0.2, 1e-6)
    found = evaluate_average(3.0, 1, 7, 0.2, 1e-6)
    assert found.local_noise == noise
    assert 3.0 - 1e-5 < found.claimed_epsilon <= 3.0
    assert paper_epsilon(found.event, 1e-6) == found.claimed_epsilon


def test_an_epsilon_that_the_papers_accountant_never_says_is_refused() -> None:
    """ln(1e5)/254 = 0.0453 is added at the largest of its orders, however much noise there is."""
    with pytest.raises(InvalidInput, match=r"never reports less than 0\.04533"):
        evaluate_average(0.04, 2, 1, 0.1, 1e-5)


def test_the_table_marks_the_rows_that_are_claims() -> None:
    head, _, *rows = table1.table().splitlines()
    assert head.count("|") == 8
    assert len(rows) == 12
    assert [("claim" in row) for row in rows] == [steps > 1 and clients > 1 for steps, clients, *_ in PRINTED]
