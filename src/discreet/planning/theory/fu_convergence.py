"""Fu et al. 2021: how far DP-FedAvg ends from the best model; Theorem 3, as printed and corrected.

What is proved: a bound on E‖θ_k − θ*‖² for strongly convex losses, without a clip and with cohorts drawn at random.
What is wrong: the algorithm's cohorts take turns, the clip is ignored, G is taken to bound gradients that noise makes
larger, and the noise constant rests on half of the true sensitivity. What we use: the corrected noise constant, and a
reason beside each bound that is not proven in its setting (`unmet_assumptions`).
"""

import math
from typing import NamedTuple

from discreet.errors import InvalidInput
from discreet.part import Count, Moderate, Multiplier, part
from discreet.planning.theory.fu_client_noise import ClientNoise, Form


@part
class Constants:
    """What Theorem 3 assumes to be known about the clients' losses f_l; `planning/pilot.py` estimates it.

    The proof needs μ and λ of every client's own loss, and G for every gradient of the noisy training.

    Attributes:
        convexity: μ.
        smoothness: λ.
        gradient_bound: G, with E‖∇f_l(θ)‖² ≤ G² in L2.
        heterogeneity: Γ = f* − Σ(n_l/n)·f_l*.
        start: Y_0 = ‖θ_0 − θ*‖².
    """

    convexity: Multiplier
    smoothness: Multiplier
    gradient_bound: Multiplier
    heterogeneity: Moderate
    start: Moderate

    def __post_init__(self) -> None:
        if not self.smoothness >= self.convexity:
            raise InvalidInput(
                f"A loss can't be flatter than it is convex: smoothness must be at least convexity, and got "
                f"{self.smoothness:g} and {self.convexity:g}."
            )


# What the pilot measures on synthetic clients like the paper's: 5000 with 80 examples and 11 parameters each. A test
# compares it.
SYNTHETIC_CONSTANTS = Constants(
    convexity=0.5441, smoothness=4.915, gradient_bound=52.17, heterogeneity=16.03, start=169.7
)


@part
class Setting:
    """N clients with equally many examples, b of which join each round in turn; p parameters.

    Gradients are clipped to ζ = `clip_norm`, in L1 with Laplace noise and in L2 with Gaussian noise.
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
                fix="Lower the cohort, or use more clients.",
            )

    @property
    def cycle(self) -> int:
        """The fewest rounds in which all clients join equally often: N/gcd(N, b)."""
        return self.clients // math.gcd(self.clients, self.cohort)

    def turns(self, rounds: int) -> int:
        """Return T_l = b·T_g/N: how often a client uploads; rounded up for the client that uploads most often."""
        return -(-rounds * self.cohort // self.clients)

    def sensitivity(self, form: Form) -> float:
        """Return ξ: how far apart two clipped gradients can be. The paper prints ζ, their norm; true is 2ζ."""
        return self.clip_norm if form == "printed" else 2 * self.clip_norm

    @property
    def least_gamma(self) -> float:
        """8λ/μ: up to this E, γ and the learning rate do not depend on E."""
        return 8 * self.constants.smoothness / self.constants.convexity

    def gamma(self, local: int) -> float:
        """Return γ = max(8λ/μ, E) of the learning rate η_k = (2/μ)/(k + γ) (Theorem 3)."""
        return max(self.least_gamma, float(local))

    def drift(self) -> float:
        """Return κ = 8G² + 4G²·(N−b)/((N−1)b): for large E, ω_0 is κE²."""
        return (8 + 4 * self._sampling_factor()) * self.constants.gradient_bound**2

    def omega0(self, local: int) -> float:
        """ω_0 = 6λΓ + 8(E−1)²G² + 4E²G²·(N−b)/((N−1)b) (Theorem 3)."""
        known = self.constants
        walked = 8 * (local - 1) ** 2 + 4 * local**2 * self._sampling_factor()
        return 6 * known.smoothness * known.heterogeneity + walked * known.gradient_bound**2

    def noise_constant(self, form: Form = "corrected") -> float:
        """Return C_M of ω_1 = C_M·E²·T_g^z (Theorem 3): four times the energy of the noise, since η̃_t ≤ 2η_k.

        Laplace, z = 2: 8pb·ξ²/(N²ε²). Gaussian, z = 1: 4p·c_2²·log(1/δ)·ξ²/(Nε²), printed with 8 for 4. The printed
        ξ is half of what it has to be: see `sensitivity`.
        """
        once = self.noise.energy(1, self.cohort, self.parameters, form)
        return 4 * self.sensitivity(form) ** 2 * once * (self.cohort / self.clients) ** self.noise.z

    def omega1(self, rounds: int, local: int, form: Form = "corrected") -> float:
        """Return ω_1 = C_M·E²·T_g^z (Theorem 3); the corrected form uses the whole T_l that a client pays for."""
        whole = self.turns(rounds) * self.clients / self.cohort
        return self.noise_constant(form) * local**2 * (rounds if form == "printed" else whole) ** self.noise.z

    def noise_gradient(self, rounds: int, local: int, form: Form = "corrected") -> float:
        """Return μ·√E‖w‖² = √ω_1/γ for the first round's noise w: η̃ = 2/(μγ), and E‖w‖² = η̃²·ω_1/4.

        Every client's later gradients are at least this large in the mean square: w is independent of the past and has
        mean 0, so E‖∇f_l(θ + w)‖² ≥ μ²·E‖θ + w − θ_l*‖² ≥ μ²·E‖w‖².
        """
        return math.sqrt(self.omega1(rounds, local, form)) / self.gamma(local)

    def _sampling_factor(self) -> float:
        """Return (N−b)/((N−1)b) of Lemma 2: 0 where every client joins."""
        return (self.clients - self.cohort) / (max(self.clients - 1, 1) * self.cohort)


class ConvergenceBound(NamedTuple):
    """An upper bound on Y_k = E‖θ_k − θ*‖² in three terms; `reason` says why it is not proven. Fields are JSON keys."""

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
    """Y_k ≤ [(4/μ²)ω_0 + γY_0]/(k+γ) + (4/μ²)·t·ω_1/(k+γ−1)², t = ⌊k/E⌋ (Theorem 3).

    The noise is planned for all T. Wrong in the paper: Lemma 1, on which the proof rests, draws cohorts at random,
    while they take turns; and the proof ignores the clip.

    Args:
        total: T, the local iterations in all.
        local: E, the local iterations between two uploads.
        after: k, the iterations done so far; all of them by default.
    """
    if not 1 <= local <= total:
        raise InvalidInput(
            f"Local iterations between two uploads must be 1 to {total:,}, the number in all, and got {local:,}."
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
    """Return t/(k+γ−1)², t = ⌊k/E⌋: the factor of (4/μ²)ω_1 in Theorem 3's noise term."""
    return (k // local) / (k + gamma - 1) ** 2


def unmet_assumptions(setting: Setting, rounds: int, local: int, form: Form = "corrected") -> str:
    """Return why Theorem 3 is not proven in this setting; empty if it is, as long as gradients stay within G."""
    laplace, largest = setting.noise.kind == "laplace", setting.constants.gradient_bound
    most = largest * math.sqrt(setting.parameters) if laplace else largest  # ‖g‖_1 ≤ √p·‖g‖_2
    reasons = []
    if setting.clip_norm < most:
        certainly = setting.clip_norm < largest
        reasons.append(
            f"the clip of {setting.clip_norm:g} {'cuts' if certainly else 'may cut'} gradients, whose "
            f"{'L1' if laplace else 'L2'} norm can be {most:.4g}, and the proof ignores the clip"
        )
    if rounds > 1 and (met := setting.noise_gradient(rounds, local, form)) > largest:  # none follows the last noise
        reasons.append(
            f"a round's noise alone makes gradients of at least {met:.4g}, in the root of the mean square, and G is "
            f"{largest:.4g}"
        )
    if setting.cohort < setting.clients:
        reasons.append("cohorts take turns, and the proof draws them at random")
    return "; ".join(reasons)
