"""E* and T* of Fu et al. 2021: formulas against numerical minima, where whole turns leave a choice, and errors."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from discreet.errors import InvalidInput
from discreet.planning.theory import fu_best_iterations
from discreet.planning.theory.fu_client_noise import ClientNoise, Form
from discreet.planning.theory.fu_convergence import Constants, Setting, convergence_bound
from tests.planning.theory.test_fu_convergence import FEMNIST, LENDING_CLUB, settings


def test_theorem_4_is_wrong_and_one_local_iteration_is_best_for_z_below_1() -> None:
    """z = 1/2, T = 1e5: E = T^(1/3) = 46 is 13 times worse than E = 1."""
    advised = 1e5 ** fu_best_iterations.asymptotic_rule(0.5).printed_local
    assert round(advised) == 46
    assert fu_best_iterations.asymptotic_error(1, 1e5, 0.5) == pytest.approx(0.0032, abs=5e-5)
    assert fu_best_iterations.asymptotic_error(46, 1e5, 0.5) == pytest.approx(0.0426, abs=5e-5)
    assert fu_best_iterations.asymptotic_rule(0.5).local == 0


@given(st.floats(0, 1), st.floats(2, 1e6), st.floats(1, 1e4))
def test_up_to_z_of_1_nothing_is_better_than_one_local_iteration(z: float, total: float, local: float) -> None:
    assert fu_best_iterations.asymptotic_error(1, total, z) <= fu_best_iterations.asymptotic_error(local, total, z) * (
        1 + 1e-12
    )


def test_at_z_of_1_theorem_5_advises_the_root_of_t_and_its_own_model_says_1() -> None:
    found = fu_best_iterations.asymptotic_rule(1.0)
    assert (found.printed_local, found.local, found.rate) == (0.5, 0.0, 0.0)
    assert fu_best_iterations.asymptotic_error(math.sqrt(1e5), 1e5, 1.0) == pytest.approx(2.0)
    assert fu_best_iterations.asymptotic_error(1, 1e5, 1.0) == pytest.approx(1.0, abs=2e-5)


def test_for_z_of_2_theorem_5_is_right_up_to_a_constant() -> None:
    """z = 2, T = 1e5: it advises 2154, and 1710 = 2154/2^(1/3) minimises."""
    assert round(1e5 ** fu_best_iterations.asymptotic_rule(2.0).printed_local) == 2154
    least = optimize.minimize_scalar(
        lambda local: fu_best_iterations.asymptotic_error(local, 1e5, 2.0), bounds=(1, 1e5), method="bounded"
    )
    assert least.x == pytest.approx(1710, abs=1)
    assert fu_best_iterations.asymptotic_rule(2.0).local == pytest.approx(2 / 3)


@given(st.floats(1, 1e3), st.floats(0.1, 10), st.floats(1e3, 1e6))
def test_the_explicit_best_e_minimises_what_theorem_3_is_for_long_runs(
    largest: float, epsilon: float, total: float
) -> None:
    known = Constants(convexity=1.0, smoothness=1.0, gradient_bound=largest, heterogeneity=0.0, start=0.0)
    noise = ClientNoise(kind="laplace", epsilon=epsilon)
    setting = Setting(noise=noise, clients=1, cohort=1, parameters=9, clip_norm=largest, constants=known)

    def long(local: float) -> float:
        return setting.drift() * local**2 / total + setting.noise_constant() * total / local

    at = fu_best_iterations.explicit_best_local(setting, int(total)).value
    assert long(at) <= min(long(at * 0.99), long(at * 1.01))


def test_the_explicit_best_e_says_where_it_does_not_hold() -> None:
    assert fu_best_iterations.explicit_best_local(FEMNIST, 240) == (1.0, True, "")
    # κ = 200.18, C_M = 17.6: (17.6·120²/400.36)^(1/3) = 8.59, and T = 120 is less than ten times γ = 16
    found = fu_best_iterations.explicit_best_local(LENDING_CLUB, 120)
    assert found.value == pytest.approx(8.586, abs=1e-3)
    assert (found.valid, found.reason) == (False, "for T well over γ = 16, and T is 120")
    assert fu_best_iterations.explicit_best_local(LENDING_CLUB, 5000).valid is True
    assert "1 to b·T/N = 2" in fu_best_iterations.explicit_best_local(LENDING_CLUB, 20).reason
    assert fu_best_iterations.printed_best_local(LENDING_CLUB, 120)[:2] == (pytest.approx(120 ** (2 / 3)), False)


def test_whole_turns_leave_the_e_that_the_papers_figures_sweep() -> None:
    assert fu_best_iterations.allowed_local_iterations(LENDING_CLUB, 120) == [1, 2, 3, 4, 6, 12]
    assert fu_best_iterations.allowed_local_iterations(FEMNIST, 240) == [1, 2, 3, 4, 6, 8, 12, 24]
    odd = Setting(**{**vars(LENDING_CLUB), "clients": 9, "cohort": 6})  # three rounds are two turns for each of nine
    assert (odd.cycle, fu_best_iterations.allowed_local_iterations(odd, 18)) == (3, [1, 2, 3, 6])


def test_an_e_at_the_edge_is_said_to_be_one() -> None:
    """Fu et al.'s E* = 24 at T = 240 is b·T/N: there each client uploads once."""
    few = Constants(convexity=2.0, smoothness=2.0, gradient_bound=1e-3, heterogeneity=0.0, start=0.0)
    found = fu_best_iterations.best_local(Setting(**{**vars(LENDING_CLUB), "constants": few}), 240)
    assert (found.value, found.valid) == (24, True)
    assert "every client uploads as rarely as possible" in found.reason


def test_an_e_above_gammas_least_is_said_to_be_its_learning_rates_doing() -> None:
    """μ = λ = 1, so 8λ/μ = 8. At z = 1 noise is (4/μ²)·C_M·T²/(T + γ − 1)²: E is in it only as γ, from 8 on."""
    alike = Constants(convexity=1.0, smoothness=1.0, gradient_bound=1.0, heterogeneity=0.0, start=0.0)
    noise = ClientNoise(kind="gaussian", epsilon=1.0)
    setting = Setting(noise=noise, clients=100, cohort=100, parameters=650, clip_norm=1.0, constants=alike)
    found = fu_best_iterations.best_local(setting, 1000)
    assert found.value == 125
    assert "above 8λ/μ = 8 the bound falls because its learning rate does" in found.reason
    noises = {local: convergence_bound(setting, 1000, local).noise for local in (1, 2, 4, 5, 8, 10, 125)}
    assert len({round(noises[local], 6) for local in (1, 2, 4, 5, 8)}) == 1
    assert noises[125] / noises[8] == pytest.approx((1007 / 1124) ** 2)  # (T + γ − 1)², and nothing else
    assert fu_best_iterations.best_local(setting, 1000, most=setting.least_gamma) == (1, True, "")


@given(settings, st.integers(1, 40), st.sampled_from(["printed", "corrected"]))
def test_no_other_whole_e_has_a_smaller_bound(setting: Setting, cycles: int, form: Form) -> None:
    total = setting.cycle * cycles
    found = fu_best_iterations.best_local(setting, total, form).value
    least = min(
        convergence_bound(setting, total, local, form=form).total
        for local in fu_best_iterations.allowed_local_iterations(setting, total)
    )
    assert convergence_bound(setting, total, int(found), form=form).total == least


@given(settings, st.integers(1, 10))
def test_no_other_whole_t_has_a_smaller_bound(setting: Setting, local: int) -> None:
    found, step = fu_best_iterations.best_total(setting, local).value, setting.cycle * local

    def bound_for(cycles: int) -> float:
        return convergence_bound(setting, cycles * step, local).total

    if math.isinf(found):
        assert setting.noise.z == 1
        assert all(bound_for(2 * n) <= bound_for(n) * (1 + 1e-12) for n in (1, 7, 100, 10_000, 10**7))
    else:
        best = round(found / step)
        others = {*range(1, 30), *(max(1, best + n) for n in (-2, -1, 1, 2)), 2 * best, 10 * best, 1000 * best}
        assert all(bound_for(best) <= bound_for(n) * (1 + 1e-12) for n in others)


@given(settings, st.integers(1, 5))
def test_the_explicit_best_t_is_the_whole_one_where_t_is_well_over_gamma(setting: Setting, local: int) -> None:
    explicit = fu_best_iterations.explicit_best_total(setting, local)
    if explicit.valid and math.isfinite(explicit.value):
        step = setting.cycle * local
        assert fu_best_iterations.best_total(setting, local).value == pytest.approx(explicit.value, rel=0.35, abs=step)


def test_the_explicit_best_t_grows_as_epsilon_does() -> None:
    """Laplace: √(E·A/C_M), and C_M has ε² below. By hand, E = 1: A = 12 + 25·4·0.0018 + 16·9."""
    found = fu_best_iterations.explicit_best_total(LENDING_CLUB, 1).value
    gained = 12 + 100 * 4500 / (4999 * 500) + 16 * 9
    assert found == pytest.approx(math.sqrt(gained / LENDING_CLUB.noise_constant()))
    noise = ClientNoise(kind="laplace", epsilon=6.0)
    assert fu_best_iterations.explicit_best_total(
        Setting(**{**vars(LENDING_CLUB), "noise": noise}), 1
    ).value == pytest.approx(2 * found)
    assert math.isinf(fu_best_iterations.explicit_best_total(FEMNIST, 5).value)


def test_gaussian_noise_has_a_finite_best_t_too_where_it_outweighs_what_is_learned() -> None:
    """A ≥ 2B(γ − 1) decides, and Fu et al.'s FEMNIST has noise of 214,590 coordinates."""
    quiet = Setting(**{**vars(FEMNIST), "parameters": 1})
    assert math.isinf(fu_best_iterations.best_total(quiet, 5).value)
    assert fu_best_iterations.best_total(FEMNIST, 5) == (50, True, "the shortest in which every client joins")


def test_gaussian_noise_levels_off_and_laplace_noise_diverges() -> None:
    levels, diverges = fu_best_iterations.long_run(FEMNIST), fu_best_iterations.long_run(LENDING_CLUB)
    assert (levels.verdict, levels.limit) == ("levels off", pytest.approx(FEMNIST.noise_constant()))
    assert (diverges.verdict, diverges.limit) == ("diverges", math.inf)
    assert convergence_bound(FEMNIST, 10**9, 1).total == pytest.approx(levels.limit, rel=1e-6)
    assert convergence_bound(FEMNIST, 24 * 10**9, 24).total == pytest.approx(levels.limit, rel=1e-6)


def test_a_t_that_gives_clients_unequal_turns_is_refused_with_those_next_to_it() -> None:
    with pytest.raises(InvalidInput, match=r"multiple of 10, and got 125\. Use 120 or 130\."):
        fu_best_iterations.allowed_local_iterations(LENDING_CLUB, 125)
    with pytest.raises(InvalidInput, match=r"got 7\. Use 10\."):
        fu_best_iterations.best_local(LENDING_CLUB, 7)


def test_a_row_is_the_bound_in_both_forms_and_without_noise() -> None:
    found = fu_best_iterations.bound_row(LENDING_CLUB, 120, 12)
    assert (found.rounds, found.turns) == (10, 1)
    assert found.bounds["corrected"] == convergence_bound(LENDING_CLUB, 120, 12)
    assert found.bounds["printed"] == convergence_bound(LENDING_CLUB, 120, 12, form="printed")
    assert found.without_noise == pytest.approx(found.bounds["printed"].total - found.bounds["printed"].noise)
    assert [each.local for each in fu_best_iterations.sweep_local(LENDING_CLUB, 120)] == [1, 2, 3, 4, 6, 12]


def test_a_sweep_over_t_has_the_shortest_those_asked_for_and_longer_ones() -> None:
    totals = [each.total for each in fu_best_iterations.sweep_total(LENDING_CLUB, 2, 120, 40, math.inf)]
    assert {20, 40, 120, 480} <= set(totals)
    assert totals == sorted(set(totals))
    assert all(total % 20 == 0 for total in totals)  # ten rounds of two iterations give everyone a turn
    assert [each.total for each in fu_best_iterations.sweep_total(LENDING_CLUB, 1, math.inf)] == [10, 20, 30, 40]
