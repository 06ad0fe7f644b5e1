"""A node's own counter of its ledgers: how long each was and how it ended, so that an older copy is noticed."""

import json
import re
from pathlib import Path
from typing import Any

from discreet.durable_files import OWNER, write_durably
from discreet.errors import LedgerDamaged
from discreet.json_reader import parse_json
from discreet.privacy.ledger import Ledger

LOST = (
    "If the newest copy is lost, nobody knows what was spent: enroll again in a new folder, with budgets that leave "
    "room for it."
)


class LedgerCounter:
    """The file counter.json in a client's folder: for each ledger its records and its last hash, as this node left it.

    Guarantee: the counter is written after the ledger's own lines are on disk, so a crash leaves it behind its ledger
    and never ahead. A ledger that is shorter than the counter, or has another line there, is not the one this node
    counted in. Other nodes may have added lines since.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def prepare(self) -> None:
        """Create the file if there is none, so that a file that is missing later was removed."""
        if not self.path.exists():
            write_durably(self.path, b"{}", OWNER)

    def knows(self, ledger: Path) -> bool:
        """Whether this node has counted in this ledger."""
        return ledger.name in self._read()

    def advance(self, ledger: Ledger) -> None:
        """Store where the ledger ends now. Call it after a reservation and after a commit."""
        records, head = ledger.durable_end()
        write_durably(self.path, json.dumps({**self._read(), ledger.path.name: [records, head]}).encode(), OWNER)

    def check(self, ledger: Ledger) -> None:
        """Refuse a ledger that was rolled back or replaced since this node counted in it.

        Raises:
            LedgerDamaged: It is shorter than the counter says, or has another line at that length.
        """
        known = self._read().get(ledger.path.name)
        if known is None:
            return
        try:
            ledger.verify(head=known[1], records=known[0])
        except LedgerDamaged:
            raise LedgerDamaged(
                f"{ledger.path} must continue the {known[0]} lines that this node left in it, by its counter "
                f"{self.path}, and does not: an older copy was put back, or it is another ledger.",
                fix=f"Put the newest copy of {ledger.path.name} back, and leave the counter as it is. {LOST}",
            ) from None

    def check_presence(self) -> None:
        """Refuse a counter that was removed."""
        if not self.path.exists():
            raise LedgerDamaged(
                f"{self.path}, by which this node notices an older copy of its ledger, is gone.",
                fix=f"Put it back, with the newest copy of the ledger. {LOST}",
            )

    def _read(self) -> dict[str, tuple[int, str]]:
        if not self.path.exists():
            return {}

        def build(known: Any) -> dict[str, tuple[int, str]]:
            return {name: (_check_length(records), _check_hash(head)) for name, (records, head) in known.items()}

        damaged = LedgerDamaged(
            f"{self.path} must have the length and the last hash of each ledger, and can't be read.",
            fix=f"Put its newest copy back. {LOST}",
        )
        return parse_json(self.path.read_bytes(), build, damaged)


def _check_length(records: Any) -> int:
    if type(records) is not int or not 1 <= records <= 10**12:  # a bool is an int
        raise ValueError
    return records


def _check_hash(head: Any) -> str:
    if re.fullmatch("[0-9a-f]{64}", head) is None:
        raise ValueError
    return str(head)
