"""Fu et al. 2021: how much noise a client's uploads need, and how much remains in an average; Theorems 1 and 2.

What is proved: noise for updates that are at most Ξ apart. What is wrong: Ξ bounds the norm of one update, and two
updates of that norm can be 2Ξ apart; and the variance of Gaussian noise has a factor 2 that belongs to Laplace noise.
What we use: a sensitivity of 2Ξ, the right variance, and c_2 by exact composition.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from discreet.part import Multiplier, Probability, part
from discreet.privacy import accountant, calibration
from discreet.privacy.calibration import EpsilonTarget
from discreet.privacy.events import Event, GaussianNoise, Repeated

Kind: TypeAlias = Literal["laplace", "gaussian"]
Form: TypeAlias = Literal["printed", "corrected"]


class UpdateSensitivity(NamedTuple):
    """How far apart two updates of E local iterations can be.

    Attributes:
        printed_distance: Ξ = η̃Eξ, as the paper has it.
        true_distance: 2Ξ.
        example_distance: For one example, if each example's gradient is clipped; None if the examples are not known.
    """

    printed_distance: float
    true_distance: float
    example_distance: float | None


def update_sensitivity(
    learning_rate: float, local: int, clip_norm: float, examples: int | None = None
) -> UpdateSensitivity:
    """Return the sensitivity of an update; printed Ξ = η̃Eζ (Fu et al. 2021, Theorems 1 and 2, ξ = ζ), true 2η̃Eζ.

    Wrong in the paper: Ξ bounds an update's norm, and two updates of that norm can be 2Ξ apart. Its proof also takes
    ξ for all E iterations at one model, while from the second on the models differ, and only the clip bounds them.
    With each of n_l examples' gradients clipped, one example moves the first step by 2η̃ζ/n_l, each later one by 2η̃ζ.
    """
    norm = learning_rate * local * clip_norm
    example = None if examples is None else 2 * learning_rate * clip_norm * (1 / examples + local - 1)
    return UpdateSensitivity(norm, 2 * norm, example)


def size_imbalance(sizes: Sequence[int]) -> float:
    """N²n̄²/n² = N·Σn_l²/(Σn_l)² of Corollaries 1.1 and 2.1: 1 where clients have equally many examples, else more."""
    return len(sizes) * math.fsum(size**2 for size in sizes) / math.fsum(sizes) ** 2


@part
class ClientNoise:
    """The noise that a client adds to each of its T_l uploads, for (ε, δ) over all of them; Laplace needs no δ."""

    kind: Kind
    epsilon: Multiplier
    delta: Probability = 1e-4

    @property
    def z(self) -> int:
        """E‖w‖² = O(η̃²E²T_g^z): how the noise grows with rounds (Definition 2)."""
        return 2 if self.kind == "laplace" else 1

    @property
    def c2(self) -> float | None:
        """c_2 = m·ε/√(T_l·log(1/δ)) of Theorem 2, by exact composition; it is the same for every T_l.

        The paper gives no value, and cites Abadi et al. (2016, Theorem 1), which has none at q = 1.
        """
        return self.multiplier(1) * self.epsilon / math.sqrt(-math.log(self.delta)) if self.kind == "gaussian" else None

    def multiplier(self, turns: int) -> float:
        """Return m: the noise's scale (Laplace) or deviation (Gaussian) over the sensitivity, for T_l = `turns`.

        Laplace: m = T_l/ε (Theorem 1). Gaussian: m = c_2·√(T_l·log(1/δ))/ε (Theorem 2), with the least c_2 for which
        our accountant certifies (ε, δ).
        """
        return turns / self.epsilon if self.kind == "laplace" else _calibrate_gaussian(self.epsilon, self.delta, turns)

    def energy(
        self, turns: int, cohort: int, parameters: int, form: Form = "corrected", imbalance: float = 1.0
    ) -> float:
        """Return E‖w‖²/Ξ²: the noise of an average of b updates over their sensitivity (Corollaries 1.1 and 2.1).

        Laplace: 2pb·T_g²·n̄²/(n²ε²). Gaussian, printed: 2p·c_2²·N·log(1/δ)·T_g·n̄²/(n²ε²). With T_g = N·T_l/b both are
        2p·m²/b, times N²n̄²/n². Wrong in the paper: the 2 belongs to Laplace noise; the corrected form drops it for
        Gaussian noise.
        """
        return noise_energy(self.kind, self.multiplier(turns), cohort, parameters, form) * imbalance

    def certified_epsilon(self, turns: int) -> float:
        """Return the true ε of the printed noise, if two updates are 2Ξ apart: twice ε with Laplace noise."""
        return certified_epsilon(self.kind, self.multiplier(turns), turns, self.delta)


def noise_energy(kind: Kind, multiplier: float, cohort: int, parameters: int, form: Form = "corrected") -> float:
    """Return E‖w‖²/Ξ² of an average of b uploads in p coordinates: 2p·m²/b for Laplace noise, p·m²/b for Gaussian."""
    variance = 2 if kind == "laplace" or form == "printed" else 1
    return variance * parameters * multiplier**2 / cohort


def claimed_epsilon(kind: Kind, multiplier: float, turns: int, delta: float) -> float:
    """Return the ε of `turns` uploads as the paper counts it: two updates are at most Ξ apart."""
    return turns / multiplier if kind == "laplace" else _gaussian_epsilon(multiplier, turns, delta, doubled=False)


def certified_epsilon(kind: Kind, multiplier: float, turns: int, delta: float) -> float:
    """Return the true ε of `turns` uploads: two updates of norm Ξ can be 2Ξ apart."""
    return 2 * turns / multiplier if kind == "laplace" else _gaussian_epsilon(multiplier, turns, delta, doubled=True)


def _gaussian_epsilon(multiplier: float, turns: int, delta: float, *, doubled: bool) -> float:
    return accountant.epsilon(_event(multiplier, turns), delta, "replace" if doubled else "add_or_remove")


@lru_cache(maxsize=1024)
def _calibrate_gaussian(epsilon: float, delta: float, turns: int) -> float:
    target = EpsilonTarget(epsilon=epsilon, delta=delta)
    return calibration.calibrate_noise(lambda noise: _event(noise, turns), target, "add_or_remove")


def _event(multiplier: float, turns: int) -> Event:
    return Repeated(count=turns, event=GaussianNoise(noise_multiplier=multiplier))
