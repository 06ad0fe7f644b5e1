"""The factors of learning rate schedules, on numbers that can be checked by hand, and against those of torch."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import discreet as d
from discreet.algorithms.training.schedules import AnySchedule, Cosine, Schedule, StepDecay
from discreet.errors import InvalidInput
from discreet.part import from_plain, to_plain


def torch_factors(make: Callable[[Any], Any], count: int) -> list[float]:
    """Return the factors of a scheduler of torch."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler, factors = make(optimizer), []
    for _ in range(count):
        factors.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return factors


def test_a_step_schedule_multiplies_the_rate_after_every_so_many_rounds():
    assert [StepDecay(every=2, decay=0.5).factor(k) for k in range(6)] == [1, 1, 0.5, 0.5, 0.25, 0.25]


def test_a_cosine_schedule_falls_from_one_through_the_middle_to_its_lowest_value_and_stays_there():
    schedule = Cosine(length=10, lowest=0.2)
    assert [schedule.factor(k) for k in (0, 5, 10, 11, 1000)] == pytest.approx([1.0, 0.6, 0.2, 0.2, 0.2])
    factors = [schedule.factor(k) for k in range(11)]
    assert factors == sorted(factors, reverse=True)


@pytest.mark.parametrize(
    ("schedule", "make"),
    [
        (StepDecay(every=3, decay=0.3), lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.3)),
        (
            Cosine(length=12, lowest=0.05),
            lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12, eta_min=0.05),
        ),
    ],
    ids=["step", "cosine"],
)
def test_a_schedule_has_the_factors_of_the_scheduler_of_torch(schedule: Schedule, make: Callable[[Any], Any]):
    assert [schedule.factor(k) for k in range(13)] == pytest.approx(torch_factors(make, 13))


@pytest.mark.parametrize("schedule", [StepDecay(every=20, decay=0.5), Cosine(length=60)])
def test_a_schedule_is_written_and_read_and_taken_by_a_recipe(schedule: Any):
    assert from_plain(AnySchedule, to_plain(schedule)) == schedule
    algorithm = d.pfl(local_steps=1, sampling_rate=0.2, clip_norm=1.0, learning_rate=1.0, schedule=schedule)
    assert algorithm.trainer.schedule == schedule


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: Cosine(length=10, lowest=0.0), "lowest: must be above 0 and at most 1, and got 0"),
        (lambda: Cosine(length=0), "length: must be at least 1"),
        (lambda: StepDecay(every=0, decay=0.5), "every: must be at least 1"),
        (lambda: StepDecay(every=2, decay=1.5), "decay: must be above 0 and at most 1"),
    ],
)
def test_a_schedule_that_would_grow_or_vanish_is_refused(build: Callable[[], Any], sentence: str):
    with pytest.raises(InvalidInput, match=sentence):
        build()
