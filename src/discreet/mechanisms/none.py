"""No privacy: the sum as it is."""

from typing import Literal, Self

from torch import Tensor

from discreet.broadcast import Broadcast
from discreet.mechanisms.mechanism import State
from discreet.params import Params
from discreet.part import part
from discreet.privacy.events import Noise
from discreet.randomness import Rows


@part
class NoPrivacy:
    kind: Literal["none"] = "none"

    @property
    def private(self) -> bool:
        return False

    @property
    def order(self) -> int:
        return 2

    def with_noise(self, noise_multiplier: float) -> Self:
        return self

    def fitted(self, cohort: float) -> Self:
        return self

    def init(self, params: Params) -> State:
        return {}

    def announce(self, state: State, bound: float | None) -> Params:
        return {}

    def bound(self, delta: Params, broadcast: Broadcast) -> Params:
        return delta

    def share(self, encoded: Params, broadcast: Broadcast, rows: Rows) -> Params:
        return encoded

    def on_server(
        self, total: Params, state: State, broadcast: Broadcast, cohort: float, noise: Rows
    ) -> tuple[Params, State]:
        return total, state

    def noise(self) -> Noise | None:
        return None

    def own_noise(self) -> Noise | None:
        return None

    def clip(self, broadcast: Broadcast) -> float | Tensor | None:
        return None
