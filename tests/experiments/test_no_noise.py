"""Heikkilä's public code: its Poisson rates, their effect, and the page that shows them."""

from pathlib import Path

import pytest

from discreet.algorithms.training import DpSgd
from experiments.common import means
from experiments.no_noise import cells, draws, page
from experiments.no_noise.cells import Variant


def test_the_rates_are_those_of_its_code():
    """1.5e30 to 9.4e31, as read off a run of the unmodified file."""
    rates = {setting.name: draws.rate(setting) for setting in draws.SETTINGS}
    assert rates["Fashion-MNIST, one epoch a round"] == pytest.approx(1.55e30, rel=0.01)
    assert rates["Fashion-MNIST, one step a round"] == pytest.approx(9.41e31, rel=0.01)


def test_at_these_rates_nothing_is_drawn_and_at_small_ones_the_right_noise():
    found = draws.measure("cpu")
    assert [each["deviation"] for each in found if each["setting"]] == [0.0] * 4
    plain = next(each for each in found if each["rate"] == 1e8)
    assert plain["deviation"] == pytest.approx(plain["intended"], rel=0.02)


def test_runs_have_the_settings_of_its_code_with_its_noise_or_next_to_none():
    for work, clip, noise in (("epoch", 19.076, 2.1573), ("step", 12.185, 0.4327)):
        for noisy in (True, False):
            trainer = Variant(work, noisy).cell().source.experiment.algorithm.trainer
            assert isinstance(trainer, DpSgd)
            assert trainer.clip_norm == clip
            assert trainer.noise_multiplier == (noise if noisy else cells.SILENT)


def test_the_page_says_how_much_of_the_claimed_noise_the_runs_without_noise_have():
    said = " ".join((page.DOCS / "no_noise.md").read_text().split())
    assert "0.5 % of the claimed noise for one epoch a round and 2.3 % for one step a round" in said
    assert pytest.approx((0.005, 0.023), abs=5e-4) == (0.01 / 2.1573, 0.01 / 0.4327)


def test_the_page_is_what_the_results_say(tmp_path: Path):
    page.write(cells.results(), tmp_path)
    assert (tmp_path / "no_noise.md").read_bytes() == (page.DOCS / "no_noise.md").read_bytes()


def test_the_errata_say_what_was_measured():
    errata = (page.DOCS.parent / "errata.md").read_text()
    for noisy in (True, False):
        values = [
            100 * run["metrics"]["accuracy"]
            for run in cells.select_results(cells.results(), Variant("epoch", noisy)).values()
        ]
        assert means.mean_text(values).replace("**", "") + " %" in errata
