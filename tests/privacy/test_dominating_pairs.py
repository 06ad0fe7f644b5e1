"""Dominating pairs: masses that sum to one under both distributions, and domination where it is claimed."""

import math

import numpy as np
import pytest

from discreet.errors import Unsupported
from discreet.privacy.dominating_pairs import dominating_pair
from discreet.privacy.events import (
    DiscreteGaussianNoise,
    GaussianNoise,
    LaplaceNoise,
    Noise,
    PoissonSampled,
    RandomAllocation,
    RandomisedResponse,
    SampledWithoutReplacement,
    SkellamNoise,
    Step,
    TruncatedPoissonSampled,
)
from discreet.privacy.noise_pairs import LaplaceBase
from discreet.privacy.release import Relation
from discreet.privacy.sampling_schemes import Atoms

RELATIONS: tuple[Relation, ...] = ("add_or_remove", "zero_out", "replace")
NOISES: list[Noise] = [
    GaussianNoise(noise_multiplier=0.3),
    GaussianNoise(noise_multiplier=1.0),
    GaussianNoise(noise_multiplier=50.0),
    LaplaceNoise(noise_multiplier=0.2),
    LaplaceNoise(noise_multiplier=5.0),
    SkellamNoise(variance=20.0, l2_sensitivity=3.0, dimension=1),
]
STEPS: list[tuple[Step, Relation]] = [
    *[(noise, "add_or_remove") for noise in NOISES],
    *[(noise, "replace") for noise in NOISES],
    *[(PoissonSampled(sampling_rate=q, event=noise), "add_or_remove") for noise in NOISES for q in (1e-4, 0.2, 0.99)],
    *[(PoissonSampled(sampling_rate=q, event=noise), "replace") for noise in NOISES for q in (1e-4, 0.2)],
    *[(SampledWithoutReplacement(cohort=2, population=9, event=noise), "replace") for noise in NOISES],
    *[
        (TruncatedPoissonSampled(sampling_rate=0.2, max_batch_size=3, population=9, event=noise), relation)
        for noise in NOISES[1:]  # at twice the sensitivity, 0.3 would be too little
        for relation in RELATIONS
    ],
    *[(RandomAllocation(bins=bins, event=GaussianNoise(noise_multiplier=1.0)), "zero_out") for bins in (2, 7)],
    *[(RandomisedResponse(categories=categories, random_share=0.3), "replace") for categories in (2, 9)],
]


@pytest.mark.parametrize(("step", "relation"), STEPS, ids=lambda value: repr(value)[:60])
@pytest.mark.parametrize("spacing", [None, 0.01])
def test_both_distributions_of_every_pair_have_mass_one(step: Step, relation: Relation, spacing: float | None) -> None:
    edges = np.empty(0) if spacing is None else np.arange(-500.0, 500.0) * spacing
    for side in dominating_pair(step, relation).atoms(edges):
        assert np.exp(side.log_masses).sum() == pytest.approx(1, abs=1e-9)
        assert np.exp(side.log_masses - side.losses).sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(("step", "relation"), STEPS[::3], ids=lambda value: repr(value)[:60])
def test_read_backwards_a_loss_changes_sign_and_side(step: Step, relation: Relation) -> None:
    both = dominating_pair(step, relation).atoms(np.empty(0))
    for epsilon in (0.0, 0.1, 1.0):
        # δ of (P, Q) at −ε follows from δ of (Q, P) at ε
        backwards = 1 - math.exp(-epsilon) + math.exp(-epsilon) * hockey_stick(both.backward, epsilon)
        assert hockey_stick(both.forward, -epsilon) == pytest.approx(backwards, abs=1e-4)


def hockey_stick(atoms: Atoms, epsilon: float) -> float:
    above = atoms.losses > epsilon
    return float(np.sum(np.exp(atoms.log_masses[above]) * -np.expm1(epsilon - atoms.losses[above])))


def laplace_stick(shift: float, epsilon: float) -> float:
    """δ(ε) of Laplace noise, in closed form."""
    if epsilon >= shift:
        return 0.0
    return 1 - math.exp((epsilon - shift) / 2) if epsilon >= -shift else -math.expm1(epsilon)


@pytest.mark.parametrize("parts", [(0.5, 0.5), (0.9, 0.1), (1.0, 1.0), (3.0, 0.5), (0.01, 2.0)])
def test_laplace_noise_on_a_vector_is_dominated_by_one_coordinate(parts: tuple[float, float]) -> None:
    """Two coordinates that move by s and t, against one that moves by s + t; more follow by induction."""
    first, second = parts
    losses, log_q = LaplaceBase(second).nodes(np.linspace(-second, second, 400))
    masses = np.exp(log_q + losses)
    for epsilon in np.linspace(0, first + second, 23):
        product = sum(m * laplace_stick(first, epsilon - loss) for m, loss in zip(masses, losses, strict=True))
        assert product <= laplace_stick(first + second, epsilon) + 1e-9


@pytest.mark.parametrize("angle", [0.0, 0.5, 1.0, math.pi / 2, 2.0, 2.6, math.pi])
@pytest.mark.parametrize("length", [0.5, 1.0])
def test_opposite_updates_are_the_worst_replacement_under_sampling(angle: float, length: float) -> None:
    """Against updates at any angle, of full or half length, on a fine grid of the plane."""
    rate, z = 0.2, 1.0
    worst = dominating_pair(
        PoissonSampled(sampling_rate=rate, event=GaussianNoise(noise_multiplier=z)), "replace"
    ).atoms(np.empty(0))
    grid = np.linspace(-9, 9, 901)
    x, y = np.meshgrid(grid, grid)

    def mixture(a: float, b: float) -> np.ndarray:
        still = np.exp(-(x**2 + y**2) / 2)
        moved = np.exp(-((x - a) ** 2 + (y - b) ** 2) / 2)
        return ((1 - rate) * still + rate * moved) / (2 * math.pi) * (grid[1] - grid[0]) ** 2

    p, q = mixture(1.0, 0.0), mixture(length * math.cos(angle), length * math.sin(angle))
    for epsilon in (0.0, 0.05, 0.3, 1.0, 2.0):
        for one, other in ((p, q), (q, p)):
            assert np.maximum(0, one - math.exp(epsilon) * other).sum() <= hockey_stick(worst.forward, epsilon) + 1e-5


def test_fixed_sizes_amplify_as_the_theorem_says() -> None:
    """δ'(log(1 + q(e^ε − 1))) = q·δ(ε), Balle, Barthe and Gaboardi 2018."""
    noise = GaussianNoise(noise_multiplier=2.0)
    sampled = dominating_pair(SampledWithoutReplacement(cohort=1, population=5, event=noise), "replace")
    unsampled = dominating_pair(noise, "replace")
    for epsilon in (0.0, 0.5, 2.0):
        amplified = math.log1p(0.2 * math.expm1(epsilon))
        left = hockey_stick(sampled.atoms(np.array([amplified])).forward, amplified)
        right = hockey_stick(unsampled.atoms(np.array([epsilon])).forward, epsilon)
        assert left == pytest.approx(0.2 * right, rel=1e-9)


def test_noise_on_lattice_vectors_has_no_pair() -> None:
    for noise in (
        DiscreteGaussianNoise(variance=4.0, l2_sensitivity=1.0),
        SkellamNoise(variance=100.0, l2_sensitivity=5.0, dimension=10),
    ):
        with pytest.raises(Unsupported, match="Rényi bound is what is certified"):
            dominating_pair(noise, "add_or_remove")


def test_a_unit_step_on_the_lattice_moves_one_coordinate_so_it_has_a_pair() -> None:
    dominating_pair(SkellamNoise(variance=100.0, l2_sensitivity=1.0, dimension=10**9), "add_or_remove")
    with pytest.raises(Unsupported):  # replaced, two coordinates may move
        dominating_pair(SkellamNoise(variance=100.0, l2_sensitivity=1.0, dimension=10**9), "replace")
