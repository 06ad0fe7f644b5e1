"""One example moves a sum of clipped gradients by no more than the clip, in exact arithmetic."""

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from discreet.algorithms.clipping import Clip, clip_factors
from discreet.algorithms.noise_addition import add_noise
from discreet.algorithms.training.batches import Batch
from discreet.algorithms.training.gradient_records import DenseGradient, Gradient, OuterProductGradient
from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.algorithms.training.per_example import clipped_sum
from discreet.double_sums import weighted_sums
from discreet.params import Params, norms, repeat_for_clients

UNIT = Fraction(1, 2**53)


def clip_sum(found: Gradient, clip: float) -> Tensor:
    """Return the sum of all examples' clipped gradients, as `clipped_sum` computes it."""
    weights = clip_factors(found.squared_norms().sqrt(), clip)
    return found.weighted_sum(weights[None])[0].flatten()


def longest(values: Tensor) -> float:
    return math.sqrt(sum(Fraction(each) ** 2 for each in values.tolist()))


def same_gradient(inputs: Tensor, examples: int) -> Tensor:
    """Return the sum over so many examples with one and the same gradient, `inputs`, clipped to 1."""
    module = torch.nn.Linear(inputs.shape[-1], 1, bias=False)
    params = repeat_for_clients({name: value.detach() for name, value in module.named_parameters()}, 1)
    loss = ModuleLoss.from_module(module, lambda outputs, targets: outputs[:, 0])
    mask = torch.ones(1, examples, dtype=torch.bool)
    batch = Batch(inputs.expand(1, examples, -1), torch.zeros(1, examples), mask, mask[:, 0])
    return clipped_sum(loss, params, batch, Clip(1.0))["weight"].flatten()


def test_the_last_of_many_equal_examples_counts_for_no_more_than_the_clip() -> None:
    """In single precision a sum of 3,000 in one coordinate has steps of 2.4e-4."""
    inputs = torch.tensor([3.0, 0.01])
    counts = (2999, 3000, 3001)
    first, second, third = (same_gradient(inputs, count) for count in counts)
    assert max(longest(second - first), longest(third - second)) <= 1


@given(
    values=st.lists(st.floats(-1e6, 1e6, width=32), min_size=2, max_size=40),
    clip=st.sampled_from([1e-9, 1e-3, 1.0, 1e6]),
    outer=st.booleans(),
)
def test_one_example_moves_the_sum_by_at_most_the_clip(values: list[float], clip: float, outer: bool) -> None:
    """Without the first example the rest of the sum may be rounded in another way; the clip leaves room."""
    rows = torch.tensor(values)[:, None] * torch.tensor([[1.0, 1e-3, 1e3]])
    found: Gradient = OuterProductGradient(rows, rows.flip(1)) if outer else DenseGradient(rows)
    fewer: Gradient = OuterProductGradient(rows[1:], rows[1:].flip(1)) if outer else DenseGradient(rows[1:])
    assert longest(clip_sum(found, clip) - clip_sum(fewer, clip)) <= clip


@given(
    values=st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=50),
    scales=st.lists(st.integers(-60, 60), min_size=50, max_size=50),
    size=st.sampled_from([1, 3]),
)
def test_a_weighted_sum_is_within_its_bound_of_the_exact_sum(values: list[float], scales: list[int], size: int) -> None:
    rows = torch.tensor([[value * 2.0**scale] * size for value, scale in zip(values, scales, strict=False)])
    weights = torch.linspace(0.1, 1, len(rows), dtype=torch.float64)
    found = weighted_sums(rows[None], weights[None])[0]
    products = [Fraction(float(row[0])) * Fraction(float(weight)) for row, weight in zip(rows, weights, strict=True)]
    allowed = (len(rows) + 1) * UNIT * sum(map(abs, products))
    assert all(abs(Fraction(each) - sum(products)) <= allowed for each in found.tolist())


@pytest.mark.parametrize("shape", [(3, 5, 7), (2, 40, 9), (1, 3, 500), (4, 0, 3), (0, 2, 3)])
def test_pieces_make_no_difference(shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Several sums, several rows of one sum, and several values of one row at a time."""
    monkeypatch.setattr("discreet.double_sums.CPU_PIECE", 64)
    generator = torch.Generator().manual_seed(0)
    rows, weights = torch.randn(shape, generator=generator), torch.rand(shape[:2], generator=generator).double()
    expected = (rows.double() * weights[..., None]).sum(dim=1)
    assert torch.allclose(weighted_sums(rows, weights), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("exponent", [-149, -140, -126])
def test_an_outer_product_of_a_tiny_and_a_huge_factor_keeps_the_clip(exponent: int) -> None:
    """Times its weight, the tiny factor has few digits in single precision, and the huge one shows them."""
    left, right = torch.full((1, 4096), 1.5 * 2.0**exponent), torch.full((1, 4096), 3e38)
    clipped = clip_sum(OuterProductGradient(left, right), 1e-3 * 2.0 ** (exponent + 149))
    assert float(clipped.double().norm()) <= 1e-3 * 2.0 ** (exponent + 149)


def test_an_outer_product_of_doubles_whose_squares_vanish_keeps_the_clip() -> None:
    sides = ((10_000, 1.5e-162), (1, 1.3e154))
    left, right = (torch.full((1, length), value, dtype=torch.float64) for length, value in sides)
    assert longest(clip_sum(OuterProductGradient(left, right), 1e-9)) <= 1e-9


def test_noise_is_added_before_a_sum_is_rounded() -> None:
    total: Params = {"w": torch.tensor([[2.0**24 + 1]], dtype=torch.float64)}
    noisy = add_noise(total, {"w": torch.ones(1, 1)}, torch.tensor([1.0]))
    assert (noisy["w"].dtype, float(noisy["w"])) == (torch.float32, 2**24 + 2)


def test_of_gradients_that_are_not_finite_nothing_is_left_and_of_the_others_all() -> None:
    values = torch.tensor([[1.0, 0.0], [math.nan, 1.0], [math.inf, 1.0], [0.0, 0.0], [1e-45, 0.0]])
    module = torch.nn.Linear(2, 1, bias=False)
    params = repeat_for_clients({name: value.detach() for name, value in module.named_parameters()}, 1)
    loss = ModuleLoss.from_module(module, lambda outputs, targets: outputs[:, 0])
    mask = torch.ones(1, len(values), dtype=torch.bool)
    found = clipped_sum(loss, params, Batch(values[None], torch.zeros(1, len(values)), mask, mask[:, 0]), Clip(2.0))
    assert found["weight"].flatten().tolist() == [1.0 + 2.0**-149, 0.0]
    assert float(norms(found)[0]) == 1.0
