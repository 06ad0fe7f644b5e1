"""The contract of a mechanism: clients bound their updates, and clients or server add noise."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal, Protocol, Self, TypeAlias

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.honest_upload import HonestUpload
from discreet.algorithms.mechanisms.integer_shares import IntegerShares
from discreet.contract import contract
from discreet.lazy_torch import Tensor
from discreet.params import Params
from discreet.privacy.events import Noise
from discreet.randomness.streams import Rows
from discreet.secure_sums.lattice.grid import Grid

State: TypeAlias = Params


@contract(
    "mechanism",
    defaults=["noise_deviation", "is_local", "integer_shares", "server_choices"],
    is_private=False,
    unit="client",
    norm_order=2,
    sum_noise=None,
    upload_noise=None,
    extra_values=0,
)
class Mechanism(Protocol):
    """Bounds what one unit moves the sum by, adds noise, and states that noise for the accountant.

    What it promises, in which norm it bounds, which noise it adds and what it sends have no default: every mechanism
    states them. The other members default to values with which a mechanism that needs more than them certifies nothing.
    """

    @property
    @abstractmethod
    def is_private(self) -> bool:
        """Whether the mechanism promises anything."""

    @property
    @abstractmethod
    def unit(self) -> Literal["client", "example"]:
        """What the noise protects: whole clients, which it clips itself, or single examples, which training bounds."""

    @property
    @abstractmethod
    def norm_order(self) -> int:
        """Order of the norm that bounds an update: 1 or 2."""

    @property
    @abstractmethod
    def extra_values(self) -> int:
        """Number of values that each client sends in addition to its update."""

    @abstractmethod
    def bound(self, delta: Params, broadcast: Broadcast) -> Params:
        """Scale each row to a norm of at most 1, in units of the clip norm."""

    @abstractmethod
    def add_noise_share(self, encoded: Params, broadcast: Broadcast, rows: Rows) -> Params:
        """Add each client's own noise, if the mechanism has clients add any."""

    @abstractmethod
    def release_sum(
        self, total: Params, state: State, broadcast: Broadcast, cohort: float, contributors: int, noise: Rows
    ) -> tuple[Params, State]:
        """Add the server's noise and return the sum in the units of updates, with the next state.

        Args:
            total: The sum, real numbers in double precision. Add noise before you round it (`noise_addition.py`).
            cohort: The expected number of clients.
            contributors: The number of clients in the sum.
        """

    @abstractmethod
    def sum_noise(
        self, grid: Grid | None = None, known_shares: int = 0, contributors: int | None = None
    ) -> Noise | None:
        """Return the noise on the sum, relative to the most that one unit moves it; None if the sum hides nothing.

        Args:
            grid: The lattice that integer noise is priced on.
            known_shares: Noise shares that the observer knows.
            contributors: Clients that contributed a noise share. None assumes the planned minimum.
        """

    @abstractmethod
    def upload_noise(self, grid: Grid | None = None) -> Noise | None:
        """Return the noise on one upload, relative to the largest norm it may have; None if it carries none."""

    def with_noise(self, noise_multiplier: float | tuple[float, ...]) -> Self:
        """Return a copy with this noise multiplier if none is chosen yet.

        By default nothing is open: the promise is then checked against the noise as it is, and refused if it is short.
        """
        return self

    def for_cohort(self, fewest: int, most: int) -> Self:
        """Return a copy with the fields that follow from the fewest and the most clients that may join a round.

        By default none follow. A field that stays open leaves the noise unknown, and nothing is certified.
        """
        return self

    def for_moments(self, bound: float, noise_multiplier: float | None) -> Mechanism | None:
        """Return the mechanism that protects a sum of moments in the same way; by default none can.

        Args:
            bound: The norm that the moments of one example have at most, and so has a mean of them.
            noise_multiplier: Noise of the sum over that bound. None if it is still to be computed.
        """
        return None

    def init(self, params: Params) -> State:
        """Return the state before the first round; by default there is none."""
        return {}

    def announce(self, state: State, bound: float | None) -> Params:
        """Return what clients must know to bound their updates; by default nothing.

        Safe by default: a client refuses an announcement that its own copy of the algorithm doesn't make.

        Args:
            state: The mechanism's state, such as an adaptive clip.
            bound: The bound on an update that training guarantees, if there is one.
        """
        return {}

    @property
    def is_local(self) -> bool:
        """Whether the noise of each client protects it by itself, so that clients may differ in their noise.

        False is the refusing value: a promise that differs by client is then refused.
        """
        return False

    @property
    def integer_shares(self) -> IntegerShares | None:
        """The integer noise that clients bring; by default they bring none, and a secure sum of integers is refused."""
        return None

    @property
    def server_choices(self) -> frozenset[str]:
        """Names of the announced values that the server chooses, such as an adaptive clip.

        By default none: a client refuses each value that differs from its own.
        """
        return frozenset()

    @property
    def update_share(self) -> float:
        """Largest norm of the update in what a client sends, in units of the clip norm; for plans only."""
        return 1.0

    def honest_upload(self) -> HonestUpload | None:
        """Return the largest norm of a row, and the noise that `add_noise_share` adds, of clients with equal settings.

        The server clips or refuses longer uploads in clear. None, as by default, if unknown: all are taken as they are.
        Where single examples are protected, the norm is that of one of them.
        """
        return None

    def clip_threshold(self, broadcast: Broadcast) -> float | Tensor | None:
        """Return the norm that updates were clipped to, None if they were not clipped; for diagnostics only."""
        return None

    def noise_deviation(self, clients: Sequence[int]) -> float | None:
        """Return the deviation of all noise in a coordinate of these clients' sum, over the clip norm; None if unknown.

        None is the refusing value: noise that is unknown may depend on who joins, and then a secret draw of the clients
        amplifies nothing.
        """
        return None
