"""The odds that sums of integers fail, on the card of a search: those of all its trials."""

import pytest

from discreet.experiment.loop.sum_odds import TrialNumber, find_sum_odds, run_odds, search_odds
from discreet.experiment.tuning.trial_jobs import training_job
from discreet.privacy.trial_count import named_count
from discreet.privacy.wording import round_up
from tests.experiment.tuning.searches import compose, draw, make_builder, write_file
from tests.small_experiment import state

__all__ = ["state"]

TUNE = """
[tune]
epsilon = 60.0
trials = 2
sampler = "grid"
expected_trials = 5
candidates = 2

[tune.space]
rounds = { choices = [1, 3] }
"""
SUMS = ('recipe = "pfl"\nlocal_steps = 1', 'recipe = "ddp_fedavg"')


@pytest.fixture
def file(tmp_path):
    return write_file(tmp_path, TUNE, sums=SUMS)


def longest_trial(file, *overrides):
    """Return the terms of the trial of three rounds, whose odds are the largest."""
    return training_job(make_builder(file, *overrides).build({"rounds": 3}), None).terms


def odds_lines(card):
    found = [[line for line in card.assumptions if words in line] for words in ("leaves its ring", "by numpy")]
    assert [len(lines) for lines in found] == [1, 1]  # one statement for the whole search, none for a trial
    return [lines[0] for lines in found]


def test_every_counted_trial_has_its_odds_on_the_card(file, tmp_path):
    _, _, (card, *_) = compose(file, tmp_path / "out")
    worst = find_sum_odds(longest_trial(file), 3).failures
    ring, draws = odds_lines(card)
    chance = round_up(2 * worst.wraparound, 2)
    assert f"of 2 trials a sum leaves its ring with a probability of at most {chance}:" in ring
    assert f"of 2 trials that may add up to {round_up(2 * worst.inexact_draws, 2)} to δ" in draws


def test_of_a_secret_number_of_trials_the_mean_counts_with_the_worst_candidate(file, tmp_path):
    public = "privacy.against=public"
    _, winner = draw(file, tmp_path / "out", 1, public)
    worst = find_sum_odds(longest_trial(file, public), 3).failures
    mean = named_count("geometric", 5.0).mean
    ring, draws = odds_lines(winner.guarantees[0])
    assert "a secret number of trials, 5 on average" in ring
    assert round_up(mean * worst.wraparound, 2) in ring
    assert round_up(mean * worst.inexact_draws, 2) in draws


def test_masks_on_a_random_graph_have_the_odds_of_all_trials(tmp_path):
    many = ("clients = 3,", "clients = 300,")
    file = write_file(tmp_path, TUNE, sums=SUMS, many=many)
    terms = longest_trial(file, "engine={kind='secure'}")
    (alone, *_) = run_odds(terms, 3)
    (every, *_) = search_odds([terms], TrialNumber(10, is_secret=False))
    assert f"over 3 rounds that may add up to {round_up(3 * 2.0**-40, 2)} to δ" in alone
    assert f"over all rounds of 10 trials that may add up to {round_up(30 * 2.0**-40, 2)} to δ" in every


def test_real_numbers_have_no_odds(tmp_path):
    terms = longest_trial(write_file(tmp_path, TUNE))
    assert search_odds([terms], TrialNumber(10, is_secret=False)) == []
