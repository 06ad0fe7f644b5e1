"""Clipping: the bound holds for any input."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from discreet.algorithms.broadcast import CLIP, Broadcast
from discreet.algorithms.clipping import clip
from discreet.algorithms.mechanisms import AdaptiveGaussian, DistributedGaussian, Gaussian, IntegerNoise, LocalNoise
from discreet.algorithms.training import MinibatchDp
from discreet.algorithms.training.gradient_rules import L1Clip, L2Clip
from discreet.errors import InvalidInput
from discreet.params import norms, scale, sum_clients
from discreet.randomness.streams import RunKey
from tests.federations import CPU


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


@given(
    rows=st.lists(
        st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), min_size=3, max_size=3), min_size=1
    ),
    norm=st.sampled_from([1e-30, 1e-20, 1e-9, 1e9, 1e20, 1e30]),
    order=st.sampled_from([1, 2]),
)
def test_at_the_ends_of_the_allowed_norms_rows_keep_the_bound_in_both_units(
    rows: list[list[float]], norm: float, order: int
) -> None:
    """Also of subnormal numbers, infinities and zeros; and after the division by the norm, by which noise is scaled."""
    clipped = clip({"w": torch.tensor(rows)}, norm, order)
    assert bool((norms(clipped, order=order) <= norm).all())
    unit = scale(clipped, 1 / norm)
    assert bool((norms(unit, order=order) <= 1 - 2e-6).all())


@pytest.mark.parametrize("norm", [1e-31, 1e31])
@pytest.mark.parametrize(
    "build",
    [
        lambda norm: Gaussian(clip_norm=norm),
        lambda norm: AdaptiveGaussian(clip_norm=norm),
        lambda norm: DistributedGaussian(clip_norm=norm),
        lambda norm: LocalNoise(kind="local_laplace", clip_norm=norm),
        lambda norm: IntegerNoise(kind="skellam", clip_norm=norm),
        lambda norm: MinibatchDp(sampling_rate=0.5, clip_norm=(1.0, norm), learning_rate=0.1),
        lambda norm: L1Clip(bound=norm),
        lambda norm: L2Clip(bound=norm),
    ],
)
def test_a_norm_that_single_precision_can_not_divide_by_is_refused(
    build: Callable[[float], object], norm: float
) -> None:
    with pytest.raises(InvalidInput, match=r"must be between 1e-30 and 1e30, and got 1e[+-]31"):
        build(norm)


def test_an_adaptive_clip_stays_within_the_allowed_norms() -> None:
    """Updates of zero make it smaller in every round; noise could make it larger."""
    mechanism = AdaptiveGaussian(clip_norm=1e-30, rate=50.0, noise_multiplier=1e-6)
    told = Broadcast(0, {"w": torch.zeros(2)}, mechanism.announce(mechanism.init({"w": torch.zeros(2)}), None))
    total = sum_clients(mechanism.bound({"w": torch.zeros(3, 2)}, told))
    noise = RunKey.from_seed(0).rows(0, b"", [-1], CPU)
    _, state = mechanism.release_sum(total, told.announcement, told, 3, 3, noise)
    assert float(state[CLIP]) == 1e-30


def test_a_bound_of_training_that_can_not_be_divided_by_is_refused() -> None:
    mechanism = LocalNoise(kind="local_gaussian")
    with pytest.raises(InvalidInput, match=r"at most 1e\+30, and training bounds it by 1e\+31"):
        mechanism.announce(mechanism.init({"w": torch.zeros(2)}), 1e31)
