"""Gradients that stay factors: their norms bound what is summed, in exact arithmetic, and nothing large is formed."""

import math
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from discreet.algorithms.clipping import Clip, clip_factors
from discreet.algorithms.training import position_sums
from discreet.algorithms.training.batches import Batch
from discreet.algorithms.training.gradient_records import DenseGradient
from discreet.algorithms.training.layer_gradients import keep_rows, patches
from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.algorithms.training.per_example import clipped_sum
from discreet.algorithms.training.position_sums import PositionSumGradient, takes_less_as_factors
from discreet.params import repeat_for_clients


def position_sum(outer: Tensor, inputs: Tensor) -> PositionSumGradient:
    return PositionSumGradient(outer, inputs, keep_rows, torch.Size((outer.shape[2], inputs.shape[2])))


def clip_sum(found: PositionSumGradient, clip: float) -> Tensor:
    weights = clip_factors(found.squared_norms().sqrt(), clip)
    return found.weighted_sum(weights[None])[0].flatten()


def exact_square(outer: Tensor, inputs: Tensor) -> Fraction:
    """Return ‖Σ_t g_t a_tᵀ‖² of one example in exact arithmetic."""
    left, right = ([[Fraction(x) for x in row] for row in side.double().tolist()] for side in (outer, inputs))
    total = Fraction(0)
    for i in range(len(left[0])):
        for j in range(len(right[0])):
            total += sum((g[i] * a[j] for g, a in zip(left, right, strict=True)), Fraction(0)) ** 2
    return total


def squared_length(values: Tensor) -> Fraction:
    """Return the square of a vector's norm in exact arithmetic."""
    return sum((Fraction(each) ** 2 for each in values.tolist()), Fraction(0))


def random(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=dtype)


NUMBERS = st.floats(-1e6, 1e6, width=32) | st.sampled_from([0.0, 1e-30, 1e8, -1e8, 1e38])


@given(
    values=st.lists(NUMBERS, min_size=4, max_size=24),
    almost=st.sampled_from([0.0, 1e-7, 1e-3, 1.0]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_no_norm_is_below_the_exact_one_even_if_its_terms_cancel(
    values: list[float], almost: float, dtype: torch.dtype
) -> None:
    """The second half of the positions takes back what the first half gave, almost."""
    half = torch.tensor(values[: len(values) // 4 * 4], dtype=dtype).reshape(1, -1, 2, 2)
    outer, inputs = half[:, :, 0], half[:, :, 1]
    outer = torch.cat([outer, -outer * (1 + almost)], dim=1)
    inputs = torch.cat([inputs, inputs], dim=1)
    found = float(position_sum(outer, inputs).squared_norms())
    assert found == math.inf or Fraction(found) >= exact_square(outer[0], inputs[0])


def test_no_norm_is_below_the_exact_one_nor_that_of_the_row_if_rounding_exceeds_what_is_left() -> None:
    """Of 150 positions the second half takes back the first but for 1e-9, which inner products lose."""
    outer, inputs = (random(16, 150, 2, dtype=torch.float64) for _ in range(2))
    outer[:, 75:], inputs[:, 75:] = -outer[:, :75], inputs[:, :75]
    outer[:, 0] *= 1 + 1e-9
    found = position_sum(outer, inputs)
    rows = found.weighted_sum(torch.ones(16, 1)).flatten(1)
    for example, square in enumerate(found.squared_norms().tolist()):
        assert squared_length(rows[example]) <= Fraction(square)
        assert exact_square(outer[example], inputs[example]) <= Fraction(square)


@pytest.mark.parametrize(("positions", "left", "right"), [(130, 1, 1), (300, 2, 3), (1024, 4, 9)])
def test_a_norm_has_the_room_for_rounding_that_the_proof_asks_for(positions: int, left: int, right: int) -> None:
    """docs/notes/numerics.md: (2(p + q + T²) + 16)uL², where torch's own rounding is far below the worst case."""
    outer, inputs = random(1, positions, left), random(1, positions, right)
    half = positions // 2
    outer[:, half:], inputs[:, half:] = -outer[:, :half], inputs[:, :half]
    length = float((outer.double().norm(dim=2) * inputs.double().norm(dim=2)).sum())
    room = (2 * (left + right + positions**2) + 16) * 2.0**-53 * length**2
    assert float(position_sum(outer, inputs).squared_norms()) >= room * (1 - 1e-9)


@pytest.mark.parametrize("positions", [*range(1, 10), 85, 86, 127, 128, 129, 255, 256, 257, 300])
def test_a_product_spans_256_terms_and_several_examples_only_where_their_lengths_are_bounded(
    positions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans, add = [], position_sums._sum_groups
    monkeypatch.setattr(
        position_sums, "_sum_groups", lambda left, right, together: spans.append(together) or add(left, right, together)
    )
    outer, inputs = random(3, positions, 1), random(3, positions, 1)
    half = positions // 2
    outer[:, half : 2 * half], inputs[:, half : 2 * half] = -outer[:, :half], inputs[:, :half]
    outer[:, 2 * half :] = 0
    found = position_sum(outer, inputs)
    found.weighted_sum(torch.ones(1, 3))
    (together,) = spans
    assert together == 1 or together * positions <= 256
    if together > 1:
        lengths = (outer.double().norm(dim=2) * inputs.double().norm(dim=2)).sum(dim=1)
        assert bool((found.squared_norms().sqrt() >= lengths / 64).all())


@pytest.mark.parametrize("positions", [2, 16, 128, 129, 300])
@pytest.mark.parametrize("scale", [1.0, 1e12])
def test_an_example_whose_terms_cancel_moves_the_sum_by_at_most_the_clip(positions: int, scale: float) -> None:
    """Its own gradient is short, but beside its terms the digits of all other examples would vanish."""
    outer, inputs = random(5, positions, 2), random(5, positions, 3)
    outer[0] *= scale
    inputs[0] *= scale
    half = positions // 2
    outer[0, half : 2 * half] = -outer[0, :half]
    inputs[0, half : 2 * half] = inputs[0, :half]
    outer[0, 2 * half :] = 0
    whole, less = clip_sum(position_sum(outer, inputs), 1.0), clip_sum(position_sum(outer[1:], inputs[1:]), 1.0)
    assert squared_length(whole - less) <= 1


@pytest.mark.parametrize("positions", [2, 128])
def test_no_terms_in_a_product_over_several_examples_are_longer_than_64_clips(positions: int) -> None:
    outer, inputs = random(1, positions, 2), random(1, positions, 3)
    outer[:, 1::2], inputs[:, 1::2] = -outer[:, ::2], inputs[:, ::2]
    lengths = float((outer.norm(dim=2) * inputs.norm(dim=2)).sum())
    weight = clip_factors(position_sum(outer, inputs).squared_norms().sqrt(), 1e-3)
    assert float(weight) * lengths <= 64e-3


@pytest.mark.parametrize(
    ("clients", "examples", "positions", "limit"),
    [(1, 7, 3, 2**20), (3, 300, 2, 2**20), (3, 300, 2, 600), (2, 5, 100, 2**20), (2, 5, 200, 700), (1, 1, 1, 1)],
)
def test_pieces_and_groups_make_no_difference(
    clients: int, examples: int, positions: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(position_sums, "CPU_VALUES", limit)
    count = clients * examples
    outer, inputs = random(count, positions, 3), random(count, positions, 5)
    weights = torch.rand(clients, examples, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    formed = DenseGradient(outer.double().transpose(1, 2) @ inputs.double())
    found = position_sum(outer, inputs)
    assert torch.allclose(found.weighted_sum(weights), formed.weighted_sum(weights), rtol=1e-11, atol=1e-11)
    assert torch.allclose(found.squared_norms(), formed.squared_norms(), rtol=1e-8)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_an_example_that_is_not_finite_has_no_finite_norm_and_leaves_nothing(bad: float) -> None:
    outer, inputs = random(3, 4, 2), random(3, 4, 3)
    inputs[1, 2, 0] = bad
    found = position_sum(outer, inputs)
    assert found.squared_norms().isfinite().tolist() == [True, False, True]
    weights = torch.tensor([[1.0, 0.0, 1.0]])
    assert torch.equal(
        found.zero_nonfinite().weighted_sum(weights),
        position_sum(outer[::2], inputs[::2]).weighted_sum(weights[:, ::2]),
    )


@pytest.mark.parametrize(("outer", "inputs"), [(1e-200, 1e200), (1e200, 1e-200), (1e-200, 1.0), (1e100, 1e100)])
def test_doubles_whose_squares_vanish_or_overflow_keep_the_clip(outer: float, inputs: float) -> None:
    factors = (torch.full((1, 2, 1), size, dtype=torch.float64) for size in (outer, inputs))
    found = position_sum(*factors)
    assert float(clip_sum(found, 0.1).abs().max()) <= 0.1


def test_a_double_that_counts_as_zero_in_the_norm_counts_as_zero_in_the_sum() -> None:
    factors = [torch.full((1, 2, 1), size, dtype=torch.float64) for size in (1e-100, 1e150)]
    found = position_sum(*factors)
    assert (float(found.squared_norms()), float(found.weighted_sum(torch.ones(1, 1)))) == (0.0, 0.0)


def test_gradients_stay_factors_where_these_are_far_smaller_and_as_fast() -> None:
    assert takes_less_as_factors(16, 512, 4608, 512 * 16)  # the last convolutions of ResNet-18 on CIFAR
    assert takes_less_as_factors(64, 256, 2304, 256 * 64)
    assert not takes_less_as_factors(1024, 64, 576, 64 * 1024)  # the first ones
    assert not takes_less_as_factors(64, 128, 128, 64 * 128)  # a small transformer
    assert not takes_less_as_factors(25, 32, 256, 16 * 144)  # a small network for digits


class LargestTensor(TorchDispatchMode):
    """Remembers how many numbers the largest tensor had that was computed."""

    numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if isinstance(found, Tensor):
            self.numbers = max(self.numbers, found.untyped_storage().nbytes() // found.element_size())
        return found


def test_a_large_convolution_never_forms_the_gradients_of_its_examples() -> None:
    examples, width = 12, 64
    module = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.Flatten(), nn.Linear(4 * width, 2))
    loss = ModuleLoss.from_module(module, lambda outputs, targets: outputs.square().sum(dim=1))
    params = repeat_for_clients({name: value.detach() for name, value in module.named_parameters()}, 1)
    mask = torch.ones(1, examples, dtype=torch.bool)
    batch = Batch(random(1, examples, width, 2, 2), torch.zeros(1, examples), mask, None)
    with LargestTensor() as largest:
        clipped_sum(loss, params, batch, Clip(1.0))  # before the first sum the rules are compared with autograd
        largest.numbers = 0
        clipped_sum(loss, params, batch, Clip(1.0))
    assert largest.numbers <= 2 * params["0.weight"].numel() < examples * params["0.weight"].numel()


@pytest.mark.parametrize(
    "layer", [nn.Conv2d(2, 3, (3, 2), stride=(2, 1), padding=(1, 0)), nn.Conv1d(2, 3, 3, stride=2, padding=1)]
)
def test_patches_times_the_kernel_are_the_convolution(layer: nn.Conv1d | nn.Conv2d) -> None:
    inputs = random(4, 2, 7, 6) if isinstance(layer, nn.Conv2d) else random(4, 2, 7)
    found = partial(patches, layer)(inputs) @ layer.weight.flatten(1).t()
    assert layer.bias is not None
    expected = layer(inputs).flatten(2).transpose(1, 2) - layer.bias
    assert torch.allclose(found, expected, atol=1e-6)
