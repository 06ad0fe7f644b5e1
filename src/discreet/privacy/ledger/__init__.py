"""The privacy ledger: every release is on disk before it is made, and refused past the budget."""

from discreet.privacy.ledger.entries import Budget, Mode, Ticket
from discreet.privacy.ledger.ledger import Ledger, verify

__all__ = ["Budget", "Ledger", "Mode", "Ticket", "verify"]
