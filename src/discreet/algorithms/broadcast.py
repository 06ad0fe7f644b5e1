"""What every client of a round gets."""

from dataclasses import dataclass
from functools import cached_property

from discreet.params import Params
from discreet.randomness.streams import params_digest, params_fingerprint
from discreet.secure_sums.lattice import Encoding

CLIP = "clip"  # under which a mechanism announces the norm that updates are measured in


@dataclass(frozen=True, eq=False)
class Broadcast:
    """The round, the model, what a mechanism announces (an adaptive bound, say), and the way onto the lattice."""

    round: int
    params: Params
    announcement: Params
    encoding: Encoding | None = None

    @cached_property
    def digest(self) -> bytes:
        """Part of every noise key, so that two broadcasts in one round never share noise."""
        return params_digest(self._all)

    @cached_property
    def fingerprint(self) -> bytes:
        """The same for a simulation, which sends no broadcast to mislead itself."""
        return params_fingerprint(self._all)

    @property
    def _all(self) -> Params:
        said = {f"announced {name}": value for name, value in self.announcement.items()}
        if self.encoding is not None:
            said |= {f"encoding {name}": value for name, value in self.encoding.as_tensors().items()}
        return self.params | said
