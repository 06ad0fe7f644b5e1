"""Errors between a server and its clients."""

from discreet.engines.engine import RoundRefused
from discreet.errors import BudgetRefused, DiscreetError


class RequestRefused(DiscreetError):
    """The client does not answer a request: it is not from the server, or not about the agreed experiment."""


class ClientsRefused(RoundRefused):
    """Too many clients refused for the round to go on."""


class BudgetsSpent(ClientsRefused):
    """Too many clients refused for the round to go on, some because their budgets are spent."""

    exit_code = BudgetRefused.exit_code


class ClientsAway(RoundRefused):
    """Too few clients are online after the timeout."""


class ClientsNeeded(RoundRefused):
    """A round was lost because of clients without which too few remain, so that the next one would be lost too."""


class SendFailed(DiscreetError):
    """The SuperLink did not store the messages of a round."""
