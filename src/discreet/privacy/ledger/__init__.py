"""The ledger: what was spent, by whom, on disk before it is spent. It refuses past the budget."""

from discreet.privacy.ledger.entries import Budget, Mode, Ticket
from discreet.privacy.ledger.ledger import Ledger, verify

__all__ = ["Budget", "Ledger", "Mode", "Ticket", "verify"]
