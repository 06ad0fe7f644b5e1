"""No privacy: updates are neither clipped nor noised."""

from collections.abc import Sequence
from typing import Literal, Self

from torch import Tensor

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.mechanisms.mechanism import State
from discreet.params import Params
from discreet.part import part
from discreet.privacy.events import Noise
from discreet.randomness.streams import Rows
from discreet.secure_sums.lattice.grid import Grid


@part
class NoPrivacy:
    """Sum updates as they are. It promises nothing."""

    kind: Literal["none"] = "none"

    @property
    def is_private(self) -> bool:
        return False

    @property
    def unit(self) -> Literal["client", "example"]:
        return "client"

    @property
    def norm_order(self) -> int:
        return 2

    def with_noise(self, noise_multiplier: float | tuple[float, ...]) -> Self:
        return self

    def for_cohort(self, fewest: int, most: int) -> Self:
        return self

    def init(self, params: Params) -> State:
        return {}

    def announce(self, state: State, bound: float | None) -> Params:
        return {}

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

    def clip_threshold(self, broadcast: Broadcast) -> float | Tensor | None:
        return None

    def noise_deviation(self, clients: Sequence[int]) -> float | None:
        return None

    @property
    def extra_values(self) -> int:
        return 0
