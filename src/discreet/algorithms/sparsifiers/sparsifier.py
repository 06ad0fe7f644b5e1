"""The contract of a sparsifier, and `AllCoordinates`, which sends every coordinate."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from discreet.contract import contract
from discreet.params import Params
from discreet.part import part

PublicUpdate: TypeAlias = Callable[[Params, int], Params]  # (model, round) -> its update on public data


@contract("sparsifier", depends_on_data=True, has_common_mask=False, unsound_reason=None)
class Sparsifier(Protocol):
    """Chooses coordinates: before the clip by anything, after the noise only by what the noise protects.

    The three properties decide what may be certified, so each sparsifier states them. The methods have defaults that
    send the whole update: the clip and the noise follow `select`, so an unchanged update is always covered, and without
    a change after the noise nothing is removed from it.
    """

    @property
    @abstractmethod
    def depends_on_data(self) -> bool:
        """Whether one example could move the selected update by more than it moves the whole update."""

    @property
    @abstractmethod
    def has_common_mask(self) -> bool:
        """Whether all clients leave out the same coordinates, by an announced mask."""

    @property
    @abstractmethod
    def unsound_reason(self) -> str | None:
        """One sentence why its guarantee can't be certified; None if it can."""

    @property
    def needs_public_data(self) -> bool:
        """Whether its mask is the server's choice, from public data. By default a client computes what is announced."""
        return False

    def announce(self, params: Params, round: int, public: PublicUpdate | None = None) -> Params:
        """Return what all clients of the round must know, which is public: a common mask, or by default nothing.

        Safe by default: a client refuses an announcement that its own copy of the algorithm doesn't make.

        Args:
            params: The broadcast model.
            round: Number of the round, starting at 0.
            public: Computes an update of the model on public data, if there is some.
        """
        return {}

    def select(self, delta: Params, announcement: Params) -> Params:
        """Set the coordinates of each update to zero that are not sent; by default none.

        The clip and the noise come after it.
        """
        return delta

    def finish(self, sent: Params, announcement: Params) -> Params:
        """Change a client's noisy update before it is sent; by default not at all, which leaves all noise in it."""
        return sent

    def expand(self, released: Params, announcement: Params) -> Params:
        """Turn the noisy sum into an update of the whole model, by post-processing; by default it is one already."""
        return released

    def coordinates(self, update: int) -> int:
        """Return how many of `update` coordinates are sent: fewer only if all clients leave out the same ones.

        By default all. The number is for traffic and diagnostics, and no guarantee depends on it.
        """
        return update


@part
class AllCoordinates(Sparsifier):
    """Send every coordinate."""

    kind: Literal["all"] = "all"

    depends_on_data = False
    has_common_mask = False
    unsound_reason = None
