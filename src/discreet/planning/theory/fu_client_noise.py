"""How much noise a client's uploads need, and what an average has of it: paper 003's Theorems 1 and 2."""

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
    """How far apart two updates of E local iterations can lie, in units in which the paper has Ξ = η̃Eξ."""

    printed: float
    true: float
    per_example: float | None  # for one example, where each example's gradient is clipped


def update_sensitivity(
    learning_rate: float, local: int, clip_norm: float, examples: int | None = None
) -> UpdateSensitivity:
    """Printed: Ξ = η̃Eζ (paper 003, Theorems 1 and 2, with ξ = ζ by its clip). True: 2η̃Eζ.

    Wrong in the paper: Ξ bounds an update's norm, and two updates of that norm lie up to 2Ξ apart. Its proof also takes
    ξ for all E iterations at one model, while from the second on the models differ: so the clip is what bounds them.
    With each of n_l examples' gradients clipped, one example moves the first step by 2η̃ζ/n_l, each later one by 2η̃ζ.
    """
    norm = learning_rate * local * clip_norm
    alone = None if examples is None else 2 * learning_rate * clip_norm * (1 / examples + local - 1)
    return UpdateSensitivity(norm, 2 * norm, alone)


def size_imbalance(sizes: Sequence[int]) -> float:
    """N²n̄²/n² = N·Σn_l²/(Σn_l)² of Corollaries 1.1 and 2.1: 1 where all clients have as many examples, else more."""
    return len(sizes) * math.fsum(size**2 for size in sizes) / math.fsum(sizes) ** 2


@part
class ClientNoise:
    """Noise that a client adds to each of its uploads, for (ε, δ) over all T_l of them; Laplace noise needs no δ."""

    kind: Kind
    epsilon: Multiplier
    delta: Probability = 1e-4

    @property
    def z(self) -> int:
        """E‖w‖² = O(η̃²E²T_g^z): how noise grows with rounds (paper 003, Definition 2)."""
        return 2 if self.kind == "laplace" else 1

    @property
    def c2(self) -> float | None:
        """c_2 = m·ε/√(T_l·log(1/δ)) of Theorem 2, by exact composition; it is the same for every T_l.

        The paper states no c_2, and calls on Abadi et al. (2016, Theorem 1), which has none at its q = 1.
        """
        return self.multiplier(1) * self.epsilon / math.sqrt(-math.log(self.delta)) if self.kind == "gaussian" else None

    def multiplier(self, turns: int) -> float:
        """m: the noise's scale (Laplace) or deviation (Gaussian) over the sensitivity, for T_l = `turns` uploads.

        Laplace: m = T_l/ε (paper 003, Theorem 1). Gaussian: m = c_2·√(T_l·log(1/δ))/ε (Theorem 2), of which the least
        is taken that our accountant finds to keep (ε, δ).
        """
        return turns / self.epsilon if self.kind == "laplace" else _gaussian(self.epsilon, self.delta, turns)

    def energy(
        self, turns: int, cohort: int, parameters: int, form: Form = "corrected", imbalance: float = 1.0
    ) -> float:
        """E‖w‖²/Ξ²: the noise on an average of b updates beside their sensitivity (paper 003, Corollaries 1.1, 2.1).

        Laplace: 2pb·T_g²·n̄²/(n²ε²). Gaussian, printed: 2p·c_2²·N·log(1/δ)·T_g·n̄²/(n²ε²). With T_g = N·T_l/b both are
        2p·m²/b, times N²n̄²/n². Wrong in the paper: the variance of Gaussian noise is its deviation squared, and the 2
        is Laplace's; corrected, it is gone.
        """
        return noise_energy(self.kind, self.multiplier(turns), cohort, parameters, form) * imbalance

    def certified(self, turns: int) -> float:
        """The ε of the printed noise, when two updates lie 2Ξ apart: twice ε with Laplace noise."""
        return certified_epsilon(self.kind, self.multiplier(turns), turns, self.delta)


def noise_energy(kind: Kind, multiplier: float, cohort: int, parameters: int, form: Form = "corrected") -> float:
    """E‖w‖²/Ξ² of an average of b uploads in p coordinates: 2p·m²/b with Laplace noise, p·m²/b with Gaussian noise."""
    variance = 2 if kind == "laplace" or form == "printed" else 1
    return variance * parameters * multiplier**2 / cohort


def claimed_epsilon(kind: Kind, multiplier: float, turns: int, delta: float) -> float:
    """The ε of so many uploads with that noise as paper 003 counts: two updates at most Ξ apart."""
    return turns / multiplier if kind == "laplace" else _epsilon(multiplier, turns, delta, doubled=False)


def certified_epsilon(kind: Kind, multiplier: float, turns: int, delta: float) -> float:
    """The ε of so many uploads with that noise, when two updates of norm Ξ lie up to 2Ξ apart."""
    return 2 * turns / multiplier if kind == "laplace" else _epsilon(multiplier, turns, delta, doubled=True)


def _epsilon(multiplier: float, turns: int, delta: float, *, doubled: bool) -> float:
    return accountant.epsilon(_uploads(multiplier, turns), delta, "replace" if doubled else "add_or_remove")


@lru_cache(maxsize=1024)
def _gaussian(epsilon: float, delta: float, turns: int) -> float:
    target = EpsilonTarget(epsilon=epsilon, delta=delta)
    return calibration.calibrate_noise(lambda noise: _uploads(noise, turns), target, "add_or_remove")


def _uploads(multiplier: float, turns: int) -> Event:
    return Repeated(count=turns, event=GaussianNoise(noise_multiplier=multiplier))
