"""Random allocation: the pair of balls and bins against integrals, exact moments and a simulation."""

import math

import numpy as np
import pytest

from discreet.errors import Unsupported
from discreet.privacy import allocation_pair, groups, pld, rdp, second_engine
from discreet.privacy.accountant import account
from discreet.privacy.dominating_pairs import dominating_pair
from discreet.privacy.events import GaussianNoise, RandomAllocation, Repeated, sampled_gaussian, steps
from discreet.privacy.moments import Moments, moment_atoms

EPSILONS = (0.0, 0.3, 1.0, 2.0)


def allocation(bins: int, z: float) -> RandomAllocation:
    return RandomAllocation(bins=bins, event=GaussianNoise(noise_multiplier=z))


@pytest.mark.parametrize("z", [0.5, 1.0, 3.0])
def test_two_bins_are_an_integral_over_the_plane_from_above(z: float) -> None:
    mu = 1 / z
    line = np.linspace(-9, 9 + mu, 1501)
    x, y = np.meshgrid(line, line)
    q = np.exp(-(x**2 + y**2) / 2) / (2 * math.pi) * (line[1] - line[0]) ** 2
    ratio = (np.exp(mu * x - mu**2 / 2) + np.exp(mu * y - mu**2 / 2)) / 2
    for epsilon in EPSILONS:
        forward = float((q * np.maximum(ratio - math.exp(epsilon), 0)).sum())
        backward = float((q * np.maximum(1 - math.exp(epsilon) * ratio, 0)).sum())
        exact = max(forward, backward)
        assert exact * (1 - 1e-5) <= pld.delta(allocation(2, z), epsilon) <= exact * 1.02 + 1e-9


def exact_divergence(mu: float, bins: int, order: int) -> float:
    """The Rényi divergence of P from Q at a whole order: a coefficient of the power of one bin's series."""
    once = [math.exp(mu**2 * k * (k - 1) / 2) / math.factorial(k) for k in range(order + 1)]
    power = [1.0] + [0.0] * order
    for _ in range(bins):
        power = [sum(power[i] * once[k - i] for i in range(k + 1)) for k in range(order + 1)]
    return math.log(power[order] * math.factorial(order) / bins**order) / (order - 1)


@pytest.mark.parametrize(("bins", "z"), [(3, 1.0), (10, 1.0), (37, 2.0), (100, 5.0)])
@pytest.mark.parametrize("order", [2, 3, 5])
def test_moments_at_whole_orders_are_the_exact_ones_from_above(bins: int, z: float, order: int) -> None:
    atoms = moment_atoms(dominating_pair(allocation(bins, z), "add_or_remove"))
    exact = exact_divergence(1 / z, bins, order)
    found = Moments(atoms.forward).log_moment(order - 1) / (order - 1)
    assert exact * (1 - 1e-9) <= found <= exact * 1.02
    assert rdp.curve(allocation(bins, z), np.array([float(order)]))[0] >= exact * (1 - 1e-9)


def test_a_hundred_bins_are_a_simulation_from_above() -> None:
    """Means over 2e5 draws: a sound bound is 6 standard errors below one of 6 of them with a probability of 6e-9."""
    generator = np.random.default_rng(7)
    bins, mu, draws = 100, 0.8, 200_000
    ratio = np.zeros(draws)
    for _ in range(bins):
        ratio += np.exp(mu * generator.standard_normal(draws) - mu**2 / 2) / bins
    event = allocation(bins, 1 / mu)
    for epsilon in (0.0, 0.1, 0.2):
        both = (np.maximum(ratio - math.exp(epsilon), 0), np.maximum(1 - math.exp(epsilon) * ratio, 0))
        errors = [float(values.std()) / math.sqrt(draws) for values in both]
        bound = pld.delta(event, epsilon)
        assert all(bound >= values.mean() - 6 * error for values, error in zip(both, errors, strict=True))
        assert bound <= 1.05 * max(values.mean() + 6 * error for values, error in zip(both, errors, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("bins", "z"), [(10, 1.0), (1000, 0.5), (1000, 1.0), (1000, 4.0)])
def test_a_grid_twice_as_fine_changes_epsilon_by_less_than_a_hundredth(
    bins: int, z: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    coarse = pld.epsilon(allocation(bins, z), 1e-6)
    finer = np.interp(
        np.arange(0, allocation_pair.LOG_TAILS.size - 0.5, 0.5),
        range(allocation_pair.LOG_TAILS.size),
        allocation_pair.LOG_TAILS,
    )
    monkeypatch.setattr(allocation_pair, "LOG_TAILS", finer)
    monkeypatch.setattr(allocation_pair, "mean_ratio", allocation_pair.mean_ratio.__wrapped__)
    assert coarse * 0.99 <= pld.epsilon(allocation(bins, z), 1e-6) <= coarse * 1.001


def test_one_bin_is_no_allocation_and_more_bins_hide_more() -> None:
    assert steps(allocation(1, 2.0)) == {GaussianNoise(noise_multiplier=2.0): 1}
    costs = [pld.epsilon(allocation(bins, 1.0), 1e-6) for bins in (1, 2, 5, 20, 100)]
    assert costs == sorted(costs, reverse=True)


@pytest.mark.parametrize("bins", [20, 200])
def test_several_passes_compose_and_cost_about_what_poisson_sampling_costs(bins: int) -> None:
    passes = Repeated(count=5, event=allocation(bins, 1.0))
    poisson = sampled_gaussian(1.0, 1 / bins, 5 * bins)
    assert pld.epsilon(allocation(bins, 1.0), 1e-5) < pld.epsilon(passes, 1e-5)
    assert 0.8 < pld.epsilon(passes, 1e-5) / pld.epsilon(poisson, 1e-5) < 1.05


def test_masses_and_means_sum_to_one() -> None:
    for side in dominating_pair(allocation(30, 0.7), "zero_out").atoms(np.empty(0)):
        assert np.exp(side.log_masses).sum() == pytest.approx(1, abs=1e-9)
        assert np.exp(side.log_masses - side.losses).sum() == pytest.approx(1, abs=1e-9)


def test_both_accountants_agree_and_blanking_costs_what_removing_costs() -> None:
    found = account(allocation(10, 1.0), 1e-5)
    assert found.certified_by == "pld"
    assert found.accountants["pld"] <= found.accountants["rdp"]
    assert pld.epsilon(allocation(10, 1.0), 1e-5, "zero_out") == found.epsilon


def test_next_to_no_noise_costs_what_it_costs_without_allocation() -> None:
    assert not pld.supports(allocation(10, 0.1), "add_or_remove")
    alone = rdp.epsilon(GaussianNoise(noise_multiplier=0.1), 1e-5)
    assert rdp.epsilon(allocation(10, 0.1), 1e-5) == pytest.approx(alone)


def test_replaced_units_and_groups_are_refused_and_dp_accounting_says_that_it_has_no_such_event() -> None:
    for compute in (pld.epsilon, rdp.epsilon):
        with pytest.raises(Unsupported, match="not for replacing"):
            compute(allocation(10, 1.0), 1e-5, "replace")
    with pytest.raises(Unsupported, match="random allocation"):
        groups.group_event(allocation(10, 1.0), 3)
    assert "no random allocation" in second_engine.epsilon(allocation(10, 1.0), 1e-5).reason
