"""No privacy: updates are neither clipped nor noised."""

from typing import Literal, Self

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.mechanisms.mechanism import Mechanism, State
from discreet.params import Params
from discreet.part import part
from discreet.privacy.events import Noise
from discreet.randomness.streams import Rows
from discreet.secure_sums.lattice.grid import Grid


@part
class NoPrivacy(Mechanism):
    """Sum updates as they are. It promises nothing."""

    kind: Literal["none"] = "none"

    is_private = False
    unit = "client"
    norm_order = 2
    extra_values = 0

    def for_moments(self, bound: float, noise_multiplier: float | None) -> Self:
        return self

    def bound(self, delta: Params, broadcast: Broadcast) -> Params:
        return delta

    def add_noise_share(self, encoded: Params, broadcast: Broadcast, rows: Rows) -> Params:
        return encoded

    def release_sum(
        self, total: Params, state: State, broadcast: Broadcast, cohort: float, contributors: int, noise: Rows
    ) -> tuple[Params, State]:
        return total, state

    def sum_noise(
        self, grid: Grid | None = None, known_shares: int = 0, contributors: int | None = None
    ) -> Noise | None:
        return None

    def upload_noise(self, grid: Grid | None = None) -> Noise | None:
        return None
