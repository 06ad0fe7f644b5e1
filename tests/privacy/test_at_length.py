"""Longer searches for a number that is too small: `make test-slow`."""

import math
import random

import pytest

from discreet.privacy import accountant, pld
from discreet.privacy.events import Composed, Event
from tests.privacy.recipes import gaussian, laplace
from tests.privacy.test_pld import exact_delta

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def test_three_thousand_sampled_steps_are_never_below_their_closed_form() -> None:
    source = random.Random(1)
    for _ in range(3000):
        z, epsilon = math.exp(source.uniform(-3, 4)), math.exp(source.uniform(-9, 3))
        rate = source.choice([math.exp(source.uniform(-16, -0.01)), 1 - math.exp(source.uniform(-18, -3))])
        exact = exact_delta(z, rate, epsilon)
        if exact > 1e-9:
            assert pld.delta(gaussian(z, rate=rate), epsilon) >= exact * (1 - 1e-9), (z, rate, epsilon)


@pytest.mark.parametrize("part", range(8))
def test_random_events_agree_with_the_engine_that_others_wrote(part: int) -> None:
    source = random.Random(part)
    confirmed = 0
    for _ in range(15):
        pieces: list[Event] = []
        for _ in range(source.choice([1, 1, 2, 3])):
            make = source.choice([gaussian, gaussian, laplace])
            rate = source.choice([1.0, math.exp(source.uniform(-6, -0.1))])
            pieces.append(make(math.exp(source.uniform(-0.7, 2.5)), rate=rate, times=source.randint(1, 300)))
        ours, theirs = accountant.account_with_second_engine(
            Composed(events=tuple(pieces)), 10 ** source.uniform(-8, -3)
        )
        confirmed += theirs.epsilon is not None
        assert 0 <= ours.epsilon < math.inf
    assert confirmed >= 8
