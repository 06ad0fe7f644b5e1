"""What every client of a round gets."""

from typing import NamedTuple

from discreet.params import Params
from discreet.randomness import digest


class Broadcast(NamedTuple):
    """The round, the model, and what a mechanism announces (an adaptive bound, say)."""

    round: int
    params: Params
    announced: Params

    def digest(self) -> bytes:
        """Part of every noise key, so that two broadcasts in one round never share noise."""
        return digest(self.params | {f"announced {name}": value for name, value in self.announced.items()})
