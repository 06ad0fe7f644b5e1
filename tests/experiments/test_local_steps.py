"""The page on several local steps: one promise for all, grids of at least eight settings, single-pass claims apart."""

from pathlib import Path
from typing import Any

import pytest

from discreet.algorithms.claims import paper_claims
from discreet.algorithms.population import Population
from discreet.experiment.promise.calibrate import calibrate_noise
from discreet.privacy import accountant
from experiments.local_steps import page
from experiments.local_steps.cells import METHODS, ROUNDS, SETS, Variant, best, grid, one_pass, results

TEN = Population(examples=(6000,) * 10)


def result_line(asked: Variant, seed: int, accuracy: float) -> dict[str, Any]:
    return {
        "name": asked.method,
        "swept": asked.swept,
        "seed": seed,
        "metrics": {"accuracy": accuracy / 100},
        "epsilon": 0.99999,
        "against": "public",
    }


@pytest.mark.parametrize("data", SETS)
def test_every_method_is_tuned_over_eight_settings_and_two_over_more(data: str):
    sizes = {method: len(grid(data, method, 10)) for method in METHODS}
    assert (sizes.pop("claim"), sizes.pop("convex_local")) == (18, 16)
    assert set(sizes.values()) == {8}


@pytest.mark.parametrize("method", METHODS)
def test_every_setting_can_be_read_and_keeps_the_promise_but_for_the_claim(method: str):
    for asked in grid("mnist", method, 5):
        experiment = asked.cell().source.experiment
        assert experiment.rounds == 5
        if METHODS[method].claim:
            (claim,) = paper_claims(experiment.algorithm, 5, TEN)
            assert accountant.epsilon(claim.release.event, 1e-5, "zero_out") == pytest.approx(1.0, abs=1e-3)
            assert experiment.privacy is None
        else:
            assert experiment.privacy is not None
            assert (experiment.privacy.unit, experiment.privacy.against) == ("example", "public")
            assert (experiment.privacy.epsilon, experiment.privacy.delta) == (1.0, 1e-5)
    if not METHODS[method].claim:
        noisy = calibrate_noise(experiment.algorithm, experiment.privacy, 5, TEN)
        assert noisy.with_noise(1.0) == noisy


def test_a_fade_ends_at_its_share_of_the_first_rate():
    faded = next(each for each in grid("mnist", "convex_local", 5) if dict(each.knobs)["fade"] == 0.2)
    trainer = faded.cell().source.experiment.algorithm.trainer
    first, last = trainer.schedule.factor(0), trainer.schedule.factor(4)
    assert last / first == pytest.approx(0.2)


def test_the_best_on_seed_0_is_told_by_the_others():
    points = grid("mnist", "claim", 5)
    found = [result_line(each, 0, 80 + number) for number, each in enumerate(points)]
    assert best(found[1:], points) is None
    assert best(found, points) == points[-1]
    found += [result_line(points[-1], seed, 70 + seed) for seed in (1, 2, 3)]
    assert page.final(found, points) == pytest.approx({1: 71, 2: 72, 3: 73})
    ours = grid("mnist", "convex_local", 5)
    found += [result_line(each, seed, 70.6 + seed) for each in ours for seed in range(4)]
    less = page.gap(found, "mnist", 5, points)
    assert less is not None
    assert less.value == pytest.approx(0.6)
    assert page.gap(found, "mnist", 10, grid("mnist", "claim", 10)) is None


def test_a_claim_of_more_passes_is_judged_apart_from_one_of_one_pass():
    ours = grid("mnist", "convex_local", 5)
    found = [result_line(each, seed, 90.0) for each in ours for seed in range(4)]
    for each in grid("mnist", "claim", 5):
        accuracy = 90.4 if each in one_pass("mnist", 5) else 90.6
        found += [result_line(each, seed, accuracy) for seed in range(4)]
    told = "\n".join(page._page(found))
    assert "| MNIST, linear | 5 | -0.40 ± 0.00 | met | -0.60 ± 0.00 | missed |" in told


def test_the_page_is_what_the_results_say(tmp_path: Path):
    page.write(results(), tmp_path)
    written = (page.DOCS / "local_steps.md").read_bytes()
    assert (tmp_path / "local_steps.md").read_bytes() == written
    assert all(f"{rounds} rounds" in written.decode() for rounds in ROUNDS)
