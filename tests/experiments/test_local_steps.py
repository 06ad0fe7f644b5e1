"""The page on several local steps: one promise for all, grids of one size, and what lies beyond them said too."""

from pathlib import Path
from typing import Any

import pytest

from discreet.algorithms.claims import stated
from discreet.experiment.keeping import kept
from discreet.population import Population
from discreet.privacy import accountant
from experiments.local_steps import page
from experiments.local_steps.cells import METHODS, ROUNDS, SETS, WIDER, Asked, best, grid, results

TEN = Population(examples=(6000,) * 10)


def made(asked: Asked, seed: int, accuracy: float) -> dict[str, Any]:
    return {
        "name": asked.method,
        "swept": asked.swept,
        "seed": seed,
        "metrics": {"accuracy": accuracy / 100},
        "epsilon": 0.99999,
        "against": "public",
    }


@pytest.mark.parametrize("data", SETS)
def test_every_method_is_tuned_over_as_many_settings(data: str):
    assert {len(grid(data, method, 10)) for method in METHODS} == {8}


@pytest.mark.parametrize("method", METHODS)
def test_every_setting_can_be_read_and_keeps_the_promise_but_for_the_claim(method: str):
    for asked in grid("mnist", method, 5):
        experiment = asked.cell().source.experiment
        assert experiment.rounds == 5
        if METHODS[method].claim:
            (claim,) = stated(experiment.algorithm, 5, TEN)
            assert accountant.epsilon(claim.release.event, 1e-5, "add_or_remove") == pytest.approx(1.0, abs=1e-3)
            assert experiment.privacy is None
        else:
            assert experiment.privacy is not None
            assert (experiment.privacy.unit, experiment.privacy.against) == ("example", "public")
            assert (experiment.privacy.epsilon, experiment.privacy.delta) == (1.0, 1e-5)
    if not METHODS[method].claim:
        noisy = kept(experiment.algorithm, experiment.privacy, 5, TEN)
        assert noisy.with_noise(1.0) == noisy


def test_a_fade_ends_at_its_share_of_the_first_rate():
    faded = next(each for each in grid("mnist", "convex_local", 5) if dict(each.knobs)["fade"] == 0.2)
    trainer = faded.cell().source.experiment.algorithm.trainer
    first, last = trainer.schedule.factor(0), trainer.schedule.factor(4)
    assert last / first == pytest.approx(0.2)


def test_the_best_on_seed_0_is_told_by_the_others():
    points = grid("mnist", "claim", 5)
    found = [made(each, 0, 80 + number) for number, each in enumerate(points)]
    assert best(found[1:], "mnist", "claim", 5) is None
    assert best(found, "mnist", "claim", 5) == points[-1]
    found += [made(points[-1], seed, 70 + seed) for seed in (1, 2, 3)]
    assert page.final(found, "mnist", "claim", 5) == pytest.approx({1: 71, 2: 72, 3: 73})
    ours = grid("mnist", "convex_local", 5)
    found += [made(each, seed, 70.6 + seed) for each in ours for seed in range(4)]
    less = page.gap(found, "mnist", 5)
    assert less is not None
    assert less.value == pytest.approx(0.6)
    assert page.gap(found, "mnist", 10) is None


def test_a_claim_that_is_better_beyond_its_grid_is_told():
    (wider,) = WIDER
    assert wider not in grid(wider.data, wider.method, wider.rounds)
    found = [made(each, seed, 90.0) for each in grid("mnist", "convex_local", 5) for seed in range(4)]
    for accuracy, words in ((90.4, "still within 0.5"), (90.6, "more than 0.5")):
        told = "\n".join(page._page(found + [made(wider, seed, accuracy) for seed in (1, 2, 3)]))
        assert words in told


def test_the_page_is_what_the_results_say(tmp_path: Path):
    page.write(results(), tmp_path)
    written = (page.DOCS / "local_steps.md").read_bytes()
    assert (tmp_path / "local_steps.md").read_bytes() == written
    assert all(f"{rounds} rounds" in written.decode() for rounds in ROUNDS)
