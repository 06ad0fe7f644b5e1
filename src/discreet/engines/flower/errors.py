"""What can go wrong between a server and its clients."""

from discreet.errors import BudgetRefused, DiscreetError


class NotOurs(DiscreetError):
    """A request that this client does not answer: it is not the server's, or not about what was agreed."""


class NotMade(DiscreetError):
    """A round can't be made, and with it the run ends here; submitted again, it goes on.

    `revealed` says whether something of the round may have been released all the same: it must count.
    """

    def __init__(self, problem: str, *, fix: str = "", revealed: bool = False) -> None:
        super().__init__(problem, fix=fix)
        self.revealed = revealed


class ClientsRefused(NotMade):
    """So many clients refused that the round can't be made; each said why."""


class BudgetsSpent(ClientsRefused):
    """Among those who refused are some whose own budgets don't allow it."""

    exit_code = BudgetRefused.exit_code


class ClientsAway(NotMade):
    """Too few clients are there, and waiting for them has taken long enough."""
