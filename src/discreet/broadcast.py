"""What every client of a round gets."""

from dataclasses import dataclass
from functools import cached_property

from discreet.params import Params
from discreet.randomness import digest, fingerprint


@dataclass(frozen=True, eq=False)
class Broadcast:
    """The round, the model, and what a mechanism announces (an adaptive bound, say)."""

    round: int
    params: Params
    announced: Params

    @cached_property
    def digest(self) -> bytes:
        """Part of every noise key, so that two broadcasts in one round never share noise."""
        return digest(self._all)

    @cached_property
    def fingerprint(self) -> bytes:
        """The same for a simulation, which sends no broadcast to mislead itself."""
        return fingerprint(self._all)

    @property
    def _all(self) -> Params:
        return self.params | {f"announced {name}": value for name, value in self.announced.items()}
