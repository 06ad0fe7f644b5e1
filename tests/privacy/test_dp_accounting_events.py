"""Events go to dp-accounting and come back as they were; what has no counterpart is refused in a sentence."""

import math
from typing import Any

import dp_accounting
import numpy as np
import pytest
from dp_accounting import dp_event as theirs
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import Unsupported
from discreet.privacy import rdp
from discreet.privacy.dp_accounting_events import from_dp_accounting, to_dp_accounting
from discreet.privacy.events import (
    BestOf,
    Composed,
    DiscreteGaussianNoise,
    DistributedDiscreteGaussianNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    PoissonSampled,
    PoissonSampledGroup,
    RandomAllocation,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    SkellamNoise,
    TruncatedPoissonSampled,
    ZeroConcentrated,
    steps,
)
from discreet.privacy.trial_count import PoissonTrials, named_count

GAUSSIAN = GaussianNoise(noise_multiplier=1.0)

multipliers = st.floats(1e-3, 1e6)
gaussians = st.builds(GaussianNoise, noise_multiplier=multipliers)
noises = gaussians | st.builds(LaplaceNoise, noise_multiplier=multipliers)
rates = st.floats(1e-9, 1.0)
sizes = st.integers(1, 1000)
samples = (
    st.builds(PoissonSampled, sampling_rate=rates, event=noises)
    | st.builds(TruncatedPoissonSampled, sampling_rate=rates, max_batch_size=sizes, population=sizes, event=gaussians)
    | st.builds(
        lambda cohort, more, event: SampledWithoutReplacement(cohort=cohort, population=cohort + more, event=event),
        sizes,
        st.integers(0, 100),
        noises,
    )
)
answers = st.builds(RandomisedResponse, categories=st.integers(2, 99), random_share=rates)
stated = st.builds(ZeroConcentrated, rho=st.floats(1e-9, 1e3))
once = noises | samples | answers | stated
events = st.recursive(
    once,
    lambda inner: (
        st.builds(Repeated, count=st.integers(1, 100), event=inner)
        | st.builds(lambda several: Composed(events=tuple(several)), st.lists(inner, max_size=4))
    ),
    max_leaves=6,
)


@given(events)
def test_an_event_comes_back_with_the_same_steps(event: Event) -> None:
    assert steps(from_dp_accounting(to_dp_accounting(event))) == steps(event)


@given(events)
def test_what_dp_accounting_gets_is_what_it_gets_again(event: Event) -> None:
    there = to_dp_accounting(event)
    assert to_dp_accounting(from_dp_accounting(there)) == there


@given(st.floats(0.01, 0.9), st.integers(2, 8), st.floats(0.5, 5.0))
def test_a_group_comes_back_up_to_the_last_digits_of_its_rate(rate: float, size: int, z: float) -> None:
    group = PoissonSampledGroup(sampling_rate=rate, group_size=size, event=GaussianNoise(noise_multiplier=z))
    (back,) = steps(from_dp_accounting(to_dp_accounting(group)))
    assert isinstance(back, PoissonSampledGroup)
    assert (back.group_size, back.event) == (size, group.event)
    assert back.sampling_rate == pytest.approx(rate, rel=1e-9)


@pytest.mark.parametrize("distribution", ["geometric", "logarithmic", "poisson"])
def test_a_selection_comes_back_with_a_mean_that_is_no_smaller(distribution: Any) -> None:
    selection = BestOf(count=named_count(distribution, 10.0), trials=(Repeated(count=3, event=GAUSSIAN),))
    back = from_dp_accounting(to_dp_accounting(selection))
    (step,) = steps(back)
    assert isinstance(step, BestOf)
    assert selection.count.mean <= step.count.mean <= selection.count.mean * (1 + 1e-9)
    assert rdp.epsilon(back, 1e-5) == pytest.approx(rdp.epsilon(selection, 1e-5), rel=1e-6)


def test_discrete_gaussian_noise_comes_back_as_what_dp_accounting_knows_of_it() -> None:
    noise = DiscreteGaussianNoise(variance=4.0, l2_sensitivity=2.0)
    assert steps(from_dp_accounting(to_dp_accounting(noise))) == {ZeroConcentrated(rho=0.5): 1}


@pytest.mark.parametrize(
    ("event", "named"),
    [
        (SkellamNoise(variance=9.0, l2_sensitivity=1.0, dimension=3), "no Skellam noise"),
        (
            DistributedDiscreteGaussianNoise(variance=4.0, shares=10, l2_sensitivity=5.0, dimension=10),
            "no sums of discrete Gaussians",
        ),
        (RandomAllocation(bins=5, event=GAUSSIAN), "no random allocation"),
        (
            PoissonSampledGroup(sampling_rate=0.1, group_size=2, event=LaplaceNoise(noise_multiplier=1.0)),
            "not Gaussian",
        ),
        (
            BestOf(count=PoissonTrials(mean=4.0), trials=(GAUSSIAN, Repeated(count=2, event=GAUSSIAN))),
            "different noise",
        ),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_what_dp_accounting_does_not_have_is_refused(event: Event, named: str) -> None:
    with pytest.raises(Unsupported, match=named):
        to_dp_accounting(Repeated(count=2, event=event))


@pytest.mark.parametrize(
    ("event", "named"),
    [
        (theirs.NonPrivateDpEvent(), "NonPrivateDpEvent"),
        (theirs.UnsupportedDpEvent(), "UnsupportedDpEvent"),
        (theirs.DiscreteLaplaceDpEvent(0.5, 1), "DiscreteLaplaceDpEvent"),
        (theirs.SampledWithReplacementDpEvent(10, 2, theirs.GaussianDpEvent(1.0)), "SampledWithReplacementDpEvent"),
        (theirs.SingleEpochTreeAggregationDpEvent(1.0, 3), "SingleEpochTreeAggregationDpEvent"),
        (theirs.ZCDpEvent(1.0, 0.1), "ξ = 0 only"),
        (theirs.GaussianDpEvent(0.0), "GaussianDpEvent of dp-accounting has no event here"),
        (theirs.RandomizedResponseDpEvent(0.0, 3), "RandomizedResponseDpEvent"),
        (theirs.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0, 2.0], [0.5, 0.2, 0.3]), "binomial"),
        (theirs.PoissonSampledDpEvent(0.1, theirs.ComposedDpEvent([theirs.GaussianDpEvent(1.0)])), "ComposedDpEvent"),
        (object(), "object"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_we_do_not_have_is_refused(event: Any, named: str) -> None:
    with pytest.raises(Unsupported, match=named):
        from_dp_accounting(theirs.SelfComposedDpEvent(event, 2))


@pytest.mark.parametrize(
    "event",
    [
        theirs.NoOpDpEvent(),
        theirs.ZCDpEvent(0.0),
        theirs.RandomizedResponseDpEvent(0.0, 1),
        theirs.PoissonSampledDpEvent(0.0, theirs.GaussianDpEvent(1.0)),
        theirs.TruncatedSubsampledGaussianDpEvent(10, 0.0, 3, 1.0),
        theirs.SelfComposedDpEvent(theirs.GaussianDpEvent(1.0), 0),
        theirs.ComposedDpEvent([]),
    ],
)
def test_what_releases_nothing_is_nothing(event: Any) -> None:
    assert steps(from_dp_accounting(event)) == {}


def test_the_numbers_mean_the_same_there_and_here() -> None:
    there = dp_accounting.SelfComposedDpEvent(
        dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0)), 1000
    )
    accountant = dp_accounting.rdp.RdpAccountant([8.0])
    accountant.compose(there)
    ours = rdp.curve(from_dp_accounting(there), np.array([8.0]))[0]
    assert math.isclose(ours, accountant._rdp[0], rel_tol=1e-9)
