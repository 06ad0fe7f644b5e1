"""Searches in a composed privacy-loss distribution, where Newton's method has no slope."""

import math

import numpy as np
import pytest

from discreet.privacy.spectrum import Spectrum


def one_atom(near: float, left_out: float = 0.0, first: int = 1) -> Spectrum:
    """Put all of P's mass at one loss, so that δ(ε) = 1 − e^(ε − loss) below it, and the omitted mass above."""
    return Spectrum(
        spacing=1.0,
        first=first,
        weights=np.array([1.0]),
        tilt=0.0,
        log_scale=0.0,
        left_out=left_out,
        noise=0.0,
        near=near,
        rounding=0.0,
    )


@pytest.mark.parametrize("near", [0.5, 1.5, 5.0, 1e3])
@pytest.mark.parametrize("delta", [0.5, 1e-5])
def test_a_search_that_begins_above_all_losses_finds_epsilon(near: float, delta: float):
    found = one_atom(near).epsilon(delta)
    assert found == pytest.approx(1 + math.log1p(-delta), rel=1e-8)
    assert one_atom(near).delta(found) <= delta


def test_a_search_that_begins_far_below_a_loss_finds_epsilon():
    """There e^(ε − loss) is lost to underflow, and δ looks flat."""
    assert one_atom(0.0, first=1000).epsilon(0.5) == pytest.approx(1000 + math.log(0.5), rel=1e-8)


def test_epsilon_is_zero_where_delta_is_enough_without():
    assert one_atom(5.0).epsilon(0.9) == 0.0


def test_no_epsilon_reaches_a_delta_below_the_mass_that_was_left_out():
    assert one_atom(5.0, left_out=1e-6).epsilon(1e-7) == math.inf
    assert one_atom(5.0, left_out=1e-6).epsilon(1e-5) == pytest.approx(1, rel=1e-4)
