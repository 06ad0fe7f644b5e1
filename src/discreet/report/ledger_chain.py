"""Whether the ledger that lies with a run is the one its card speaks of."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from discreet.privacy.guarantee import LedgerMark
from discreet.privacy.ledger.log import Log

WAIT_SECONDS = 5.0


@dataclass(frozen=True)
class Chain:
    """The hashes of a ledger's lines, each checked against the line before."""

    hashes: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read and check the whole file; LedgerDamaged names the first line that was changed."""
        log = Log(path, WAIT_SECONDS)
        with log.held(to_write=False):
            return cls(tuple(record.hash for record in log.unread()))

    @property
    def length(self) -> int:
        return len(self.hashes)

    @property
    def head(self) -> str:
        return self.hashes[-1] if self.hashes else "none"

    def against(self, mark: LedgerMark | None) -> str:
        """In one sentence: an edit shows by itself, and a cut-off end only beside a card."""
        if mark is None:
            return "Every line follows from the one before. No card says how long it was."
        if mark.length > self.length:
            return f"Its end was cut off: {mark.length - self.length:,} of the card's entries are missing."
        if mark.length and self.hashes[mark.length - 1] != mark.head:
            return "It is not the ledger that the card speaks of: the head differs."
        grown = self.length - mark.length
        return "Every line follows from the one before, and it is the ledger that the card speaks of." + (
            f" It has grown by {grown:,} entries since." if grown else ""
        )
