"""Heikkilä's page: its settings give what it claims, all others keep the promise, and the page shows the runs."""

from pathlib import Path
from typing import Any

import pytest

from discreet.algorithms.claims import paper_claims
from discreet.algorithms.population import Population
from discreet.algorithms.training import DpSgd
from discreet.experiment.promise.calibrate import calibrate_noise
from discreet.planning.theory.heikkila_model_averaging import paper_epsilon
from discreet.privacy.events import GaussianNoise, step_noise, steps
from experiments.distributed import page
from experiments.distributed.cells import METHODS, SETS, Variant, best, bests, finals, grid, methods, results, seeds
from experiments.distributed.paper_settings import EPOCH, STEP, Settings

EVERY = [(data, rounds) for data, whole in SETS.items() for rounds in whole.rounds]
POPULATIONS = {
    "fashion": Population(examples=(5600,) * 10),
    "income": Population(examples=(20_000,) * 51),
    "cifar": Population(examples=(4800,) * 10),
}


def result_line(asked: Variant, seed: int, accuracies: list[float]) -> dict[str, Any]:
    return {
        "name": asked.method,
        "swept": asked.swept,
        "seed": seed,
        "rounds": asked.rounds,
        "metrics": {"accuracy": accuracies[-1] / 100},
        "history": [{"round": at + 1, "accuracy": each / 100} for at, each in enumerate(accuracies)],
        "epsilon": 4.32,
        "against": "server",
        "seconds": 60.0,
        "device": "cpu",
    }


@pytest.mark.parametrize("settings", [EPOCH, STEP])
def test_the_papers_settings_come_to_an_epsilon_of_1_by_its_accountant(settings: dict[tuple[str, int], Settings]):
    assert set(settings) == set(EVERY)
    for (data, _), each in settings.items():
        assert paper_epsilon(each.claimed_event(SETS[data].clients), 1e-5) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(("data", "rounds"), EVERY)
def test_a_claim_has_the_steps_and_the_noise_of_the_paper_and_no_promise(data: str, rounds: int):
    for method in ("published", "claim"):
        for asked in grid(data, method, rounds):
            experiment = asked.cell().source.experiment
            assert experiment.privacy is None
            population = POPULATIONS[data]
            trainer = experiment.algorithm.for_population(population).trainer
            assert isinstance(trainer, DpSgd)
            assert trainer.steps == (SETS[data].steps_an_epoch,)
            assert rounds * SETS[data].steps_an_epoch == EPOCH[data, rounds].steps
            assert trainer.sampling_rate == pytest.approx(EPOCH[data, rounds].sampling_rate, rel=0.02)
            (claim,) = paper_claims(experiment.algorithm, rounds, population)
            assert paper_epsilon(claim.release.event, 1e-5) == pytest.approx(1.0, abs=0.02)
            for release in experiment.algorithm.releases(population, 0):
                ((step, count),) = steps(release.event).items()
                assert count == SETS[data].steps_an_epoch
                assert step_noise(step) == GaussianNoise(noise_multiplier=EPOCH[data, rounds].noise_multiplier)


@pytest.mark.parametrize("data", SETS)
def test_all_else_promises_an_example_an_epsilon_of_1_and_finds_its_noise(data: str):
    for method in methods(data):
        if METHODS[method].claim:
            continue
        for asked in grid(data, method, SETS[data].rounds[0]):
            experiment = asked.cell().source.experiment
            promise = experiment.privacy
            assert promise is not None
            assert (promise.unit, promise.epsilon, promise.delta) == ("example", 1.0, 1e-5)
            assert promise.against == METHODS[method].against
        noisy = calibrate_noise(experiment.algorithm, promise, experiment.rounds, POPULATIONS[data], 100)
        assert noisy.with_noise(1.0) == noisy


def test_every_way_that_is_tuned_is_tuned_over_four_settings():
    for data, rounds in EVERY:
        sizes = {len(grid(data, method, rounds)) for method in methods(data) if METHODS[method].tuned}
        assert sizes == {4}


def test_at_the_broadcast_model_a_step_is_the_whole_rounds():
    """1.5 in 20 steps at a clip of 3: each has a rate of 1.5/3/20 = 0.025."""
    asked = next(each for each in grid("income", "broadcast", 10) if dict(each.knobs)["step"] == 1.5)
    assert asked.algorithm()["learning_rate"] == pytest.approx(0.025)


def test_the_best_on_seed_0_is_told_by_the_others_after_the_last_round_and_at_its_best():
    points = grid("income", "ldp", 10)
    found = [result_line(each, 0, [70.0 + number]) for number, each in enumerate(points)]
    assert best(found[1:], "income", "ldp", 10) is None
    winner = best(found, "income", "ldp", 10)
    assert winner == points[-1]
    found += [result_line(points[-1], seed, [60.0, 75.0 + seed, 71.0 + seed]) for seed in seeds("ldp")]
    assert page.metric_values(found, winner, finals) == pytest.approx([72, 73, 74])
    assert page.metric_values(found, winner, bests) == pytest.approx([76, 77, 78])
    assert page.certified_text(found, winner) == "4.32, server"
    assert page.certified_text(found, None) == "–"


def test_fewer_seeds_are_said_on_the_page(tmp_path: Path):
    (asked,) = grid("fashion", "published", 20)
    text = page.write([result_line(asked, 1, [80.0, 79.0])], tmp_path).read_text()
    assert "| **79.00** (n = 1) | **80.00** (n = 1) | 1.000 | 4.32, server |" in text
    assert "| Fashion-MNIST, a CNN of 26,010 parameters | 20 | 1 | 34 |" in text
    assert "160 rounds: not run yet." in text


def test_missing_runs_are_counted_and_a_page_without_any_says_so(tmp_path: Path):
    found = []
    for data, rounds in EVERY:
        for method in methods(data):
            points = grid(data, method, rounds)
            found += [result_line(each, 0, [70.0]) for each in points if METHODS[method].tuned]
            found += [result_line(points[0], seed, [70.0]) for seed in seeds(method)]
    assert page.write(found, tmp_path).read_text().endswith("None is missing.\n")
    assert page.write(found[2:], tmp_path).read_text().endswith("makes the other 2.\n")


def test_of_a_setting_the_rate_that_is_drawn_is_one_over_whole_steps():
    """512 of 5600 take 11 steps; one client's own noise is that of one client."""
    drawn = EPOCH["fashion", 20].sampled_event(1)
    ((step, count),) = steps(drawn).items()
    assert (step.sampling_rate, count) == (pytest.approx(1 / 11), 220)
    assert step_noise(step) == GaussianNoise(noise_multiplier=2.1573)


def test_the_page_is_what_the_results_say(tmp_path: Path):
    page.write(results(), tmp_path)
    assert (tmp_path / "distributed.md").read_bytes() == (page.DOCS / "distributed.md").read_bytes()
