"""Theorem 3 of Fu et al. 2021: its terms by hand, and its bound against the recursion of its proof."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidInput
from discreet.planning.theory.fu_client_noise import ClientNoise, Form
from discreet.planning.theory.fu_convergence import (
    Constants,
    Setting,
    convergence_bound,
    noise_growth,
    unmet_assumptions,
)

KNOWN = Constants(convexity=2.0, smoothness=4.0, gradient_bound=5.0, heterogeneity=0.5, start=9.0)
LENDING_CLUB = Setting(
    noise=ClientNoise(kind="laplace", epsilon=3.0),
    clients=5000,
    cohort=500,
    parameters=11,
    clip_norm=150.0,
    constants=KNOWN,
)
FEMNIST = Setting(
    noise=ClientNoise(kind="gaussian", epsilon=10.0),
    clients=3500,
    cohort=350,
    parameters=214_590,
    clip_norm=3.0,
    constants=KNOWN,
)

settings = st.builds(
    lambda convexity, condition, bound, gamma, start, clients, share, kind, epsilon: Setting(
        noise=ClientNoise(kind=kind, epsilon=epsilon),
        clients=clients,
        cohort=max(1, round(share * clients)),
        parameters=5,
        clip_norm=bound,
        constants=Constants(
            convexity=convexity,
            smoothness=convexity * condition,
            gradient_bound=bound,
            heterogeneity=gamma,
            start=start,
        ),
    ),
    st.floats(0.1, 10),
    st.floats(1, 20),
    st.floats(0.1, 50),
    st.floats(0, 20),
    st.floats(0, 100),
    st.integers(1, 60),
    st.floats(0.1, 1),
    st.sampled_from(["laplace", "gaussian"]),
    st.floats(0.5, 50),
)


def test_the_terms_of_the_theorem_by_hand() -> None:
    """μ = 2, λ = 4, G = 5, Γ = 1/2, E = 3: ω_0 = 12 + 8·4·25 + 36·25·4500/(4999·500), γ = 16."""
    sampled = 4500 / (4999 * 500)
    assert LENDING_CLUB.gamma(3) == 16
    assert LENDING_CLUB.gamma(20) == 20
    assert LENDING_CLUB.omega0(3) == pytest.approx(12 + 800 + 900 * sampled)
    assert LENDING_CLUB.drift() == pytest.approx(25 * (8 + 4 * sampled))


def test_c_m_of_both_mechanisms_as_printed_and_corrected() -> None:
    """Printed: 8pb·ζ²/(N²ε²) and 8p·c_2²·log(1/δ)·ζ²/(Nε²). Corrected ξ is 2ζ, and the Gaussian 8 is 4."""
    laplace = 8 * 11 * 500 * 150**2 / (5000**2 * 9)
    assert LENDING_CLUB.noise_constant("printed") == pytest.approx(laplace)
    assert LENDING_CLUB.noise_constant() == pytest.approx(4 * laplace)
    c2 = FEMNIST.noise.c2
    assert c2 is not None
    gaussian = 8 * 214_590 * c2**2 * math.log(1e4) * 9 / (3500 * 100)
    assert FEMNIST.noise_constant("printed") == pytest.approx(gaussian)
    assert FEMNIST.noise_constant() == pytest.approx(2 * gaussian)


@pytest.mark.parametrize("form", ["printed", "corrected"])
def test_the_bound_is_its_three_terms(form: Form) -> None:
    """T = 120, E = 12, so T_g = 10, T_l = 1 and γ = 16."""
    found = convergence_bound(LENDING_CLUB, 120, 12, form=form)
    omega1 = LENDING_CLUB.noise_constant(form) * 144 * 10**2
    assert LENDING_CLUB.omega1(10, 12, form) == pytest.approx(omega1)
    assert found.start == pytest.approx(16 * 9 / 136)
    assert found.descent == pytest.approx(LENDING_CLUB.omega0(12) / 136)
    assert found.noise == pytest.approx(10 * omega1 / 135**2)
    assert found.total == pytest.approx(sum(found[:3]))


def test_a_client_pays_for_a_turn_even_where_t_l_is_less_than_whole() -> None:
    """Fifteen rounds with a tenth of the clients each: some have two turns, and noise for two."""
    assert LENDING_CLUB.turns(15) == 2
    assert LENDING_CLUB.omega1(15, 1) == pytest.approx(LENDING_CLUB.omega1(20, 1))
    assert LENDING_CLUB.omega1(15, 1, "printed") < LENDING_CLUB.omega1(20, 1, "printed")


@given(settings, st.integers(1, 30), st.integers(1, 10), st.sampled_from(["printed", "corrected"]))
def test_the_bound_is_never_below_the_recursion_that_it_is_proven_from(
    setting: Setting, local: int, rounds: int, form: Form
) -> None:
    """Y_{k+1} = (1 − μη_k)·Y_k + η_k²·ω_0, and η_k²·ω_1 more with each upload (Fu et al. 2021, Appendix F)."""
    total, convexity = local * rounds, setting.constants.convexity
    omega0, omega1 = setting.omega0(local), setting.omega1(rounds, local, form)
    error = setting.constants.start
    for k in range(total):
        rate = 2 / convexity / (k + setting.gamma(local))
        error = (1 - convexity * rate) * error + rate**2 * (omega0 + (omega1 if (k + 1) % local == 0 else 0))
        assert error <= convergence_bound(setting, total, local, after=k + 1, form=form).total * (1 + 1e-12)


@given(settings, st.integers(1, 20), st.integers(1, 10))
def test_twice_the_epsilon_is_a_quarter_of_the_noise_with_laplace_noise(
    setting: Setting, local: int, rounds: int
) -> None:
    louder, quieter = (
        convergence_bound(
            Setting(**{**vars(setting), "noise": ClientNoise(kind="laplace", epsilon=epsilon)}), local * rounds, local
        )
        for epsilon in (1.0, 2.0)
    )
    assert quieter.noise == pytest.approx(louder.noise / 4)
    assert quieter[:2] == louder[:2]


def test_the_noise_term_levels_off_with_gaussian_noise_and_doubles_with_laplace_noise() -> None:
    """T²/(T + 24)² from T = 200 to 400 at γ = 25 is 4·(224/424)²; with T³ it is twice that."""
    grown = noise_growth(400, 1, 25) / noise_growth(200, 1, 25)
    assert 2 * grown == pytest.approx(4 * (224 / 424) ** 2)
    assert 4 * grown == pytest.approx(8 * (224 / 424) ** 2)


def test_it_is_proven_only_where_everyone_joins_and_the_clip_never_acts() -> None:
    quiet = ClientNoise(kind="laplace", epsilon=1000.0)
    everyone = Setting(**{**vars(LENDING_CLUB), "cohort": 5000, "noise": quiet})  # √11·5 = 16.6 is below 150
    assert convergence_bound(everyone, 120, 12)[3:] == (True, "")
    assert "take turns" in unmet_assumptions(LENDING_CLUB, 10, 12)
    tight = Setting(**{**vars(everyone), "clip_norm": 10.0})
    assert "may cut gradients, whose L1 norm can be 16.58" in unmet_assumptions(tight, 10, 12)
    assert "3 cuts gradients, whose L2 norm can be 5" in unmet_assumptions(FEMNIST, 10, 24)
    assert convergence_bound(FEMNIST, 240, 24).valid is False


def test_it_is_not_proven_where_its_own_noise_makes_gradients_longer_than_g() -> None:
    """By hand: Ξ = η̃·E·2ζ = (2/32)·12·300 = 225, m = 10/3, E‖w‖² = 225²·2·11·m²/5000; its root, times μ, is 99.5."""
    everyone = Setting(**{**vars(LENDING_CLUB), "cohort": 5000})
    by_hand = 2 * 225 * math.sqrt(2 * 11 * (10 / 3) ** 2 / 5000)
    assert everyone.noise_gradient(10, 12) == pytest.approx(by_hand)
    assert everyone.noise_gradient(10, 12, "printed") == pytest.approx(by_hand / 2)
    found = convergence_bound(everyone, 120, 12)
    assert found.valid is False
    assert "gradients of at least 99.5, in the root of the mean square, and G is 5" in found.reason
    assert convergence_bound(everyone, 120, 120)[3:] == (True, "")  # no gradient is taken after the only upload


@given(settings, st.integers(1, 8), st.integers(2, 30))
def test_a_gradient_that_noise_makes_is_what_the_flattest_loss_has_of_the_first_upload(
    setting: Setting, local: int, rounds: int
) -> None:
    """f_l(θ) = μ/2·‖θ − θ_l*‖², at its own best: E‖∇f_l(θ_l* + w)‖² = μ²·E‖w‖², Ξ = η̃·E·2ζ, η̃ = (2/μ)/γ."""
    moved = 2 / setting.constants.convexity / setting.gamma(local) * local * 2 * setting.clip_norm
    energy = moved**2 * setting.noise.energy(setting.turns(rounds), setting.cohort, setting.parameters)
    met = setting.constants.convexity * math.sqrt(energy)
    assert setting.noise_gradient(rounds, local) == pytest.approx(met, rel=1e-3)  # as multipliers are found


def test_what_can_not_be_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at least convexity, and got 1 and 2"):
        Constants(convexity=2.0, smoothness=1.0, gradient_bound=1.0, heterogeneity=0.0, start=0.0)
    for name, value in (("gradient_bound", 1e200), ("gradient_bound", 1e-200), ("convexity", 1e-300), ("start", 1e300)):
        with pytest.raises(InvalidInput, match=f"{name}: must be (between 1e-6 and|at least 0 and at most) 1e12"):
            Constants(**{**vars(KNOWN), name: value})
    with pytest.raises(InvalidInput, match="clip_norm: must be between 1e-6 and 1e12"):
        Setting(**{**vars(LENDING_CLUB), "clip_norm": 1e200})
    with pytest.raises(InvalidInput, match="at most all 5,000 clients, and got 5,001"):
        Setting(**{**vars(LENDING_CLUB), "cohort": 5001})
    with pytest.raises(InvalidInput, match="must be 1 to 10, the number in all, and got 11"):
        convergence_bound(LENDING_CLUB, 10, 11)
