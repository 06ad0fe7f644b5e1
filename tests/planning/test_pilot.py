"""Theorem 3's constants from a pilot: by hand, against numpy, and as the planner writes them."""

import numpy as np
import pytest
import torch

from discreet.data.federation import Federation
from discreet.data.heterogeneity import measure_heterogeneity
from discreet.errors import InvalidInput
from discreet.planning.pilot import run_pilot, synthetic_clients
from discreet.planning.theory.fu_convergence import SYNTHETIC_CONSTANTS


def test_two_clients_with_one_number_each_by_hand():
    """f_1 = (θ − 1)², f_2 = (2θ − 6)²: Hessians 2 and 8, best θ = (1 + 12)/5, of which Γ is all the loss there."""
    data = Federation(torch.tensor([[1.0], [2.0]]), torch.tensor([1.0, 6.0]), (1, 1))
    found = run_pilot(data)
    assert (found.constants.convexity, found.constants.smoothness) == pytest.approx((2, 8))
    assert found.best.tolist() == pytest.approx([2.6])
    assert found.constants.start == pytest.approx(2.6**2)
    assert found.constants.heterogeneity == pytest.approx((1.6**2 + 0.8**2) / 2)
    assert found.constants.gradient_bound == found.largest_l1 == pytest.approx(24)  # of f_2 at 0
    assert found.losses.values(torch.tensor([[2.6], [2.6]]).double()).tolist() == pytest.approx([2.56, 0.64])


def test_a_ridge_is_part_of_every_loss():
    data = Federation(torch.tensor([[1.0], [2.0]]), torch.tensor([1.0, 6.0]), (1, 1))
    found = run_pilot(data, ridge=3.0)
    assert (found.constants.convexity, found.constants.smoothness) == pytest.approx((5, 11))
    assert found.best.tolist() == pytest.approx([26 / 16])


def test_clients_of_unlike_sizes_count_by_their_examples():
    """Against least squares on all rows at once, and the Γ that `discreet data check` shows, which has a constant."""
    drawn = np.random.default_rng(3)
    sizes = (7, 20, 40)
    inputs = np.concatenate([drawn.normal(size=(sum(sizes), 3)), np.ones((sum(sizes), 1))], axis=1)
    targets = drawn.normal(size=sum(sizes)) + np.repeat([0.0, 3.0, -2.0], sizes)
    data = Federation(torch.from_numpy(inputs), torch.from_numpy(targets), sizes)
    found = run_pilot(data)
    assert found.best.tolist() == pytest.approx(np.linalg.lstsq(inputs, targets, rcond=None)[0].tolist())
    assert found.constants.heterogeneity == pytest.approx(measure_heterogeneity(data, "regression", 1).gamma)
    first = 2 * inputs[:7].T @ inputs[:7] / 7
    assert found.constants.convexity <= np.linalg.eigvalsh(first)[0] * (1 + 1e-9)


def test_no_gradient_on_the_way_is_above_the_bound_and_the_clip_cuts_none():
    data = synthetic_clients(20, 4, examples=30, distance=3.0, spread=2.0)
    found = run_pilot(data, iterations=5)
    at_start = found.losses.gradients(torch.zeros(4, dtype=torch.float64))
    assert float(at_start.norm(dim=1).max()) <= found.constants.gradient_bound == found.clip_norm("gaussian")
    assert float(at_start.abs().sum(dim=1).max()) <= found.clip_norm("laplace")


def test_synthetic_clients_are_the_same_each_time_and_as_unlike_as_they_are_told_to_be():
    again = [synthetic_clients(5, 3, seed=4) for _ in range(2)]
    assert torch.equal(again[0].inputs, again[1].inputs)
    alike = run_pilot(synthetic_clients(400, 3, spread=0.0, distance=5.0)).constants
    assert alike.start == pytest.approx(25, rel=0.01)
    assert alike.heterogeneity < 0.1 < run_pilot(synthetic_clients(400, 3, spread=2.0)).constants.heterogeneity


def test_a_loss_that_is_flat_somewhere_is_refused():
    flat = Federation(torch.tensor([[1.0, 1.0], [2.0, 2.0]]), torch.tensor([1.0, 2.0]), (2,))
    with pytest.raises(InvalidInput, match="not strongly convex"):
        run_pilot(flat)
    assert run_pilot(flat, ridge=0.5).constants.convexity == pytest.approx(0.5)


def test_the_planners_constants_are_what_the_pilot_makes():
    found = run_pilot(synthetic_clients(5000, 11)).constants
    assert vars(SYNTHETIC_CONSTANTS) == pytest.approx(vars(found), rel=1e-3)
