"""What can go wrong between a server and its clients."""

from discreet.engines.engine import RoundRefused
from discreet.errors import BudgetRefused, DiscreetError


class RequestRefused(DiscreetError):
    """A request that this client does not answer: it is not the server's, or not about what was agreed."""


class ClientsRefused(RoundRefused):
    """So many clients refused that the round can't be made; each said why."""


class BudgetsSpent(ClientsRefused):
    """Among those who refused are some whose own budgets don't allow it."""

    exit_code = BudgetRefused.exit_code


class ClientsAway(RoundRefused):
    """Too few clients are there, and waiting for them has taken long enough."""
