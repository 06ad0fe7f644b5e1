"""How far DP-FedAvg ends from the best model: paper 003's Theorem 3, as it is printed and corrected."""

import math
from typing import NamedTuple

from discreet.errors import InvalidInput
from discreet.part import Count, Moderate, Multiplier, part
from discreet.planning.theory.fu_client_noise import ClientNoise, Form


@part
class Constants:
    """What Theorem 3 takes as known of the clients' losses f_l; `planning/pilot.py` estimates them.

    Its proof needs μ and λ of every client's own loss, and G of every gradient that is met, noise and all.
    """

    convexity: Multiplier  # μ
    smoothness: Multiplier  # λ
    gradient_bound: Multiplier  # G: E‖∇f_l(θ)‖² ≤ G², in L2
    heterogeneity: Moderate  # Γ = f* − Σ(n_l/n)·f_l*
    start: Moderate  # Y_0 = ‖θ_0 − θ*‖²

    def __post_init__(self) -> None:
        if not self.smoothness >= self.convexity:
            raise InvalidInput(
                f"A loss can't be flatter than it is convex: smoothness must be at least convexity, and got "
                f"{self.smoothness:g} and {self.convexity:g}."
            )


# What the pilot makes of synthetic clients like paper 003's: 5000 of 80 examples, 11 parameters. A test holds it.
SYNTHETIC_CONSTANTS = Constants(
    convexity=0.5441, smoothness=4.915, gradient_bound=52.17, heterogeneity=16.03, start=169.7
)


@part
class Setting:
    """N clients of as many examples each, of whom b take turns; p parameters; gradients clipped to ζ = `clip_norm`.

    ζ is in L1 with Laplace noise and in L2 with Gaussian noise.
    """

    noise: ClientNoise
    clients: Count
    cohort: Count
    parameters: Count
    clip_norm: Multiplier
    constants: Constants

    def __post_init__(self) -> None:
        if self.cohort > self.clients:
            raise InvalidInput(
                f"A cohort must be at most all {self.clients:,} clients, and got {self.cohort:,}.",
                fix="Lower the cohort, or bring more clients.",
            )

    @property
    def cycle(self) -> int:
        """The fewest rounds in which every client has its turn equally often: N/gcd(N, b)."""
        return self.clients // math.gcd(self.clients, self.cohort)

    def turns(self, rounds: int) -> int:
        """T_l = b·T_g/N: how often a client uploads; the one that does most often, where it isn't whole."""
        return -(-rounds * self.cohort // self.clients)

    def sensitivity(self, form: Form) -> float:
        """ξ: how far apart two clipped gradients can lie. Printed it is ζ, their norm; true is 2ζ."""
        return self.clip_norm if form == "printed" else 2 * self.clip_norm

    @property
    def least_gamma(self) -> float:
        """8λ/μ: γ, and so the learning rate, is the same for every E up to it."""
        return 8 * self.constants.smoothness / self.constants.convexity

    def gamma(self, local: int) -> float:
        """γ = max(8λ/μ, E) (paper 003, Theorem 3), of the learning rate η_k = (2/μ)/(k + γ)."""
        return max(self.least_gamma, float(local))

    def drift(self) -> float:
        """κ = 8G² + 4G²·(N−b)/((N−1)b): what ω_0 is a multiple of for large E, κE²."""
        return (8 + 4 * self._sampled()) * self.constants.gradient_bound**2

    def omega0(self, local: int) -> float:
        """ω_0 = 6λΓ + 8(E−1)²G² + 4E²G²·(N−b)/((N−1)b) (paper 003, Theorem 3)."""
        known = self.constants
        walked = 8 * (local - 1) ** 2 + 4 * local**2 * self._sampled()
        return 6 * known.smoothness * known.heterogeneity + walked * known.gradient_bound**2

    def noise_constant(self, form: Form = "corrected") -> float:
        """C_M, of ω_1 = C_M·E²·T_g^z (paper 003, Theorem 3): four times the noise's energy, since η̃_t ≤ 2η_k.

        Laplace, z = 2: 8pb·ξ²/(N²ε²). Gaussian, z = 1: 4p·c_2²·log(1/δ)·ξ²/(Nε²), printed with 8 for 4. Printed, ξ is
        half of what it has to be: see `sensitivity`.
        """
        once = self.noise.energy(1, self.cohort, self.parameters, form)
        return 4 * self.sensitivity(form) ** 2 * once * (self.cohort / self.clients) ** self.noise.z

    def omega1(self, rounds: int, local: int, form: Form = "corrected") -> float:
        """ω_1 = C_M·E²·T_g^z (paper 003, Theorem 3); corrected, with the whole T_l that a client pays for."""
        whole = self.turns(rounds) * self.clients / self.cohort
        return self.noise_constant(form) * local**2 * (rounds if form == "printed" else whole) ** self.noise.z

    def noise_gradient(self, rounds: int, local: int, form: Form = "corrected") -> float:
        """μ·√E‖w‖² = √ω_1/γ, of the first round's noise w: its rate is η̃ = 2/(μγ), and E‖w‖² = η̃²·ω_1/4.

        Gradients after it are no less in the mean square, whoever's they are: w is independent of what went before and
        has a mean of 0, so E‖∇f_l(θ + w)‖² ≥ μ²·E‖θ + w − θ_l*‖² ≥ μ²·E‖w‖².
        """
        return math.sqrt(self.omega1(rounds, local, form)) / self.gamma(local)

    def _sampled(self) -> float:
        """(N−b)/((N−1)b) of Lemma 2: nothing where everyone joins."""
        return (self.clients - self.cohort) / (max(self.clients - 1, 1) * self.cohort)


class ConvergenceBound(NamedTuple):
    """What Y_k = E‖θ_k − θ*‖² is at most, in three terms; `reason` says what keeps it from being proven."""

    start: float
    descent: float
    noise: float
    valid: bool
    reason: str

    @property
    def total(self) -> float:
        return self.start + self.descent + self.noise


def convergence_bound(
    setting: Setting, total: int, local: int, after: int | None = None, form: Form = "corrected"
) -> ConvergenceBound:
    """Y_k ≤ [(4/μ²)ω_0 + γY_0]/(k+γ) + (4/μ²)·t·ω_1/(k+γ−1)², t = ⌊k/E⌋ (paper 003, Theorem 3).

    After k of T = `total` local iterations, E = `local` of them between two uploads; all of them by default. Noise is
    planned for all T. Wrong in the paper: Lemma 1, on which the proof rests, draws cohorts at random, and they take
    turns; and nothing in it knows of the clip.
    """
    if not 1 <= local <= total:
        raise InvalidInput(
            f"Local iterations between two uploads must be 1 to {total:,}, all there are; got {local:,}."
        )
    k = total if after is None else after
    known, gamma, rounds = setting.constants, setting.gamma(local), -(-total // local)
    scale = 4 / known.convexity**2
    reason = unmet_assumptions(setting, rounds, local, form)
    return ConvergenceBound(
        start=gamma * known.start / (k + gamma),
        descent=scale * setting.omega0(local) / (k + gamma),
        noise=scale * noise_growth(k, local, gamma) * setting.omega1(rounds, local, form),
        valid=not reason,
        reason=reason,
    )


def noise_growth(k: int, local: int, gamma: float) -> float:
    """t/(k+γ−1)², t = ⌊k/E⌋: what Theorem 3's noise term has beside (4/μ²)ω_1 (paper 003)."""
    return (k // local) / (k + gamma - 1) ** 2


def unmet_assumptions(setting: Setting, rounds: int, local: int, form: Form = "corrected") -> str:
    """Why Theorem 3 isn't proven in this setting; nothing where it is, as long as gradients keep to G."""
    laplace, largest = setting.noise.kind == "laplace", setting.constants.gradient_bound
    most = largest * math.sqrt(setting.parameters) if laplace else largest  # ‖g‖_1 ≤ √p·‖g‖_2
    said = []
    if setting.clip_norm < most:
        certainly = setting.clip_norm < largest
        said.append(
            f"the clip of {setting.clip_norm:g} {'cuts' if certainly else 'may cut'} gradients, whose "
            f"{'L1' if laplace else 'L2'} norm can be {most:.4g}, and the proof knows no clip"
        )
    if rounds > 1 and (met := setting.noise_gradient(rounds, local, form)) > largest:  # the last noise meets none
        said.append(
            f"a round's noise alone makes gradients of at least {met:.4g}, in the root of the mean square, and G is "
            f"{largest:.4g}"
        )
    if setting.cohort < setting.clients:
        said.append("cohorts take turns, and the proof draws them at random")
    return "; ".join(said)
