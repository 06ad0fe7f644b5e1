"""What can go wrong between a server and its clients."""

from discreet.errors import DiscreetError


class NotOurs(DiscreetError):
    """A request that this client does not answer: it is not the server's, or not about what was agreed."""


class ClientsRefused(DiscreetError):
    """So many clients refused that the round can't be made; each said why."""


class ClientsAway(DiscreetError):
    """Too few clients are there, and waiting for them has taken long enough."""
