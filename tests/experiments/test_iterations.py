"""Fu et al.'s figures: our noise-to-signal ratio is the paper's, and the page shows the results."""

import math
from pathlib import Path
from typing import Any

import pytest

from discreet.algorithms.mechanisms import NoPrivacy
from discreet.algorithms.population import Population
from discreet.experiment.configuration import experiment_file
from discreet.experiment.promise.calibrate import calibrate_noise
from experiments.iterations import claims, page, point_results, reproduce, tables
from experiments.iterations.claims import Sweeps
from experiments.iterations.noise import FEDERATIONS, GAUSSIAN, LAPLACE, LINEAR, REGRESSION
from experiments.iterations.point_results import PointResults
from experiments.iterations.points import GRIDS, RULES, Point, sweeps, tuning

FOLDER = Path(__file__).parents[2] / "experiments" / "iterations"


@pytest.mark.parametrize("kind", FEDERATIONS)
def test_noise_beside_the_signal_is_the_papers(kind: str):
    federation = FEDERATIONS[kind]
    theirs, ours = federation.published_noise(10, 5), federation.matched_noise(10, 5)
    same = [federation.loudness(theirs, federation.theirs // 10), federation.loudness(ours, federation.cohort)]
    assert same[0] == pytest.approx(same[1], rel=1e-9)


def test_laplace_noise_is_corollary_1_1():
    """2pbT_g²/(N²ε²) with p = 11, b = 500, N = 5000, T_g = 100 and ε = 3: 110/90; per client T_l/ε."""
    assert LAPLACE.published_noise(3, 10) == pytest.approx(10 / 3)
    assert LAPLACE.loudness(LAPLACE.published_noise(3, 10), 500) == pytest.approx(
        math.sqrt(2 * 11 * 500 * 100**2 / (5000**2 * 9))
    )


def test_certified_counts_that_two_updates_lie_twice_the_bound_apart():
    """The paper's noise on averages of fewer clients means an ε that is √(5000/420) times larger, and then doubled."""
    assert LAPLACE.certified_epsilon(LAPLACE.matched_noise(3, 10), 10) == pytest.approx(2 * 3 * math.sqrt(5000 / 420))
    assert LAPLACE.claimed_epsilon(LAPLACE.matched_noise(3, 10), 10) == pytest.approx(3 * math.sqrt(5000 / 420))
    assert GAUSSIAN.published_noise(10, 5) == pytest.approx(1.018, abs=5e-4)
    assert GAUSSIAN.claimed_epsilon(GAUSSIAN.published_noise(10, 5), 5) == pytest.approx(10, rel=1e-4)


@pytest.mark.parametrize("kind", FEDERATIONS)
@pytest.mark.parametrize(
    ("total", "local", "everyone"), [(100, 1, False), (120, 12, False), (120, 24, True), (70, 17, True)]
)
def test_a_point_is_an_experiment_that_keeps_its_promise_over_all_its_rounds(
    kind: str, total: int, local: int, everyone: bool
):
    point = Point(kind, 10, total, local, 0.1, 3.0, everyone)
    experiment = point.cell((), None).source.experiment
    population = Population(examples=(80,) * point.federation.ours)
    algorithm: Any = calibrate_noise(experiment.algorithm, experiment.privacy, experiment.rounds, population)
    assert experiment.rounds == math.ceil(total / local)
    assert algorithm.mechanism.noise_multiplier == pytest.approx(point.federation.matched_noise(10, point.turns))
    bounds = [algorithm.trainer.exposure(round).update_norm for round in range(experiment.rounds)]
    factors = [1 / (k + 25) if kind.endswith("decaying") else 1 for k in range(total)]  # Theorem 3: (2/μ)/(k + γ)
    assert sum(bounds) == pytest.approx(3.0 * 0.1 * sum(factors))
    assert algorithm.sampling.rounds_joined(population, experiment.rounds) == point.turns


def test_a_point_without_noise_has_no_promise_and_no_mechanism():
    experiment = Point("laplace", None, 100, 1, 0.1, 150.0).cell((), None).source.experiment
    assert (experiment.privacy, experiment.algorithm.mechanism) == (None, NoPrivacy())


@pytest.mark.parametrize("kind", FEDERATIONS)
def test_the_file_itself_is_an_experiment_with_the_noise_of_one_point(kind: str):
    experiment = experiment_file.load_experiment(FOLDER / f"{kind}.toml").experiment
    federation = FEDERATIONS[kind]
    population = Population(examples=(80,) * federation.ours)
    algorithm: Any = calibrate_noise(experiment.algorithm, experiment.privacy, experiment.rounds, population)
    turns = federation.turns(experiment.rounds, federation.cohort)
    epsilon = {LAPLACE: 3, GAUSSIAN: 20, LINEAR: 10, REGRESSION: 3}[federation]
    assert algorithm.mechanism.noise_multiplier == pytest.approx(federation.matched_noise(epsilon, turns), rel=1e-3)


def test_every_figure_has_its_points_once():
    points = sweeps("laplace", 0.1, 20.0)
    assert len(points) == len(set(points))
    assert {point.local for point in points if point.everyone and point.total == 120} == {1, 5, 11, 24, 120}
    assert [rule(1) for rule in RULES.values()] == [1] * 5
    assert {point.total for point in tuning("gaussian")} == {250}


def measure(kind: str, by: dict[tuple[float | None, int, int], list[float]]) -> PointResults:
    """Return results at points (ε, T, E), one for each seed."""
    metric = GRIDS[kind].metric
    lines: list[Any] = [
        {
            "name": kind,
            "swept": Point(kind, epsilon, total, local, 0.1, 20.0).swept,
            "seed": seed,
            "metrics": {metric: value},
            "history": [],
            "epsilon": None,
        }
        for (epsilon, total, local), values in by.items()
        for seed, value in enumerate(values)
    ]
    return PointResults.from_results(kind, lines)


def valley(low: int) -> dict[tuple[float | None, int, int], list[float]]:
    """A loss that is least at T = `low`, for ε = 1."""
    return {(1, total, 1): [9 + abs(total - low) + seed for seed in range(3)] for total in GRIDS["laplace"].totals}


def test_a_best_t_is_finite_only_if_the_loss_rises_on_both_sides():
    found = [
        claims._finite_best(each, each.by_total()).verdict
        for each in (Sweeps(measure("laplace", valley(low)), 0.1, 20.0) for low in (30, 200, 5))
    ]
    assert found == ["Holds", "Does not hold", "Does not hold"]


@pytest.mark.parametrize(
    ("best", "verdict"),
    [
        ((12, 4, 1), "Holds"),
        ((12, 12, 1), "Holds"),
        ((1, 4, 12), "Does not hold"),
        ((4, 12, 1), "Holds but for a step back"),
    ],
)
def test_e_grows_as_epsilon_falls_only_in_order(best: tuple[int, ...], verdict: str):
    by = {
        (epsilon, 120, local): [9.0 if local == at else 10.0]
        for epsilon, at in zip((1, 3, 5), best, strict=True)
        for local in GRIDS["laplace"].locals
    }
    each = Sweeps(measure("laplace", by), 0.1, 20.0)
    assert claims._best_place_moves(each, each.by_local(), "E", rising=False).verdict == verdict


def test_accuracy_that_still_moves_or_has_fallen_does_not_level_off():
    def levels_off(*accuracies: float) -> str:
        by = {(10, total, 5): [each] * 3 for total, each in zip(GRIDS["gaussian"].totals[-3:], accuracies, strict=True)}
        each = Sweeps(measure("gaussian", by), 0.1, 20.0)
        return claims._levels_off(each, each.by_total()).verdict

    assert levels_off(0.4, 0.5, 0.49) == "Holds"
    assert [levels_off(0.4, 0.5, 0.3), levels_off(0.5, 0.45, 0.44), levels_off(0.2, 0.3, 0.4)] == ["Does not hold"] * 3
    assert levels_off(0.05, 0.06, 0.05).startswith("Can't be told")


def test_what_levels_off_at_one_epsilon_only_is_said_so():
    ends = {10: (0.5, 0.4), 30: (0.5, 0.49)}
    last = GRIDS["linear"].totals[-2:]
    by = {
        (epsilon, total, 5): [value] * 3
        for epsilon, pair in ends.items()
        for total, value in zip(last, pair, strict=True)
    }
    each = Sweeps(measure("linear", by), 0.1, 20.0)
    assert claims._levels_off(each, each.by_total()).verdict == "Holds only at ε = 30"


@pytest.mark.parametrize(
    ("loss", "verdict"), [(12.0, "Holds"), (13.0, "Does not hold"), (8.1, "Holds"), (7.0, "Does not hold")]
)
def test_a_loss_levels_off_if_twice_the_iterations_change_it_by_a_quarter_at_most(loss: float, verdict: str):
    last = GRIDS["regression_decaying"].totals[-2:]
    by = {(1, total, 1): [value] * 3 for total, value in zip(last, (10.0, loss), strict=True)}
    each = Sweeps(measure("regression_decaying", by), 0.1, 20.0)
    assert claims._loss_levels_off(each, each.by_total()).verdict == verdict


def test_the_bound_of_theorem_3_levels_off_with_gaussian_noise_and_doubles_with_laplace_noise():
    """T²/(T + 24)² from T = 200 to 400 is 4·(224/424)²; with T³ it is twice that."""
    assert page._bound_grows(z=1) == pytest.approx(4 * (224 / 424) ** 2)
    assert page._bound_grows(z=2) == pytest.approx(8 * (224 / 424) ** 2)


def test_an_epsilon_of_the_paper_that_was_not_run_is_said_so():
    by = {(10, 240, local): [0.5] * 3 for local in GRIDS["gaussian"].locals}
    each = Sweeps(measure("gaussian", by), 0.1, 20.0)
    rows = list(tables.swept(each, each.by_local(), "E", page.PAPERS["gaussian"], GRIDS["gaussian"].locals))
    assert [row.count("not run") for row in rows if row.startswith(("| 10", "| 20 "))] == [0, 3]


def test_the_rate_is_the_best_without_noise_and_the_clip_the_smallest_that_costs_nothing():
    losses = {0.01: 9.0, 0.03: 8.0, 0.1: 7.6, 0.3: 7.7}
    dearer = {10.0: 0.5, 20.0: 0.05, 40.0: 0.0, 80.0: 0.0, 150.0: 0.0}
    lines = [
        {
            "name": "laplace",
            "swept": point.swept,
            "seed": 0,
            "metrics": {"mse": 1.0},
            "validation": {"mse": losses[point.rate] + dearer[point.clip]},
            "history": [],
        }
        for point in tuning("laplace")
    ]
    assert point_results.choose_rate_and_clip(lines, "laplace") == (0.1, 20.0)


def test_a_point_lacks_a_run_until_every_seed_has_one(monkeypatch: pytest.MonkeyPatch):
    point = Point("laplace", 1, 100, 1, 0.1, 20.0)
    kept = [{"name": "laplace", "swept": point.swept, "seed": seed, "metrics": {"mse": 9.0}} for seed in (0, 1)]
    monkeypatch.setattr(reproduce, "results", lambda out: kept)
    assert reproduce.missing_points([point], "laplace", 2, None) == []
    assert reproduce.missing_points([point], "laplace", 3, None) == [point]


def test_the_page_is_what_the_results_say_and_is_written_alike_each_time(tmp_path: Path):
    written = []
    for name in ("first", "again"):
        (tmp_path / name).mkdir()
        page.write(point_results.results(), tmp_path / name)
        written.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()})
    assert written[0] == written[1]
    docs = FOLDER.parents[1] / "docs" / "results"
    assert written[0]["iterations.md"] == (docs / "iterations.md").read_bytes()
