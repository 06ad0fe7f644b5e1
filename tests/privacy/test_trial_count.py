"""The number of trials: its distribution, its mean, and how it is drawn."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidInput
from discreet.part import from_plain, to_plain
from discreet.privacy.trial_count import (
    PoissonTrials,
    TrialCount,
    TruncatedNegativeBinomial,
    _invert,
    count_with_mean,
    draw_count,
)

SHAPES = st.sampled_from([-0.5, -0.01, 0.0, 1e-9, 0.5, 1.0, 3.0])
STOPS = st.floats(0.05, 0.95)


@given(SHAPES, STOPS)
def test_probabilities_sum_to_one_and_have_the_stated_mean(shape, stop):
    count = TruncatedNegativeBinomial(shape=shape, stop_probability=stop)
    listed = list(itertools.islice(count.probabilities(), 2000))
    assert listed[0] == 0
    assert math.fsum(listed) == pytest.approx(1, rel=1e-9)
    assert math.fsum(k * p for k, p in enumerate(listed)) == pytest.approx(count.mean, rel=1e-9)


def test_a_shape_of_one_is_geometric_and_a_shape_of_zero_logarithmic():
    geometric = TruncatedNegativeBinomial(shape=1.0, stop_probability=0.25)
    assert geometric.mean == pytest.approx(4)
    assert list(itertools.islice(geometric.probabilities(), 4)) == pytest.approx([0, 0.25, 0.1875, 0.140625])
    logarithmic = TruncatedNegativeBinomial(shape=0.0, stop_probability=0.1)
    expected = [0, *(0.9**k / (k * math.log(10)) for k in (1, 2, 3))]
    assert list(itertools.islice(logarithmic.probabilities(), 4)) == pytest.approx(expected)
    assert logarithmic.mean == pytest.approx(9 / math.log(10))


@given(SHAPES, st.floats(1.01, 500))
def test_the_distribution_with_a_given_mean_has_it(shape, mean):
    found = count_with_mean(mean, shape)
    assert found.mean == pytest.approx(mean, rel=1e-6)
    assert found.mean <= mean * (1 + 1e-9)


@pytest.mark.parametrize("mean", [1.0, 0.5, math.nan])
def test_a_mean_of_one_or_less_is_refused(mean):
    with pytest.raises(InvalidInput, match="above 1"):
        count_with_mean(mean, 1.0)


@pytest.mark.parametrize(("shape", "stop"), [(-1.0, 0.5), (1.0, 1.0), (1.0, 0.0)])
def test_numbers_outside_the_theorem_are_refused(shape, stop):
    with pytest.raises(InvalidInput):
        TruncatedNegativeBinomial(shape=shape, stop_probability=stop)


@given(st.sampled_from([PoissonTrials(mean=3.0), count_with_mean(5.0, 0.0), count_with_mean(5.0, 1.0)]), STOPS)
def test_a_uniform_number_gives_the_quantile(count, uniform):
    k = _invert(count, uniform)
    cumulative = list(itertools.accumulate(itertools.islice(count.probabilities(), k + 1)))
    assert cumulative[-1] > uniform
    assert k == 0 or cumulative[-2] <= uniform


def test_the_largest_uniform_number_ends_too():
    assert _invert(count_with_mean(5.0, 1.0), 1.0) > 100
    assert _invert(PoissonTrials(mean=2.0), 1.0) > 10
    assert _invert(PoissonTrials(mean=2000.0), 0.5) == pytest.approx(2000, abs=1)


def test_drawn_numbers_have_the_mean_of_their_distribution():
    """The mean of 4,000 geometric draws of mean 5 is off by 0.5 with probability 1e-12, since its deviation is 0.07."""
    count = count_with_mean(5.0, 1.0)
    drawn = [draw_count(count) for _ in range(4000)]
    assert min(drawn) >= 1
    assert sum(drawn) / 4000 == pytest.approx(5, abs=0.5)


@pytest.mark.parametrize("count", [PoissonTrials(mean=3.0), count_with_mean(5.0, 0.0)])
def test_a_count_comes_back_equal(count):
    assert from_plain(TrialCount, to_plain(count)) == count
