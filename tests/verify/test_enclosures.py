"""The checker's enclosures contain what is known exactly, and its error bounds hold."""

import math

import numpy as np
import pytest
from flint import arb

from discreet.verify.balls import lower, normal_mass, upper
from discreet.verify.closed_forms import gaussian_delta, laplace_delta, single_delta
from discreet.verify.composition import enclose_delta
from discreet.verify.fourier import Spectrum, transform, transform_error
from discreet.verify.lattice import LatticeStep, put_on_lattice
from discreet.verify.loss_pairs import GaussianMixtures, Pair, Replacement, ReversedPair, SampledLaplace


def gaussian(mu: float) -> GaussianMixtures:
    return GaussianMixtures(((1.0, mu),), ((1.0, 0.0),))


def sampled_gaussian(mu: float, rate: float) -> GaussianMixtures:
    return GaussianMixtures(((1 - rate, 0.0), (rate, mu)), ((1.0, 0.0),))


def fixed_size(mu: float, rate: float) -> Replacement:
    return Replacement(gaussian(mu), rate, float(normal_mass(-mu / 2, mu / 2).mid()))


PAIRS: dict[str, Pair] = {
    "gaussian": gaussian(0.7),
    "far gaussian": gaussian(60.0),
    "sampled": sampled_gaussian(1.3, 0.01),
    "sampled, backward": ReversedPair(sampled_gaussian(1.3, 0.01)),
    "antipodal": GaussianMixtures(((0.9, 0.0), (0.1, 2.0)), ((0.1, -2.0), (0.9, 0.0))),
    "group": GaussianMixtures(((0.81, 0.0), (0.18, 0.5), (0.01, 1.0)), ((1.0, 0.0),)),
    "laplace": SampledLaplace(2.0),
    "sampled laplace": SampledLaplace(2.0, 0.1),
    "sampled laplace, backward": ReversedPair(SampledLaplace(2.0, 0.1)),
    "fixed size": fixed_size(1.0, 0.2),
    "fixed size, laplace": Replacement(SampledLaplace(1.0), 0.2, -math.expm1(-0.5)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_both_distributions_of_a_pair_have_the_mass_one(name):
    pair = PAIRS[name]
    masses = pair.masses(np.linspace(-2.0, 2.0, 401).round(2))
    assert masses.p.sum() + sum(atom.p for atom in pair.atoms) == pytest.approx(1, abs=1e-12)
    assert masses.q.sum() + sum(atom.q for atom in pair.atoms) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", PAIRS)
def test_masses_of_a_cell_have_a_ratio_within_its_losses(name):
    edges = np.linspace(-2.0, 2.0, 401).round(2)
    p, q, error, slack = PAIRS[name].masses(edges)
    inner = slice(1, -1)
    held = (p[inner] > 1e-280) & (q[inner] > 1e-280)
    losses = np.log(p[inner][held] / q[inner][held])
    margin = slack + 2 * error[inner][held]
    assert np.all(losses >= edges[:-1][held] - margin)
    assert np.all(losses <= edges[1:][held] + margin)
    assert slack < 1e-11


@pytest.mark.parametrize("name", PAIRS)
def test_the_lattice_keeps_both_masses(name):
    step = put_on_lattice(PAIRS[name], 0.01, -3000, 6000, 0.0)
    points = (step.first + np.arange(step.weights.size)) * 0.01
    total = math.exp(float(step.log_total.mid()))
    assert total * step.weights.sum() + step.unbounded == pytest.approx(1, abs=1e-9)
    assert total * (step.weights * np.exp(-points)).sum() <= 1 + 1e-9


@pytest.mark.parametrize(("mu", "times"), [(1.0, 1), (0.5, 7), (0.03, 1000), (0.01, 100_000), (3.0, 400)])
@pytest.mark.parametrize("delta", [1e-2, 1e-9])
def test_composed_gaussians_enclose_their_closed_form(mu, times, delta):
    whole = math.sqrt(times) * mu
    epsilon = whole**2 / 2 + whole * math.sqrt(-2 * math.log(delta))
    exact = gaussian_delta(arb(times).sqrt() * arb(mu), arb(epsilon))
    found = enclose_delta([(gaussian(mu), times)], epsilon, float(exact.mid()))
    assert found.low <= lower(exact)
    assert upper(exact) <= found.high <= 1.01 * upper(exact)
    assert times == 1 or found.low > 0.9 * lower(exact)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.7])
def test_two_laplace_releases_enclose_their_closed_form(epsilon):
    """docs/notes/laplace.md, at s = t = 1 and ε ≤ 2."""
    exact = 1 - (1 + (2 - epsilon) / 4) * math.exp((epsilon - 2) / 2)
    found = enclose_delta([(SampledLaplace(1.0), 2)], epsilon, exact)
    assert found.low <= exact * (1 + 1e-12)
    assert exact <= found.high * (1 + 1e-12) <= 1.001 * exact


@pytest.mark.parametrize(
    ("pairs", "step", "relation"),
    [
        (
            (sampled_gaussian(1.0, 0.1), ReversedPair(sampled_gaussian(1.0, 0.1))),
            ("poisson", 0.1, ("gaussian", 1.0)),
            "zero_out",
        ),
        (
            (SampledLaplace(0.5, 0.1), ReversedPair(SampledLaplace(0.5, 0.1))),
            ("poisson", 0.1, ("laplace", 2.0)),
            "zero_out",
        ),
        ((SampledLaplace(1.0),), ("laplace", 2.0), "replace"),
        ((fixed_size(2.0, 0.3),), ("fixed_size", 0.3, ("gaussian", 1.0)), "replace"),
    ],
)
@pytest.mark.parametrize("epsilon", [0.02, 0.1])
def test_one_release_encloses_its_closed_form(pairs, step, relation, epsilon):
    exact = single_delta(step, relation, epsilon)
    assert exact is not None
    found = [enclose_delta([(pair, 1)], epsilon, float(exact.mid())) for pair in pairs]
    assert max(each.low for each in found) <= upper(exact)
    assert lower(exact) <= max(each.high for each in found) <= 1.01 * upper(exact)


def test_the_backward_direction_of_one_release_is_in_its_closed_form():
    """At a large rate and a small ε, removing a unit is harder to hide than adding one, or the other way round."""
    step, rate, alpha = ("poisson", 0.9, ("laplace", 1.0)), 0.9, math.exp(0.1)
    forward = rate * float(laplace_delta(arb(1), arb(math.log1p((alpha - 1) / rate))).mid())
    rest = 1 - alpha * (1 - rate)
    backward = rest * float(laplace_delta(arb(1), arb(math.log(rate * alpha / rest))).mid())
    assert float(single_delta(step, "zero_out", 0.1).mid()) == pytest.approx(max(forward, backward), rel=1e-12)


@pytest.mark.parametrize("bits", [3, 6, 9, 13])
def test_the_transform_is_within_its_bound(bits):
    values = np.random.default_rng(bits).random(2**bits)
    exact = np.fft.fft(values.astype(np.longdouble))
    assert np.abs(transform(values, bits) - exact).max() <= transform_error(bits) * values.sum()


def test_the_sum_over_frequencies_is_the_sum_over_the_lattice():
    rng = np.random.default_rng(5)
    weights = rng.random(30)
    step = LatticeStep(-7, weights / weights.sum(), arb(0), 0.0, 0.0, 0.0, 0.0)
    spacing, tilt, epsilon, times = 0.05, 2.0, 1.234, 3
    composed = np.convolve(np.convolve(step.weights, step.weights), step.weights)
    above = (3 * step.first + np.arange(composed.size)) * spacing - epsilon
    g = np.where(above > 0, np.exp(-tilt * above) - np.exp(-(tilt + 1) * above), 0.0)
    value, error = Spectrum([(step, times)], spacing, tilt, 12).tail(epsilon)
    assert value == pytest.approx(float(composed @ g), abs=error + 1e-14)
    assert error < 1e-11
