"""The hash chain of a run's ledger, compared with the ledger that the card names."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from discreet.privacy.guarantee import LedgerMark
from discreet.privacy.ledger.log import Log

WAIT_SECONDS = 5.0


@dataclass(frozen=True)
class Chain:
    """The hashes of a ledger's lines, each verified against the line before."""

    hashes: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read and verify the whole file.

        Raises:
            LedgerDamaged: If a line was changed; the message names the first one.
        """
        log = Log(path, WAIT_SECONDS)
        with log.lock(to_write=False):
            return cls(tuple(record.hash for record in log.read_new_records()))

    @property
    def length(self) -> int:
        """The number of lines."""
        return len(self.hashes)

    @property
    def head(self) -> str:
        """The hash of the last line."""
        return self.hashes[-1] if self.hashes else "none"

    def is_named_by(self, mark: LedgerMark) -> bool:
        """Whether this is the ledger that a card names, with no entry missing."""
        return mark.length <= self.length and (not mark.length or self.hashes[mark.length - 1] == mark.head)

    def compare_with(self, mark: LedgerMark | None) -> str:
        """Compare the ledger with what the card says about it, and describe the result in one sentence.

        The chain alone detects a changed line; only a card detects that lines are missing at the end.
        """
        if mark is None:
            return "The hash chain is intact. No card says how many entries it had."
        if mark.length > self.length:
            return f"Entries are missing at the end: the card has {mark.length - self.length:,} more."
        if not self.is_named_by(mark):
            return "It is not the ledger that the card names: the head differs."
        added = self.length - mark.length
        return "The hash chain is intact, and it is the ledger that the card names." + (
            f" Since then {added:,} entries were added." if added else ""
        )
