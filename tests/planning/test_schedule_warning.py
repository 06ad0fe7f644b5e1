"""A cosine schedule that ends long before the last round is said before the run."""

import pytest

import discreet as d
from discreet.algorithms.training import GradientDescent
from discreet.algorithms.training.schedules import Constant, Cosine, Exponential
from discreet.planning.schedule_warning import schedule_warnings


def trainer(schedule):
    return d.pfl(local_steps=1, sampling_rate=0.2, clip_norm=1.0, learning_rate=1.0, schedule=schedule).trainer


def test_a_cosine_that_ends_early_is_warned_of_with_the_round_and_the_right_length():
    (warning,) = schedule_warnings(trainer(Cosine(length=2)), 6)
    assert "from round 3 on the learning rate stays at 0.01 of its first value. Write length = 6." in warning


@pytest.mark.parametrize("schedule", [Cosine(length=6), Cosine(length=5), Constant(), Exponential(decay=0.9)])
def test_a_schedule_that_lasts_to_the_end_or_has_none_is_not(schedule):
    assert not list(schedule_warnings(trainer(schedule), 6))


def test_gradient_descent_counts_iterations():
    descent = GradientDescent(learning_rate=1.0, iterations=(3,), schedule=Cosine(length=6))
    (warning,) = schedule_warnings(descent, 6)
    assert "there are 18 iterations: from iteration 7 on" in warning
    assert not list(schedule_warnings(descent, 2))
