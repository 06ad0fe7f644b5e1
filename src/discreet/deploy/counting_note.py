"""A node's note of the ledger and the day on which it counted last: neither may disappear or go back."""

import json
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from discreet.deploy.ledger_counter import LedgerCounter
from discreet.deploy.policy import PolicyRefusal
from discreet.durable_files import OWNER, write_durably
from discreet.errors import LedgerDamaged
from discreet.json_reader import parse_json


@dataclass(frozen=True)
class CountingNote:
    """The file counting.json in a client's folder, with the node's counter of its ledgers."""

    path: Path
    counter: LedgerCounter

    def write(self, ledger: Path, day: date) -> None:
        """Store the ledger's name and the day, before anything is counted.

        From then on the node's counter must be there too.
        """
        noted = {"ledger": ledger.name, "day": day.isoformat(), "counter": self.counter.path.name}
        content = json.dumps(noted).encode()
        if not self.path.exists() or self.path.read_bytes() != content:
            write_durably(self.path, content, OWNER)

    def check(self, ledger: Path, day: date) -> None:
        """Refuse a ledger that has disappeared, and a clock that was set back: either would begin an empty ledger.

        Raises:
            PolicyRefusal: The ledger is gone, or the node has counted on a later day.
            LedgerDamaged: The note can't be read, or the node's counter is gone or can't be read.
        """
        if not self.path.exists():
            return
        noted = self._read()
        if "counter" in noted:  # notes of older versions have none
            self.counter.check_presence()
        if (noted["ledger"] == ledger.name or self.counter.knows(ledger)) and not ledger.exists():
            raise PolicyRefusal(
                f"{ledger.name}, in which this node has counted, is gone.",
                fix="Put it back, or correct `ledgers` in policy.toml. Without it nobody knows what was spent.",
            )
        if day + timedelta(days=1) < date.fromisoformat(noted["day"]):
            raise PolicyRefusal(
                f"This machine's clock says {day}, and this node has counted on {noted['day']}.",
                fix="If this clock is behind, set it. If it is right and was ahead then, "
                + self._clock_remedy(ledger, noted["ledger"]),
            )

    def _read(self) -> dict[str, str]:
        def build(noted: Any) -> dict[str, str]:
            date.fromisoformat(noted["day"])
            return {"ledger": str(noted["ledger"]), **noted}

        damaged = LedgerDamaged(
            f"{self.path} must have the ledger and the day on which this node counted last, and can't be read.",
            fix="Put its newest copy back, or enroll again in a new folder. Without it nobody knows whether the ledger "
            "or the clock was set back.",
        )
        return parse_json(self.path.read_bytes(), build, damaged)

    def _clock_remedy(self, ledger: Path, counted: str) -> str:
        """Say what the owner does after a clock that was ahead counted in the ledger `counted`.

        What was spent must stay counted, and a period that was spent in two ledgers can't go on with one of them.
        """
        delete = f"delete {self.path.name} beside policy.toml"
        if counted == ledger.name:
            return f"{delete}."
        if ledger.exists():
            return f"{delete} when the period of {ledger.name} has ended: {counted} counted what was spent in it too."
        return f"rename {counted} to {ledger.name}, so that what was spent stays counted, and {delete}."
