"""Kim et al.'s trade-offs: bits are counted correctly, rows keep their promise, and the page shows the results."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from discreet import api
from discreet.algorithms.population import Population
from discreet.experiment.configuration import experiment_file
from discreet.experiment.job import Job
from discreet.experiment.promise.calibrate import calibrate_noise
from discreet.experiment.promise.run_spending import round_limits
from experiments.tradeoffs import accountants, claims, page, plans, reproduce
from experiments.tradeoffs.points import (
    EPSILONS,
    OWN,
    Point,
    alike,
    departure_points,
    first_rates,
    own_promise_points,
    points,
)
from experiments.tradeoffs.rate import STEP, Upload
from experiments.tradeoffs.row_results import RowResults

FOLDER = Path(__file__).parents[2] / "experiments" / "tradeoffs"
TEN = Population(examples=(600,) * 10)


def test_bits_are_those_of_the_papers_own_setting():
    """d = 10,000 and σ² = 3.2495 (its ε = 1): the noise alone has 28,972 bits, and the printed bound is negative."""
    upload = Upload(10_000, math.sqrt(3.2495))
    assert 10_000 * upload.at_least(1) == pytest.approx(28_972, abs=1)
    assert 10_000 * upload.printed_bits(1) == pytest.approx(-16_996, abs=1)


@given(st.integers(1, 10**6), st.floats(1e-3, 1e3))
def test_the_noise_alone_takes_no_more_than_the_bound_and_the_printed_one_is_below_from_18_coordinates(
    coordinates: int, deviation: float
):
    upload = Upload(coordinates, deviation)
    assert upload.at_least() <= upload.max_bits()
    assert (upload.printed_bits() < upload.at_least()) == (coordinates >= 18)


def test_a_step_of_half_the_size_takes_one_bit_more():
    upload = Upload(100, 2.0)
    for bits in (upload.max_bits, upload.at_least, upload.printed_bits):
        assert bits(0.005) == pytest.approx(bits(0.01) + 1)


@given(st.floats(1e-3, 1e2))
def test_rounded_as_coarsely_as_it_is_noisy_an_upload_takes_fewer_bits_the_more_noise_it_has(deviation: float):
    """½·log2(2πe·(1 + 1/(dσ²))): 2.05 bits and less and less beyond."""
    less, more = Upload(100, deviation), Upload(100, 2 * deviation)
    assert less.max_bits(step=less.deviation) > more.max_bits(step=more.deviation) > math.log2(2 * math.pi * math.e) / 2


def test_a_batch_of_four_at_one_half_has_a_quarter_more_of_squared_norm():
    """E|J|² = (0·1 + 1·4 + 4·6 + 9·4 + 16·1)/16 = 5, over (qn)² = 4."""
    upload = Upload.from_settings("example", 10, noise_multiplier=3.0, sampling_rate=0.5, examples=4)
    assert (upload.square, upload.deviation) == (pytest.approx(1.25), pytest.approx(1.5))
    assert Upload.from_settings("minibatch", 10, 3.0, 0.5, 4) == Upload(10, 3.0)


@pytest.mark.parametrize("deviation", [0.003, 0.1, 4.0])
def test_the_code_words_of_all_numbers_fill_the_unit_interval(deviation: float):
    """Kraft: an arithmetic coder needs Σ 2^−length = 1."""
    upload = Upload(1000, deviation)
    most = math.ceil(12 * math.sqrt(upload.variance) / STEP)
    lengths = [upload.code_length(torch.tensor([at * STEP])) for at in range(-most, most + 1)]
    assert math.fsum(2.0**-length for length in lengths) == pytest.approx(1, abs=1e-9)


def test_gaussian_numbers_take_as_many_bits_as_the_bound_says():
    """A million draws: the mean length has a standard error of 0.00102; six of them are a false alarm of 2e-9."""
    upload = Upload(1000, 0.5)
    drawn = torch.randn(10**6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    assert upload.code_length(drawn * math.sqrt(upload.variance)) == pytest.approx(upload.max_bits(), abs=0.0062)


def test_a_number_far_out_has_a_long_code_and_not_an_endless_one():
    upload = Upload(10**9, 1.0)
    assert upload.code_length(torch.tensor([100.0])) == pytest.approx(100**2 / 2 / math.log(2), rel=0.01)


def job(*overrides: str) -> Job:
    settings = (
        "seed=3",
        "rounds=20",
        'task={kind="digits", clients=4, partition={kind="dirichlet", alpha=1.0}}',
        'algorithm={recipe="fl_sgd_gaussian", learning_rate=0.25, clip_norm=0.5, sampling_rate=[0.1, 0.2, 0.3, 0.4]}',
        *overrides,
    )
    return api.prepare_job(experiment_file.load_experiment(None, settings))


@pytest.mark.parametrize("clipping", ["example", "minibatch"])
def test_uploads_carry_the_noise_that_their_bits_are_counted_from(clipping: str):
    """The mean of 650 squares has a standard error of √(2/650) = 5.5 %, and the gradient adds at most 5 %.

    Six standard errors are a false alarm of 1e-7 for each of four clients.
    """
    ready = job(f'algorithm.clipping="{clipping}"', "algorithm.noise_multiplier=40.0")
    for upload, gradient in zip(plans.uploads(ready), plans.first_gradients(ready), strict=True):
        assert upload.deviation**2 > 20 * upload.square / 650  # compared with it the gradient is small
        assert float(gradient.square().mean()) == pytest.approx(upload.deviation**2, rel=0.4)


def test_a_gradient_without_much_noise_is_the_clients_own_in_units_of_its_clip():
    ready = job('algorithm.clipping="minibatch"', "algorithm.noise_multiplier=1e-4", "privacy.epsilon=1e12")
    found = [float(each.norm()) for each in plans.first_gradients(ready)]
    assert found == pytest.approx([1.0] * 4, abs=1e-3)  # every mean gradient at the start is longer than the clip


def test_each_clients_epsilon_is_its_own():
    ready = job("privacy.epsilon=[0.5, 1.0, 2.0, 4.0]")
    assert plans.certified_epsilons(ready) == pytest.approx([0.5, 1.0, 2.0, 4.0], rel=1e-4)
    everyone = job("privacy.epsilon=1.0", "algorithm.sampling_rate=0.2")
    assert plans.certified_epsilons(everyone) == pytest.approx([1.0] * 4, rel=1e-4)


def test_at_equal_epsilon_minibatches_carry_twice_the_noise_of_examples():
    found = {}
    for point in alike():
        experiment = point.cell().source.experiment
        algorithm: Any = calibrate_noise(experiment.algorithm, experiment.privacy, experiment.rounds, TEN)
        found[point.what] = algorithm.trainer.noise_multiplier
    for epsilon in EPSILONS:
        assert found[f"minibatch {epsilon:g}"] == pytest.approx(2 * found[f"example {epsilon:g}"], rel=1e-4)


def test_own_clients_ask_for_each_epsilon_twice_and_so_do_those_who_leave():
    (each, *_), (leaves, *_) = (
        [point.cell().source.experiment for point in of()] for of in (own_promise_points, departure_points)
    )
    assert each.privacy is not None
    assert sorted(set(each.privacy.epsilon)) == list(OWN)  # type: ignore[arg-type]
    assert (each.privacy, each.task) == (leaves.privacy, leaves.task)
    gone = round_limits(leaves.algorithm, leaves.privacy, leaves.rounds, TEN)
    assert 0 < len(gone) < 10
    assert len(set(gone.values())) == len(gone)  # each at its own time


def test_every_row_is_planned_once_and_every_point_asked_for_once():
    rows = {(point.file, point.what) for point in points() if point.file != "without"}
    assert {(point.file, point.what) for point in first_rates()} == rows
    assert len(first_rates()) == len(rows)
    assert len(set(points())) == len(points())


def test_accountants_count_the_experiment_of_the_file():
    experiment: Any = next(alike()).cell().source.experiment
    told = (experiment.privacy.delta, experiment.algorithm.trainer.sampling_rate, experiment.rounds)
    assert told == (accountants.DELTA, accountants.SAMPLING_RATE, accountants.ROUNDS)


def test_a_looser_accountant_asks_for_more_noise():
    noises = [accountants.noise(name, 1.0) for name in accountants.EPSILONS]
    assert noises == sorted(noises)
    experiment: Any = Point("alike", "", 1.0).cell().source.experiment
    algorithm: Any = calibrate_noise(experiment.algorithm, experiment.privacy, experiment.rounds, TEN)
    assert noises[0] == pytest.approx(algorithm.trainer.noise_multiplier, rel=1e-4)


def test_the_moments_accountant_can_not_say_less_than_its_largest_moment_allows():
    assert accountants.noise("moments accountant", 0.25) == math.inf
    assert math.isfinite(accountants.noise("moments accountant", math.log(1e5) / 32 + 0.01))


def ran(rate: str, seed: int, loss: float, before: float) -> dict[str, Any]:
    return {
        "name": "leaving",
        "swept": {"what": "leaving", "rate": rate},
        "seed": seed,
        "metrics": {"accuracy": 0.5, "loss": loss},
        "history": [{"round": 3, "accuracy": 0.25, "loss": before}],
    }


def test_a_row_has_the_rate_with_the_least_mean_loss_after_as_many_rounds():
    found = [ran("0.5", 0, 1.0, 9.0), ran("0.5", 1, 3.0, 9.0), ran("2", 0, 4.0, 1.0), ran("2", 1, 0.5, 1.0)]
    last, early = (RowResults(found).row("leaving", "leaving", after) for after in (None, 3))
    assert (last.rate, last.accuracy) == (0.5, {0: 50.0, 1: 50.0})
    assert (early.rate, early.accuracy) == (2.0, {0: 25.0, 1: 25.0})


@pytest.mark.parametrize(
    ("means", "verdict"),
    [
        ((50.0, 60.0, 70.0), "Holds"),
        ((50.0, 72.0, 70.0), "Holds from end to end, not in every step"),
        ((70.0, 60.0, 50.0), "Does not hold"),
        ((50.0, 50.2, 50.1), "Does not hold"),
    ],
)
def test_utility_falls_only_in_order_and_clearly(means: tuple[float, ...], verdict: str):
    seeds = (0.0, 1.0, -1.0)
    by = {
        epsilon: {seed: value + epsilon * step * 0.3 for seed, step in enumerate(seeds)}
        for epsilon, value in zip((0.5, 1.0, 2.0), means, strict=True)
    }
    assert claims.utility("example", by).verdict == verdict


def test_a_row_that_was_not_run_is_counted():
    assert reproduce.count_missing([]) == len(points())
    assert reproduce.count_missing(reproduce.results()) == 0


def test_the_page_is_what_the_results_say_and_is_written_alike_each_time(tmp_path: Path):
    written = []
    for name in ("first", "again"):
        (tmp_path / name).mkdir()
        page.write(reproduce.results(), tmp_path / name)
        written.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()})
    assert written[0] == written[1]
    docs = FOLDER.parents[1] / "docs" / "results"
    assert written[0]["tradeoffs.md"] == (docs / "tradeoffs.md").read_bytes()
