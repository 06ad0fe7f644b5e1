"""Clipping: the bound holds for any input."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from discreet.algorithms.clipping import clip
from discreet.params import norms


def test_a_client_over_the_bound_is_scaled_onto_it() -> None:
    clipped = clip({"w": torch.tensor([[3.0, 4.0]])}, 1.0)["w"]
    assert clipped[0].tolist() == pytest.approx([0.6, 0.8], rel=2e-5)


def test_a_client_within_the_bound_stays_as_it_is() -> None:
    block = {"w": torch.tensor([[0.3, 0.4]]), "b": torch.tensor([[0.1]])}
    clipped = clip(block, 1.0)
    assert torch.equal(clipped["w"], block["w"])
    assert torch.equal(clipped["b"], block["b"])


def test_the_bound_is_over_all_tensors_together() -> None:
    clipped = clip({"w": torch.tensor([[3.0]]), "b": torch.tensor([[4.0]])}, 1.0)
    assert (clipped["w"].item(), clipped["b"].item()) == pytest.approx((0.6, 0.8), rel=2e-5)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_client_that_is_not_finite_becomes_zero_and_no_other(bad: float) -> None:
    clipped = clip({"w": torch.tensor([[bad, 1.0], [0.1, 0.2]]), "b": torch.tensor([[1.0], [0.3]])}, 1.0)
    assert clipped["w"].tolist()[0] == [0.0, 0.0]
    assert clipped["b"].tolist()[0] == [0.0]
    assert clipped["w"].tolist()[1] == pytest.approx([0.1, 0.2])


def test_zero_stays_zero() -> None:
    assert clip({"w": torch.zeros(2, 3)}, 1.0)["w"].abs().sum() == 0


@pytest.mark.parametrize("order", [1, 2])
def test_the_largest_numbers_of_single_precision_stay_within_the_bound(order: int) -> None:
    """Their factors have few digits: 1e-45 is the smallest, and 0.8e-45 was rounded up to it."""
    block = {"w": torch.full((2, 16384), torch.finfo(torch.float32).max)}
    for norm in (1.0, 1e-2, 1e-3, 3.2e-5):
        assert float(norms(clip(block, norm, order), order=order).max()) <= norm


@given(
    rows=st.lists(
        st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), min_size=3, max_size=3), min_size=1
    ),
    norm=st.floats(1e-3, 1e3),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_no_row_exceeds_the_bound(rows: list[list[float]], norm: float, dtype: torch.dtype) -> None:
    block = torch.tensor(rows, dtype=dtype)
    clipped = clip({"w": block[:, :2], "b": block[:, 2:]}, norm)
    assert bool((norms(clipped) <= norm).all())


def test_each_client_may_have_its_own_bound() -> None:
    clipped = clip({"w": torch.tensor([[3.0, 4.0], [3.0, 4.0]])}, torch.tensor([1.0, 2.0]))
    assert norms(clipped).tolist() == pytest.approx([1.0, 2.0], rel=2e-5)
