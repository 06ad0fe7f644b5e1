"""Fu et al.'s own numbers, as printed and corrected: what the planner's formulas give for its settings."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from scipy import optimize

from discreet.planning.theory import fu_best_iterations
from discreet.planning.theory.fu_client_noise import ClientNoise, update_sensitivity
from discreet.planning.theory.fu_convergence import SYNTHETIC_CONSTANTS, Setting

EPSILONS = (1.0, 3.0, 5.0, 10.0, 20.0, 30.0)
TURNS = 5  # T_l of the paper's FEMNIST runs
LONG = 1e5  # T at which Theorems 4 and 5 are looked at


@dataclass(frozen=True)
class PaperSetting:
    """A setting of the paper; C_M takes nothing of the constants."""

    name: str
    noise: ClientNoise
    clients: int
    cohort: int
    parameters: int
    clip_norm: float
    total: int

    @property
    def setting(self) -> Setting:
        return Setting(
            noise=self.noise,
            clients=self.clients,
            cohort=self.cohort,
            parameters=self.parameters,
            clip_norm=self.clip_norm,
            constants=SYNTHETIC_CONSTANTS,
        )


LENDING_CLUB = PaperSetting("Lending Club", ClientNoise(kind="laplace", epsilon=3.0), 5000, 500, 11, 150.0, 120)
FEMNIST = PaperSetting("FEMNIST", ClientNoise(kind="gaussian", epsilon=10.0), 3500, 350, 214_590, 3.0, 240)


def sections() -> Iterator[str]:
    yield from _c2()
    yield from _rules()
    yield from _constants()
    yield from _sensitivities()


def _c2() -> Iterator[str]:
    yield "### c_2 of Theorem 2, which the paper does not state, at δ = 1e-4\n"
    yield f"| ε | c_2 by exact composition | noise multiplier for T_l = {TURNS} | what that noise certifies |"
    yield "|---:|---:|---:|---:|"
    for epsilon in EPSILONS:
        noise = ClientNoise(kind="gaussian", epsilon=epsilon)
        true = noise.certified_epsilon(TURNS)
        yield f"| {epsilon:g} | {noise.c2:.3f} | {noise.multiplier(TURNS):.3f} | ε = {true:.2f} |"
    yield ""
    yield "The last column counts that two updates of norm Ξ may be 2Ξ apart. With Laplace noise it is twice the ε."
    yield ""


def _rules() -> Iterator[str]:
    yield f"### Theorems 4 and 5 at T = {LONG:,.0f}, with every constant 1\n"
    yield "| z | E as printed | Y_T there | E that is best | Y_T there |"
    yield "|---:|---:|---:|---:|---:|"
    for z in (0.5, 1.0, 2.0):
        printed = LONG ** fu_best_iterations.asymptotic_rule(z).printed_local
        true = _minimiser(z)
        there = [f"{at:.0f} | {fu_best_iterations.asymptotic_error(round(at), LONG, z):.4f}" for at in (printed, true)]
        yield f"| {z:g} | {there[0]} | {there[1]} |"
    yield ""
    yield "For z < 1 the proof of Theorem 4 sets a sum of positive terms to 0; at z = 1 Theorem 5 advises √T. E = 1 is"
    yield "best in both. For z > 1 the exponent is right, and the constant is ((z−1)/2)^(1/(z+1))."
    yield ""


def _minimiser(z: float) -> float:
    """By search, not by formula."""
    found = optimize.minimize_scalar(
        lambda log: fu_best_iterations.asymptotic_error(math.exp(log), LONG, z),
        bounds=(0, math.log(LONG)),
        method="bounded",
    )
    inside = math.exp(float(found.x))
    return (
        1.0
        if fu_best_iterations.asymptotic_error(1, LONG, z) <= fu_best_iterations.asymptotic_error(inside, LONG, z)
        else inside
    )


def _constants() -> Iterator[str]:
    yield "### C_M of Theorem 3, and the E that whole T_l allow\n"
    yield "| | C_M as printed | corrected | T | E with whole T_l |"
    yield "|---|---:|---:|---:|---|"
    for each in (LENDING_CLUB, FEMNIST):
        printed, corrected = (each.setting.noise_constant(form) for form in ("printed", "corrected"))
        allowed = ", ".join(map(str, fu_best_iterations.allowed_local_iterations(each.setting, each.total)))
        named = f"{each.name}, {each.noise.kind}, ε = {each.noise.epsilon:g}"
        yield f"| {named} | {printed:.4g} | {corrected:.4g} | {each.total} | {allowed} |"
    yield ""
    yield "Corrected, two clipped gradients may be 2ζ apart (four times C_M), and the Gaussian variance has no factor 2"
    yield "(half of it). The largest E of each row is b·T/N, where every client uploads once: the paper's E* = 24 on"
    yield "FEMNIST at ε = 10 is that."
    yield ""


def _sensitivities() -> Iterator[str]:
    rate, local, clip, examples = 0.1, 5, 3.0, 200
    found = update_sensitivity(rate, local, clip, examples)
    yield f"### How far apart two updates are: η = {rate}, E = {local}, ζ = {clip:g}, n_l = {examples}\n"
    yield "| as printed, ηEζ | true, 2ηEζ | with every example's gradient clipped, 2ηζ(1/n_l + E − 1) |"
    yield "|---:|---:|---:|"
    yield f"| {found.printed_distance:.4g} | {found.true_distance:.4g} | {found.example_distance:.4g} |"
    yield ""
