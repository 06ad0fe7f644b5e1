"""How much noise makes our smaller federation's averages as noisy as the paper's, and what that noise really certifies.

A cohort's average of b updates, each of norm at most Ξ = ζΣη, carries noise of E‖w‖²/Ξ² = 2p·m²/b with Laplace noise
of scale mΞ, and p·m²/b with Gaussian noise of deviation mΞ, in p coordinates (`planning.theory.local_noise`). It is the
paper's where m²/b is.
"""

import math
from dataclasses import dataclass, replace

from discreet.planning.theory import fu_client_noise
from discreet.planning.theory.fu_client_noise import ClientNoise, Kind


@dataclass(frozen=True)
class Federation:
    """A mechanism in the paper's federation and in ours; cohorts are the same share of both."""

    name: str
    kind: Kind
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

    def published_noise(self, epsilon: float, turns: int) -> float:
        """Return the paper's m: with it, `turns` releases of sensitivity Ξ cost its ε (Theorems 1 and 2)."""
        return ClientNoise(kind=self.kind, epsilon=epsilon, delta=self.delta).multiplier(turns)

    def matched_noise(self, epsilon: float, turns: int) -> float:
        """Return the m with which our averages are as noisy as the paper's."""
        return self.published_noise(epsilon, turns) / math.sqrt(self.fewer)

    def claimed_epsilon(self, noise: float, turns: int) -> float:
        """Return the ε of `turns` releases as the paper counts it, with two updates at most Ξ apart."""
        return fu_client_noise.claimed_epsilon(self.kind, noise, turns, self.delta)

    def certified_epsilon(self, noise: float, turns: int) -> float:
        """Return the ε of `turns` releases when two updates of norm Ξ may be 2Ξ apart."""
        return fu_client_noise.certified_epsilon(self.kind, noise, turns, self.delta)

    def loudness(self, noise: float, cohort: int) -> float:
        """√(E‖w‖²)/Ξ: the noise on an average beside the largest update that there can be."""
        return math.sqrt(fu_client_noise.noise_energy(self.kind, noise, cohort, self.parameters))


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
