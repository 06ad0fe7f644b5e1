"""How the integer noise of a secure sum is divided among the clients."""

from typing import Literal, NamedTuple


class IntegerShares(NamedTuple):
    """What a secure sum must know about the noise that clients bring.

    Attributes:
        noise: The kind of noise.
        shares: Shares that the whole noise has; None before the cohort size is known.
        colluding: Clients assumed to share their noise with the server.
        dropouts: Clients that may drop out of a round.
    """

    noise: Literal["skellam", "discrete_gaussian"]
    shares: int | None
    colluding: int
    dropouts: int

    @property
    def fewest_clients(self) -> int:
        """Fewest clients of a sum that carries the whole noise: one for each share, and the colluding ones."""
        return (self.shares or 0) + self.colluding
