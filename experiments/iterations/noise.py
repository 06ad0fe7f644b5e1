"""How much noise makes our smaller federation's averages as noisy as the paper's, and what that noise really certifies.

A cohort's average of b updates, each of norm at most Ξ = ζΣη, carries noise of E‖w‖²/Ξ² = 2p·m²/b with Laplace noise
of scale mΞ, and p·m²/b with Gaussian noise of deviation mΞ, in p coordinates (Corollaries 1.1 and 2.1, the latter
without its factor 2, which is Laplace's). It is the paper's where m²/b is.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

from discreet.privacy import accountant, calibration
from discreet.privacy.calibration import EpsilonTarget
from discreet.privacy.events import Event, GaussianNoise, LaplaceNoise, Repeated


@dataclass(frozen=True)
class Federation:
    """A mechanism in the paper's federation and in ours; cohorts are the same share of both."""

    name: str
    kind: Literal["laplace", "gaussian"]
    theirs: int  # clients
    ours: int
    cohort: int  # of ours, by default
    parameters: int
    delta: float

    @property
    def fewer(self) -> float:
        """Clients in their average for each one in ours."""
        return self.theirs / self.ours

    def turns(self, rounds: int, cohort: int) -> int:
        """T_l: in how many rounds one client takes part."""
        return -(-rounds * cohort // self.ours)

    def published(self, epsilon: float, turns: int) -> float:
        """m as the paper has it: so that so many releases of sensitivity Ξ cost its ε.

        Laplace: T_l/ε (Theorem 1). Gaussian: by exact composition, since the paper's constant c_2 isn't given.
        """
        if self.kind == "laplace":
            return turns / epsilon
        target = EpsilonTarget(epsilon=epsilon, delta=self.delta)
        return calibration.noise(lambda noise: self._event(noise, turns), target, "add_or_remove")

    def matched(self, epsilon: float, turns: int) -> float:
        """m at which our averages are as noisy as the paper's."""
        return self.published(epsilon, turns) / math.sqrt(self.fewer)

    def claimed(self, noise: float, turns: int) -> float:
        """The ε of so many releases of that noise as the paper counts: two updates at most Ξ apart."""
        if self.kind == "laplace":
            return turns / noise
        return accountant.epsilon(self._event(noise, turns), self.delta, "add_or_remove")

    def certified(self, noise: float, turns: int) -> float:
        """The ε of so many releases of that noise, when two updates of norm Ξ lie up to 2Ξ apart."""
        if self.kind == "laplace":
            return 2 * turns / noise
        return accountant.epsilon(self._event(noise, turns), self.delta, "replace")

    def loudness(self, noise: float, cohort: int) -> float:
        """√(E‖w‖²)/Ξ: the noise on an average beside the largest update that there can be."""
        variance = 2 if self.kind == "laplace" else 1
        return noise * math.sqrt(variance * self.parameters / cohort)

    def _event(self, noise: float, turns: int) -> Event:
        kind = LaplaceNoise if self.kind == "laplace" else GaussianNoise
        return Repeated(count=turns, event=kind(noise_multiplier=noise))


LAPLACE = Federation("Laplace", "laplace", theirs=5000, ours=420, cohort=42, parameters=11, delta=1e-300)
GAUSSIAN = Federation("Gaussian", "gaussian", theirs=3500, ours=300, cohort=30, parameters=214_590, delta=1e-4)
LINEAR = Federation("Gaussian, linear", "gaussian", theirs=3500, ours=100, cohort=10, parameters=48_670, delta=1e-4)
REGRESSION = replace(LAPLACE, name="Gaussian, regression", kind="gaussian", delta=1e-4)
FEDERATIONS = {  # by the name of their file
    "laplace": LAPLACE,
    "gaussian": GAUSSIAN,
    "linear": LINEAR,
    "linear_decaying": LINEAR,
    "laplace_decaying": LAPLACE,
    "regression_decaying": REGRESSION,
}
