"""The contract of a mechanism: its half on the client bounds, its half on the server adds noise."""

from typing import Protocol, Self, TypeAlias

from torch import Tensor

from discreet.broadcast import Broadcast
from discreet.params import Params
from discreet.privacy.events import Noise
from discreet.randomness import Rows

State: TypeAlias = Params


class Mechanism(Protocol):
    @property
    def private(self) -> bool:
        """Whether anything is promised at all."""

    @property
    def order(self) -> int:
        """Of the norm that bounds an update: 1 or 2."""

    def with_noise(self, noise_multiplier: float) -> Self:
        """The same with this noise, where none was chosen yet."""

    def fitted(self, cohort: float) -> Self:
        """The same with the numbers that follow from how many clients are expected."""

    def init(self, params: Params) -> State: ...

    def announce(self, state: State, bound: float | None) -> Params:
        """What clients need to know to bound their updates, and may: an adaptive clip, or the trainer's own bound."""

    def bound(self, delta: Params, broadcast: Broadcast) -> Params:
        """Each row scaled to a norm of at most 1, in units of the clip."""

    def share(self, encoded: Params, broadcast: Broadcast, rows: Rows) -> Params:
        """What the client adds itself: its share of noise, or nothing."""

    def on_server(
        self, total: Params, state: State, broadcast: Broadcast, cohort: float, noise: Rows
    ) -> tuple[Params, State]:
        """The sum in its own units, with the server's noise; `cohort` clients were expected."""

    def noise(self) -> Noise | None:
        """The noise on the sum, over the most that one client moves it; None where no more is promised of it."""

    def own_noise(self) -> Noise | None:
        """The noise on one client's own upload, over the most that its norm may be; None where it has none."""

    def clip(self, broadcast: Broadcast) -> float | Tensor | None:
        """The norm that updates were scaled down to; None where they were not. For diagnostics."""
