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
    def is_private(self) -> bool:
        """Whether anything is promised at all."""

    @property
    def unit(self) -> Literal["client", "example"]:
        """Whom its noise protects: whole clients, by its own clip; or single examples, which training bounds."""

    @property
    def norm_order(self) -> int:
        """Of the norm that bounds an update: 1 or 2."""

    def with_noise(self, noise_multiplier: float | tuple[float, ...]) -> Self:
        """The same with this noise, where none was chosen yet."""

    def for_cohort(self, fewest: int, most: int) -> Self:
        """The same with the numbers that follow from how many clients may join a round: the fewest, and the most."""

    def init(self, params: Params) -> State: ...

    def announce(self, state: State, bound: float | None) -> Params:
        """What clients need to know to bound their updates, and may: an adaptive clip, or the trainer's own bound."""

    def bound(self, delta: Params, broadcast: Broadcast) -> Params:
        """Each row scaled to a norm of at most 1, in units of the clip."""

    def add_noise_share(self, encoded: Params, broadcast: Broadcast, rows: Rows) -> Params:
        """What the client adds itself: its share of noise, or nothing."""

    def release_sum(
        self, total: Params, state: State, broadcast: Broadcast, cohort: float, contributors: int, noise: Rows
    ) -> tuple[Params, State]:
        """Add the server's noise and return the sum in the units of updates, with the next state.

        Args:
            cohort: The expected number of clients.
            contributors: The number of clients in the sum.
        """

    def sum_noise(
        self, grid: Grid | None = None, known_shares: int = 0, contributors: int | None = None
    ) -> Noise | None:
        """Return the noise on the sum, relative to the most that one unit moves it; None if the sum hides nothing.

        Args:
            grid: The lattice that integer noise is priced on.
            known_shares: Noise shares that the observer knows.
            contributors: Clients that contributed a noise share. None assumes the planned minimum.
        """

    def upload_noise(self, grid: Grid | None = None) -> Noise | None:
        """The noise on one client's own upload, over the most that its norm may be; None where it has none."""

    def clip_threshold(self, broadcast: Broadcast) -> float | Tensor | None:
        """The norm that updates were scaled down to; None where they were not. For diagnostics."""

    def noise_deviation(self, clients: Sequence[int]) -> float | None:
        """Of the noise in each coordinate of these clients' sum, over the clip, the server's included; None without."""

    @property
    def extra_values(self) -> int:
        """How many numbers each client sends beside its update."""
