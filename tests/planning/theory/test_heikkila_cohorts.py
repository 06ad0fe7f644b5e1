"""Cohorts that share their noise: Heikkilä's settings, and drop-outs."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidInput
from discreet.planning.theory import heikkila_cohorts
from discreet.planning.theory.heikkila_cohorts import ClientWork, Cohort
from discreet.privacy import accountant, gaussian
from experiments.distributed.paper_settings import EPOCH, STEP, Settings

FASHION = ClientWork(sampling_rate=1 / 11, steps=11, rounds=20)

# The paper's settings: σ of the sum, and its tight ε at the rate at which batches are drawn.
SETTINGS = [
    (EPOCH, "fashion", 20, 6.822, 0.73),
    (STEP, "fashion", 20, 1.368, 0.44),
    (EPOCH, "cifar", 10, 3.827, 0.72),
    (EPOCH, "cifar", 20, 5.254, 0.73),
    (EPOCH, "cifar", 40, 7.319, 0.73),
    (EPOCH, "cifar", 80, 10.271, 0.73),
    (EPOCH, "cifar", 160, 14.47, 0.73),
    (STEP, "cifar", 10, 1.382, 0.40),
    (STEP, "cifar", 20, 1.414, 0.48),
    (STEP, "cifar", 40, 1.489, 0.57),
    (STEP, "cifar", 80, 1.631, 0.66),
    (STEP, "cifar", 160, 1.967, 0.71),
    (EPOCH, "income", 10, 3.688, 0.73),
    (STEP, "income", 10, 1.620, 0.56),
]


@pytest.mark.parametrize(("kind", "data", "rounds", "total", "tight"), SETTINGS)
def test_the_papers_settings_come_out_as_claimed_and_only_one_step_is_certified_so(
    kind: dict[tuple[str, int], Settings], data: str, rounds: int, total: float, tight: float
) -> None:
    theirs, cohort = kind[data, rounds], Cohort(clients=51 if data == "income" else 10)
    counted = ClientWork(sampling_rate=theirs.sampling_rate, steps=theirs.steps // rounds, rounds=rounds)
    claimed = heikkila_cohorts.evaluate_share(counted, cohort, theirs.noise_multiplier, 1e-5).paper_epsilon
    assert claimed == pytest.approx(1.0, abs=5e-4)
    drawn = replace(counted, sampling_rate=1 / math.ceil(1 / theirs.sampling_rate))
    found = heikkila_cohorts.evaluate_share(drawn, cohort, theirs.noise_multiplier, 1e-5)
    assert found.full_noise == found.noise == pytest.approx(total, abs=1e-3)
    assert found.epsilon == found.full_epsilon == pytest.approx(tight, abs=5.1e-3)  # which has two digits
    if kind is STEP:
        assert found.own_state_epsilon == found.epsilon
    else:
        assert found.own_state_epsilon == accountant.epsilon(drawn.event(theirs.noise_multiplier), 1e-5) > 2.5


@pytest.mark.parametrize(("total", "claimed"), [(4.0, 1.356), (6.822, 0.755)])
def test_two_steps_without_sampling_are_claimed_as_one_gaussian(total: float, claimed: float) -> None:
    """√2/σ is μ: 0.354 at σ = 4. At a client's own state it is √N times that."""
    work = ClientWork(sampling_rate=1.0, steps=2, rounds=1)
    found = heikkila_cohorts.evaluate_share(work, Cohort(clients=10), total / math.sqrt(10), 1e-5)
    assert found.full_epsilon == pytest.approx(claimed, abs=6e-4)
    assert found.own_state_epsilon == pytest.approx(gaussian.epsilon(math.sqrt(20) / total, 1e-5), rel=1e-3)


def test_planned_shares_leave_enough_and_the_papers_do_not() -> None:
    noise = heikkila_cohorts.calibrate_noise(FASHION, 1.0, 1e-5)
    cohort = Cohort(clients=10, colluding=1, dropouts=1)
    planned = heikkila_cohorts.evaluate_share(FASHION, cohort, heikkila_cohorts.planned_share(noise, cohort), 1e-5)
    papers = heikkila_cohorts.evaluate_share(FASHION, cohort, heikkila_cohorts.paper_share(noise, cohort), 1e-5)
    assert planned.noise == pytest.approx(noise)
    assert planned.epsilon == pytest.approx(1.0, abs=2e-5)
    assert planned.honest == 8
    assert papers.full_noise == pytest.approx(noise)
    assert papers.noise == pytest.approx(noise * math.sqrt(0.8))
    assert papers.epsilon == pytest.approx(1.136, abs=5e-4)
    assert papers.full_epsilon <= 1.0
    assert planned.share / papers.share == pytest.approx(math.sqrt(10 / 8))


@given(st.integers(1, 1000), st.integers(0, 5), st.integers(0, 5), st.floats(0.5, 20))
def test_whoever_is_missing_was_allowed_for(clients: int, colluding: int, dropouts: int, noise: float) -> None:
    cohort = Cohort(clients=clients + colluding + dropouts, colluding=colluding, dropouts=dropouts)
    share = heikkila_cohorts.planned_share(noise, cohort)
    assert share * math.sqrt(cohort.honest) == pytest.approx(noise)
    assert share >= heikkila_cohorts.paper_share(noise, cohort)
    least = heikkila_cohorts.smallest_cohort(noise, share, colluding=colluding, dropouts=dropouts)
    assert least == cohort.clients


def test_the_mean_of_more_clients_has_less_noise_though_the_sum_has_the_same() -> None:
    noise = heikkila_cohorts.calibrate_noise(FASHION, 1.0, 1e-5)
    means = [
        heikkila_cohorts.evaluate_share(
            FASHION, Cohort(clients=n), heikkila_cohorts.paper_share(noise, Cohort(clients=n)), 1e-5
        ).mean_noise
        for n in (10, 100)
    ]
    assert means == pytest.approx([noise / 10, noise / 100])


def test_cohorts_in_which_nobody_is_left_are_left_out_and_refused_where_there_is_no_other() -> None:
    assert [each.clients for each in heikkila_cohorts.feasible_cohorts((1, 2, 3, 10), 1, 1)] == [3, 10]
    with pytest.raises(InvalidInput, match="Of at most 2 clients, 1 collude and 1 drop out"):
        heikkila_cohorts.feasible_cohorts((1, 2), 1, 1)
