"""Quantiles of whole arrays agree with scipy's and with our scalar function, in both tails."""

import numpy as np
import pytest
from scipy.special import ndtri_exp

from discreet.privacy.gaussian import upper_quantile
from discreet.privacy.normal_quantiles import upper_quantiles

LOG_PROBABILITIES = -np.concatenate([np.geomspace(1e-12, 0.69, 500), np.geomspace(0.7, 700, 1500)])


def test_quantiles_are_those_of_scipy_to_the_last_digits():
    expected = -ndtri_exp(LOG_PROBABILITIES)
    assert upper_quantiles(LOG_PROBABILITIES) == pytest.approx(expected, rel=3e-15, abs=3e-15)


def test_an_array_has_the_quantiles_of_its_numbers():
    found = upper_quantiles(LOG_PROBABILITIES)
    assert found == pytest.approx([upper_quantile(float(p)) for p in LOG_PROBABILITIES], rel=3e-15, abs=3e-15)


def test_quantiles_fall_as_the_probability_rises():
    assert (np.diff(upper_quantiles(np.sort(LOG_PROBABILITIES))) < 0).all()
