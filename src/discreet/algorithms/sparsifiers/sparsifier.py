"""The contract of a sparsifier, and `All`, which leaves nothing out."""

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from discreet.params import Params
from discreet.part import part

PublicUpdate: TypeAlias = Callable[[Params, int], Params]  # (model, round) -> its update on public data


class Sparsifier(Protocol):
    """Before the clip it may look at anything; after the noise only at what the noise protects."""

    @property
    def depends_on_data(self) -> bool:
        """Whether one example could move what is selected by more than it moves the update."""

    @property
    def has_common_mask(self) -> bool:
        """Whether all clients leave out the same coordinates, by a mask that is announcement."""

    @property
    def unsound_reason(self) -> str | None:
        """Why its guarantee can't be certified, in a sentence; None where it can."""

    def announce(self, params: Params, round: int, public: PublicUpdate | None = None) -> Params:
        """What all clients of the round need to know: a common mask by name, else nothing. Public.

        `public` makes an update of the model on public data, where there is some.
        """

    def select(self, delta: Params, announcement: Params) -> Params:
        """Each client's update with what is not sent set to zero; before the clip, so nothing leaks by it."""

    def finish(self, sent: Params, announcement: Params) -> Params:
        """What a client does to its noisy update before it sends it."""

    def expand(self, released: Params, announcement: Params) -> Params:
        """The noisy sum as the model's update: post-processing."""

    def coordinates(self, update: int) -> int:
        """How many coordinates of an update of so many are sent: fewer only where all leave out the same."""


@part
class All:
    """Everything."""

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
