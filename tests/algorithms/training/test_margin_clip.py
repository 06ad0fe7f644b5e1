"""The lemmas of docs/notes/local_steps.md: the margin clip is bounded, monotone and cocoercive; the L2 clip is not."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from discreet.algorithms.clipping import ROUNDING
from discreet.algorithms.training.margin_clip import clip_by_margin

PAIRS = 1000  # for each of hypothesis' examples


def logits(classes: int, spread: float, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return pairs of logits, near each other and far apart, and labels."""
    generator = torch.Generator().manual_seed(seed)
    first = spread * torch.randn(PAIRS, classes, generator=generator, dtype=torch.float64)
    apart = spread * torch.logspace(-4, 0.5, PAIRS, dtype=torch.float64)[:, None]
    second = first + apart * torch.randn(PAIRS, classes, generator=generator, dtype=torch.float64)
    return first, second, torch.randint(classes, (PAIRS,), generator=generator)


settings = given(
    classes=st.integers(2, 12),
    spread=st.sampled_from([0.1, 1.0, 5.0, 50.0]),
    norm=st.sampled_from([0.01, 0.3, 0.7, 1.0, 1.4142, 3.0]),
    seed=st.integers(0, 10**6),
)


@settings
def test_no_gradient_is_longer_than_the_clip_and_small_ones_stay(classes: int, spread: float, norm: float, seed: int):
    first, _, targets = logits(classes, spread, seed)
    clipped = clip_by_margin(first, targets, norm)
    assert clipped.norm(dim=1).max() <= min(norm, math.sqrt(2))
    own = torch.nn.functional.one_hot(targets, classes)
    plain = first.softmax(dim=1) - own
    small = -plain[own == 1] <= ROUNDING * norm / math.sqrt(2)
    assert torch.allclose(clipped[small], plain[small], atol=1e-12)


@settings
def test_it_is_monotone_and_2_cocoercive(classes: int, spread: float, norm: float, seed: int):
    """⟨ĝ(u) − ĝ(v), u − v⟩ ≥ 2·‖ĝ(u) − ĝ(v)‖²: so its potential is convex and ½-smooth."""
    first, second, targets = logits(classes, spread, seed)
    moved = clip_by_margin(first, targets, norm) - clip_by_margin(second, targets, norm)
    along = (moved * (first - second)).sum(dim=1)
    slack = 1e-13 * (1 + (first - second).norm(dim=1))
    assert bool((along >= 2 * moved.square().sum(dim=1) - slack).all())


@pytest.mark.parametrize("norm", [0.2, 0.8, 1.2])
def test_it_is_the_gradient_of_cross_entropy_made_linear_in_the_margin_where_it_is_clipped(norm: float):
    """φ(m) = log(1 + eᵐ) up to the m at which r = c, and a straight line of slope c from there on."""
    first, _, targets = logits(5, 3.0, 1)
    own = torch.nn.functional.one_hot(targets, 5).bool()
    first.requires_grad_()
    margins = first.masked_fill(own, -torch.inf).logsumexp(dim=1) - first[own]
    slope = ROUNDING * norm / math.sqrt(2)
    turn = math.log(slope / (1 - slope))
    line = math.log1p(math.exp(turn)) + slope * (margins - turn)
    potential = torch.where(margins <= turn, torch.nn.functional.softplus(margins), line)
    (expected,) = torch.autograd.grad(potential.sum(), first)
    assert torch.allclose(clip_by_margin(first.detach(), targets, norm), expected, atol=1e-12)


def test_clipping_by_the_norm_is_not_monotone():
    """Two logits with the same label, found by a random search: the L2-clipped gradient falls along u − v."""
    first, second, targets = logits(3, 3.0, 0)
    own = torch.nn.functional.one_hot(targets, 3)

    def clip_by_norm(values: Tensor) -> Tensor:
        gradient = values.softmax(dim=1) - own
        return gradient * (0.3 / gradient.norm(dim=1, keepdim=True)).clamp(max=1)

    along = ((clip_by_norm(first) - clip_by_norm(second)) * (first - second)).sum(dim=1)
    assert along.min() < -1e-3


def step(tables: Tensor, features: Tensor, targets: Tensor, rate: float, batch: float) -> Tensor:
    """W ← W − (γ/B)·Σ ĝ xᵀ, for features of norm at most 1; for many models W at once."""
    gradients = clip_by_margin(features @ tables.mT, targets.expand(len(tables), -1), 1.0)
    return tables - rate / batch * gradients.mT @ features


@given(seed=st.integers(0, 10**6), classes=st.integers(2, 6), spread=st.sampled_from([0.01, 1.0, 10.0]))
def test_a_step_of_4_drives_no_two_models_apart(seed: int, classes: int, spread: float):
    generator = torch.Generator().manual_seed(seed)
    features = torch.nn.functional.normalize(torch.randn(7, 4, generator=generator, dtype=torch.float64), dim=1)
    targets = torch.randint(classes, (7,), generator=generator)
    one, other = (spread * torch.randn(50, classes, 4, generator=generator, dtype=torch.float64) for _ in range(2))
    moved = step(one, features, targets, 4.0, 7) - step(other, features, targets, 4.0, 7)
    assert bool((moved.norm(dim=(1, 2)) <= (one - other).norm(dim=(1, 2)) * (1 + 1e-12)).all())


@pytest.mark.parametrize(("rate", "examples"), [(4.2, 1), (4.0, 2)])
def test_a_larger_step_does_and_so_does_a_batch_of_more_than_it_is_divided_by(rate: float, examples: int):
    """Two classes at even odds, where the curvature is the largest, ½; B = 1."""
    features, targets = torch.ones(examples, 1, dtype=torch.float64), torch.zeros(examples, dtype=torch.int64)
    one = torch.zeros(1, 2, 1, dtype=torch.float64)
    other = one + 1e-3 * torch.tensor([[[1.0], [-1.0]]], dtype=torch.float64)
    moved = step(one, features, targets, rate, 1) - step(other, features, targets, rate, 1)
    assert moved.norm() > 1.05 * (one - other).norm()
