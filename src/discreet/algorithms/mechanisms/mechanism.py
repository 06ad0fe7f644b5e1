"""The contract of a mechanism: its half on the client bounds, its half on the server adds noise."""

from collections.abc import Sequence
from typing import Literal, Protocol, Self, TypeAlias

from torch import Tensor

from discreet.algorithms.broadcast import Broadcast
from discreet.params import Params
from discreet.privacy.events import Noise
from discreet.randomness.streams import Rows
from discreet.secure_sums.lattice import Grid

State: TypeAlias = Params


class Mechanism(Protocol):
    @property
    def private(self) -> bool:
        """Whether anything is promised at all."""

    @property
    def unit(self) -> Literal["client", "example"]:
        """Whom its noise protects: whole clients, by its own clip; or single examples, which training bounds."""

    @property
    def order(self) -> int:
        """Of the norm that bounds an update: 1 or 2."""

    def with_noise(self, noise_multiplier: float | tuple[float, ...]) -> Self:
        """The same with this noise, where none was chosen yet."""

    def fitted(self, fewest: int, most: int) -> Self:
        """The same with the numbers that follow from how many clients may join a round: the fewest, and the most."""

    def init(self, params: Params) -> State: ...

    def announce(self, state: State, bound: float | None) -> Params:
        """What clients need to know to bound their updates, and may: an adaptive clip, or the trainer's own bound."""

    def bound(self, delta: Params, broadcast: Broadcast) -> Params:
        """Each row scaled to a norm of at most 1, in units of the clip."""

    def share(self, encoded: Params, broadcast: Broadcast, rows: Rows) -> Params:
        """What the client adds itself: its share of noise, or nothing."""

    def on_server(
        self, total: Params, state: State, broadcast: Broadcast, cohort: float, joined: int, noise: Rows
    ) -> tuple[Params, State]:
        """The sum in its own units, with the server's noise; `cohort` clients were expected, and `joined` came."""

    def noise(self, grid: Grid | None = None, known: int = 0, joined: int | None = None) -> Noise | None:
        """The noise on the sum, over the most that one unit moves it; None where no more is promised of it.

        Integer noise is priced on a `grid`. `known` of the clients' shares are no secret to whoever looks. `joined`
        clients contributed; None stands for as few as were planned for.
        """

    def own_noise(self, grid: Grid | None = None) -> Noise | None:
        """The noise on one client's own upload, over the most that its norm may be; None where it has none."""

    def clip(self, broadcast: Broadcast) -> float | Tensor | None:
        """The norm that updates were scaled down to; None where they were not. For diagnostics."""

    def deviation(self, contributors: Sequence[int]) -> float | None:
        """Of the noise in each coordinate of these clients' sum, over the clip, the server's included; None without."""

    @property
    def beside(self) -> int:
        """How many numbers each client sends beside its update."""
