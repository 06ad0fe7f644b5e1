"""What every client of a round receives."""

from dataclasses import dataclass
from functools import cached_property

from discreet.params import Params
from discreet.randomness.streams import params_digest, params_fingerprint
from discreet.secure_sums.lattice.lattice_encoding import Encoding

CLIP = "clip"  # name of the announced norm that updates are measured in


@dataclass(frozen=True, eq=False)
class Broadcast:
    """The message from the server to the clients of a round.

    Attributes:
        round: Number of the round, starting at 0.
        params: The model.
        announcement: What mechanism and sparsifier announce, such as an adaptive clip or a common mask.
        encoding: How updates are put on a lattice; None if they are real numbers.
    """

    round: int
    params: Params
    announcement: Params
    encoding: Encoding | None = None

    @cached_property
    def digest(self) -> bytes:
        """Cryptographic digest. It is part of every noise key, so that two broadcasts in a round never share noise."""
        return params_digest(self._tensors)

    @cached_property
    def fingerprint(self) -> bytes:
        """Fast digest for simulations, where nobody can forge a broadcast."""
        return params_fingerprint(self._tensors)

    @property
    def _tensors(self) -> Params:
        named = {f"announced {name}": value for name, value in self.announcement.items()}
        if self.encoding is not None:
            named |= {f"encoding {name}": value for name, value in self.encoding.as_tensors().items()}
        return self.params | named
