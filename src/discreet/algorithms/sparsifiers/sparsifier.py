"""The contract of a sparsifier, and `All`, which sends every coordinate."""

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from discreet.params import Params
from discreet.part import part

PublicUpdate: TypeAlias = Callable[[Params, int], Params]  # (model, round) -> its update on public data


class Sparsifier(Protocol):
    """Chooses coordinates: before the clip by anything, after the noise only by what the noise protects."""

    @property
    def depends_on_data(self) -> bool:
        """Whether one example could move the selected update by more than it moves the whole update."""

    @property
    def has_common_mask(self) -> bool:
        """Whether all clients leave out the same coordinates, by an announced mask."""

    @property
    def unsound_reason(self) -> str | None:
        """One sentence why its guarantee can't be certified; None if it can."""

    def announce(self, params: Params, round: int, public: PublicUpdate | None = None) -> Params:
        """Return what all clients of the round must know, which is public: a common mask, or nothing.

        Args:
            params: The broadcast model.
            round: Number of the round, starting at 0.
            public: Computes an update of the model on public data, if there is some.
        """

    def select(self, delta: Params, announcement: Params) -> Params:
        """Set the coordinates of each update to zero that are not sent. The clip and the noise come after it."""

    def finish(self, sent: Params, announcement: Params) -> Params:
        """Change a client's noisy update before it is sent."""

    def expand(self, released: Params, announcement: Params) -> Params:
        """Turn the noisy sum into an update of the whole model, by post-processing."""

    def coordinates(self, update: int) -> int:
        """Return how many of `update` coordinates are sent: fewer only if all clients leave out the same ones."""


@part
class AllCoordinates:
    """Send every coordinate."""

    kind: Literal["all"] = "all"

    @property
    def depends_on_data(self) -> bool:
        return False

    @property
    def has_common_mask(self) -> bool:
        return False

    @property
    def unsound_reason(self) -> str | None:
        return None

    def announce(self, params: Params, round: int, public: PublicUpdate | None = None) -> Params:
        return {}

    def select(self, delta: Params, announcement: Params) -> Params:
        return delta

    def finish(self, sent: Params, announcement: Params) -> Params:
        return sent

    def expand(self, released: Params, announcement: Params) -> Params:
        return released

    def coordinates(self, update: int) -> int:
        return update
