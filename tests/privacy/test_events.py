"""Events: what happened, in one canonical form."""

from collections.abc import Callable

import pytest

from discreet.errors import InvalidInput
from discreet.part import from_plain, to_plain
from discreet.privacy.events import (
    NOTHING,
    BestOf,
    Composed,
    DiscreteGaussianNoise,
    DistributedDiscreteGaussianNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    PoissonSampled,
    RandomAllocation,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    SkellamNoise,
    TruncatedPoissonSampled,
    ZeroConcentrated,
    steps,
)
from discreet.privacy.trial_count import PoissonTrials

NOISE = GaussianNoise(noise_multiplier=1.0)
EVENTS = [
    NOISE,
    LaplaceNoise(noise_multiplier=2.0),
    SkellamNoise(variance=100.0, l2_sensitivity=5.0, dimension=10),
    DiscreteGaussianNoise(variance=4.0, l2_sensitivity=1.0),
    DistributedDiscreteGaussianNoise(variance=4.0, shares=10, l2_sensitivity=5.0, dimension=10),
    PoissonSampled(sampling_rate=0.1, event=NOISE),
    SampledWithoutReplacement(cohort=5, population=50, event=NOISE),
    TruncatedPoissonSampled(sampling_rate=0.1, max_batch_size=5, population=50, event=NOISE),
    RandomAllocation(bins=10, event=NOISE),
    RandomisedResponse(categories=3, random_share=0.5),
    ZeroConcentrated(rho=0.1),
    Repeated(count=3, event=PoissonSampled(sampling_rate=0.1, event=NOISE)),
    Composed(events=(NOISE, Repeated(count=2, event=LaplaceNoise(noise_multiplier=2.0)))),
    BestOf(count=PoissonTrials(mean=4.0), trials=(NOISE, Repeated(count=2, event=NOISE))),
    NOTHING,
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_an_event_comes_back_equal_and_hashes_alike(event: Event) -> None:
    back = from_plain(Event, to_plain(event))
    assert back == event
    assert hash(back) == hash(event)


def test_nested_repetitions_multiply_and_order_does_not_matter() -> None:
    once = PoissonSampled(sampling_rate=0.1, event=NOISE)
    nested = Composed(events=(Repeated(count=3, event=Composed(events=(once, NOISE))), Repeated(count=2, event=once)))
    assert steps(nested) == {once: 5, NOISE: 3}
    assert list(steps(nested)) == list(steps(Composed(events=(NOISE, NOISE, NOISE, Repeated(count=5, event=once)))))


def test_a_sampling_rate_of_one_is_no_sampling() -> None:
    assert steps(PoissonSampled(sampling_rate=1, event=NOISE)) == {NOISE: 1}
    assert steps(SampledWithoutReplacement(cohort=7, population=7, event=NOISE)) == {NOISE: 1}


def test_skellam_moves_by_no_more_in_L1_than_integers_of_that_L2_norm_can() -> None:
    wide = SkellamNoise(variance=1.0, l2_sensitivity=3.0, dimension=10_000)
    narrow = SkellamNoise(variance=1.0, l2_sensitivity=3.0, dimension=4)
    assert wide.l1_sensitivity == 9.0  # nine ones
    assert narrow.l1_sensitivity == 6.0  # √4·3


def test_a_cohort_larger_than_its_population_is_refused() -> None:
    with pytest.raises(InvalidInput, match="51 can't be drawn from a population of 50"):
        SampledWithoutReplacement(cohort=51, population=50, event=NOISE)


def test_an_unknown_kind_is_refused_with_the_kinds_there_are() -> None:
    with pytest.raises(InvalidInput, match=r"one of 'gaussian', 'laplace'.*got 'gausian'"):
        from_plain(Event, {"kind": "gausian", "noise_multiplier": 1.0})


@pytest.mark.parametrize("build", [lambda: Repeated(count=0, event=NOISE), lambda: Composed(events=3)])  # type: ignore[arg-type]
def test_records_that_name_each_other_refuse_in_a_sentence_too(build: Callable[[], Event]) -> None:
    for _ in range(2):
        with pytest.raises(InvalidInput):
            build()
