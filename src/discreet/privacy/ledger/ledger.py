"""The ledger: it is written before data is used, kept with the data, and refuses releases past its budgets."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from discreet.errors import BudgetRefused, InvalidInput, LedgerDamaged, LedgerUnavailable, Unsupported
from discreet.file_version import check_file_version
from discreet.logs import get_log
from discreet.part import Count, check_value, from_plain, to_plain
from discreet.privacy.events import Event
from discreet.privacy.ledger import entries
from discreet.privacy.ledger.accounts import Charges
from discreet.privacy.ledger.entries import Budget, Entry, Mode, Ticket
from discreet.privacy.ledger.log import RESTORE, Log, Record
from discreet.privacy.ledger.meters import ANY_GAUSSIAN, best_order
from discreet.privacy.ledger.tally import Tally, digest_releases
from discreet.privacy.question_checks import check_event
from discreet.privacy.release import Release
from discreet.validation_errors import describe_value

log = get_log(__name__)

WAIT_SECONDS = 30.0


def _as_path(path: Any) -> Path:
    """Return the path of a ledger, or refuse what can't name a file."""
    try:
        place = Path(path)
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):  # said where the file is opened
            place.stat()
    except (TypeError, ValueError, OSError):
        raise InvalidInput(f"path must name a file, and got {describe_value(path)}.") from None
    return place


def _as_releases(releases: Any) -> tuple[Release, ...]:
    """Return what must be a list of releases."""
    if not isinstance(releases, Sequence) or isinstance(releases, str):
        raise InvalidInput(f"releases must be a list of releases, and got {describe_value(releases)}.")
    return tuple(releases)


class Ledger:
    """Budgets, and a durable record of everything spent. Any number of processes may share one ledger file.

    Guarantee: once `reserve` has returned, its releases count for every later reader until they are committed as what
    really happened, or voided. So a process that dies at any point has counted too much, never too little. No
    reservation is admitted that takes any client past any budget.

    This requires that `reserve` is called before the data is used; that a key names one release for ever (the same key
    means the same bytes, so it contains the run's identity); that clients hold disjoint data; and that each list of
    releases contains, for each unit and view it names, everything that this view sees.
    """

    def __init__(self, path: str | Path, *, wait: float = WAIT_SECONDS) -> None:
        self.path = _as_path(path)
        self._log = Log(self.path, wait)
        self._tally: Tally | None = None
        with self._locked_tally(to_write=False):
            pass

    @classmethod
    def create(
        cls,
        path: str | Path,
        budgets: Sequence[Budget],
        mode: Mode = "plan",
        *,
        tuned_to: Event = ANY_GAUSSIAN,
        on_word_of: Sequence[str] = (),
    ) -> "Ledger":
        """Create a new ledger file. An existing file is never changed.

        Args:
            path: The file to create.
            budgets: At least one, each for another unit, relation, view or set of clients.
            mode: "plan" for one run whose prices are fixed before it starts (the tightest ε); "filter" for adaptive
                plans, and for a ledger that several runs share, since later runs are planned after seeing earlier ones.
            tuned_to: The event for which a filter is tightest. It is sound for all events.
            on_word_of: A user's own parts that only declare what is counted here. No other run can join such a ledger.

        Raises:
            InvalidInput: The file exists, or the budgets are empty or repeated.
        """
        place = _as_path(path)
        if not isinstance(budgets, Sequence) or not all(isinstance(budget, Budget) for budget in budgets):
            raise InvalidInput(f"budgets must be a list of budgets, and got {describe_value(budgets)}.")
        check_value("mode", Mode, mode)
        check_event(tuned_to)
        if not budgets:
            raise InvalidInput(
                "A ledger needs at least one budget.", fix="Name a unit, relation, view, epsilon, delta."
            )
        if len({(budget.unit, budget.relation, budget.view, budget.clients) for budget in budgets}) < len(budgets):
            raise InvalidInput("Two budgets are for the same unit, relation and view.", fix="Keep the smaller one.")
        orders = tuple(best_order(budget, tuned_to) for budget in budgets) if mode == "filter" else ()
        header = entries.OpenEntry(mode=mode, budgets=tuple(budgets), orders=orders, on_word_of=tuple(on_word_of))
        Log.create(place, to_plain(header))
        log.debug("ledger created", path=place)
        return cls(place)

    @classmethod
    def open(cls, path: str | Path) -> "Ledger":
        """Open an existing ledger, and check its whole chain."""
        return cls(path)

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """The budgets as they hold now."""
        with self._locked_tally(to_write=False) as tally:
            return tally.budgets

    @property
    def mode(self) -> Mode:
        """How the ledger counts: as a filter, or the rounds of a plan."""
        with self._locked_tally(to_write=False) as tally:
            return tally.header.mode

    @property
    def on_word_of(self) -> tuple[str, ...]:
        """A user's own parts that only declare what is counted here."""
        with self._locked_tally(to_write=False) as tally:
            return tally.header.on_word_of

    def reserve(self, key: str, releases: Sequence[Release]) -> Ticket:
        """Reserve releases before data is used. They count from now on.

        The same key with the same releases returns the same ticket and costs nothing.

        Args:
            key: A name for these releases that is never used for others; include the run's identity.
            releases: Everything that each unit and view named in them will see.

        Raises:
            BudgetRefused: A budget would be exceeded. Nothing is recorded.
            InvalidInput: The key is already used for other releases.
        """
        entry = entries.ReserveEntry(key=key, releases=_as_releases(releases))
        self._price_unlocked(entry)
        with self._locked_tally(to_write=True) as tally:
            reservation = tally.find_reservation(key)
            if reservation is None:
                charges = tally.charges_for(entry.releases)
                try:
                    tally.admit(entry.releases, charges)
                except BudgetRefused:
                    log.warning("ledger refused", path=self.path)
                    raise
                record = self._write(tally, entry, charges)
                log.debug("ledger reserved", path=self.path, line=record.seq + 1)
                return Ticket(key=key, seq=record.seq, hash=record.hash)
            if reservation.reserved != digest_releases(to_plain(entry)["releases"]):
                raise InvalidInput(
                    f"The key {key!r} is already used for other releases.",
                    fix="Give each round of each run its own key.",
                )
            self._log.sync()
            return reservation.ticket

    def check(self, releases: Sequence[Release]) -> None:
        """Refuse releases that a budget could not pay for now. Nothing is recorded.

        Raises:
            BudgetRefused: A budget would be exceeded.
        """
        with self._locked_tally(to_write=False) as tally:
            tally.admit(releases, tally.charges_for(tuple(releases)))

    def is_open(self, key: str) -> bool:
        """Return whether a reservation under this key was neither committed nor voided."""
        with self._locked_tally(to_write=False) as tally:
            reservation = tally.find_reservation(key)
            return reservation is not None and reservation.state == "reserved"

    def commit(self, ticket: Ticket, releases: Sequence[Release]) -> None:
        """Record what really happened, even if it cost more than was reserved.

        Committing the same releases again changes nothing.

        Raises:
            InvalidInput: The ticket was committed with other releases.
            Unsupported: A budget can't price the releases.
        """
        releases = tuple(releases)
        entry = entries.CommitEntry(ticket=ticket.seq, releases=releases)
        happened = digest_releases(to_plain(entry)["releases"])
        with self._locked_tally(to_write=True) as tally:
            reservation = tally.reservation_for(ticket)
            if reservation.state == "committed":
                if reservation.committed != happened:
                    raise InvalidInput(f"{ticket.key!r} is already committed, as other releases.", fix="Use a new key.")
                self._log.sync()
                return
            if happened == reservation.reserved:
                record = self._write(tally, entries.CommitEntry(ticket=ticket.seq, releases=None))
            else:
                record = self._write(tally, entry, tally.charges_for(releases))
            log.debug("ledger committed", path=self.path, line=record.seq + 1)

    def void(self, ticket: Ticket) -> None:
        """Cancel a reservation, because nothing of it left the process. Its key can be used again."""
        with self._locked_tally(to_write=True) as tally:
            reservation = tally.reservation_for(ticket)
            if reservation.state == "committed":
                raise InvalidInput(
                    f"{ticket.key!r} is committed: it was released, and can't be taken back.",
                    fix="Void only what never left the process.",
                )
            if reservation.state == "voided":
                self._log.sync()
                return
            record = self._write(tally, entries.VoidEntry(ticket=ticket.seq))
            log.info("ledger voided", path=self.path, line=record.seq + 1)

    def restate(self) -> None:
        """Change budgets for examples and persons from add-or-remove to zero-out.

        How many examples a client holds is public, so releases of examples can keep only the second promise. Past
        spending stays: both relations have the same ε. One line is appended to the file.
        """
        with self._locked_tally(to_write=True) as tally:
            if not tally.restatable_accounts():
                raise InvalidInput(
                    f"No budget of {self.path} promises add_or_remove for examples or persons, so there is nothing to "
                    "restate.",
                    fix="See what it promises: discreet ledger show",
                )
            self._write(tally, entries.RestateEntry())

    def verify(self, *, head: str | None = None, records: int | None = None) -> dict[str, Any]:
        """Check the chain, and return its state as plain data.

        A chain alone can't show that its end was cut off, or that an older copy was put back. Give the head and the
        number of records of a card: the ledger must have had this head at this length; it may have grown since.

        Args:
            head: A hash that must be in the chain.
            records: A number of records that the ledger must have reached.

        Raises:
            InvalidInput: The head is not a hash.
            LedgerDamaged: The ledger is shorter, or has another record there.
        """
        if records is not None:
            check_value("records", Count, records)
        if head is not None and not (isinstance(head, str) and re.fullmatch("[0-9a-fA-F]{64}", head)):
            raise InvalidInput(
                f"A head must be the 64 hexadecimal digits of a record's hash, and got {describe_value(head)}.",
                fix="It is on the card, in the line Ledger.",
            )
        with self._locked_tally(to_write=False) as tally:
            if records is not None and self._log.length < records:
                raise LedgerDamaged(
                    f"{self.path} must have at least {records} records and has {self._log.length}: its end was cut "
                    "off, or an older copy was put back.",
                    fix=RESTORE,
                )
            if head is not None and not self._log.had_head(head, records):
                where = "in its chain" if records is None else f"as its record {records}"
                raise LedgerDamaged(
                    f"{self.path} must have the hash {head} {where} and has not: its end was replaced, or it is "
                    "another ledger.",
                    fix=RESTORE,
                )
            return self._chain_summary(tally)

    def durable_end(self) -> tuple[int, str]:
        """Return the number of records and the hash of the last one, after flushing them to the disk."""
        with self._locked_tally(to_write=False):
            self._log.sync()
            return self._log.length, self._log.head

    def summary(self, *, by_client: bool = False) -> dict[str, Any]:
        """Return the state of the ledger as plain data: its chain, its reservations and the spending of each budget.

        Outstanding reservations count as spent. `by_client` adds an entry for each named client.
        """
        with self._locked_tally(to_write=False) as tally:
            budgets = tally.budget_summaries()
            if by_client:
                for budget, own in zip(budgets, tally.by_client(), strict=True):
                    budget["by_client"] = own
            return {
                **self._chain_summary(tally),
                "created": tally.created,
                "mode": tally.header.mode,
                "releases": tally.counts(),
                "budgets": budgets,
                **({"on_word_of": list(tally.header.on_word_of)} if tally.header.on_word_of else {}),
            }

    def _price_unlocked(self, entry: entries.ReserveEntry) -> None:
        """Price a reservation before the file is locked, so that other processes don't wait for the accountants.

        Nothing is decided here: under the lock the same question is asked of what the file then holds. What fits stays
        known, so the answer takes no time unless others have written meanwhile.
        """
        with self._locked_tally(to_write=False) as tally:
            pass
        with self._log.mutex, suppress(BudgetRefused, Unsupported):
            if tally.find_reservation(entry.key) is None:
                tally.admit(entry.releases, tally.charges_for(entry.releases))

    def _chain_summary(self, tally: Tally) -> dict[str, Any]:
        return {
            "path": str(self.path),
            "records": self._log.length,
            "head": self._log.head,
            "torn_bytes": len(self._log.torn),
            "recovered": tally.recovered,
            "code": [{"code": code, "lines": lines} for code, lines in tally.lines_by_code.items()],
            "outstanding": [{"key": ticket.key, "line": ticket.seq + 1} for ticket in tally.outstanding_tickets()],
        }

    @contextmanager
    def _locked_tally(self, *, to_write: bool) -> Iterator[Tally]:
        """Lock the file, read its new lines, and yield the tally of all lines."""
        with self._log.lock(to_write=to_write):
            for record in self._log.read_new_records():
                self._count(record)
            if self._tally is None:
                raise LedgerDamaged(
                    f"{self.path} is {'not a ledger, or has lost its first line' if self._log.torn else 'empty'}; "
                    "every ledger begins with its budgets.",
                    fix=f"Check the path. If this was a ledger: {RESTORE}",
                )
            yield self._tally

    def _count(self, record: Record) -> None:
        if record.seq == 0:
            self._check_version(record)
        try:
            entry = from_plain(Entry, record.body)
            if self._tally is not None:
                self._tally.apply(entry, record)
            elif isinstance(entry, entries.OpenEntry):
                self._tally = Tally(entry, created=record.at, lines_by_code=Counter([record.code]))
            else:
                raise InvalidInput(f"it says {entry.type!r}, and the first line opens.")
        except InvalidInput as error:
            raise LedgerDamaged(
                f"Line {record.seq + 1} of {self.path} is whole, but can't be understood: {error}",
                fix="If a newer discreet wrote it, use that one.",
            ) from None

    def _check_version(self, record: Record) -> None:
        """Refuse a ledger of another form in words. It is not damaged, and must not be repaired."""
        try:
            check_file_version(record.body, self.path)
        except InvalidInput as error:
            raise LedgerUnavailable(error.problem, fix=error.fix) from None

    def _write(self, tally: Tally, entry: Entry, charges: list[Charges] | None = None) -> Record:
        record = self._log.append(to_plain(entry))
        tally.apply(entry, record, charges)
        return record


def verify(path: str | Path) -> dict[str, Any]:
    """Check a ledger's whole chain and all of its lines, and return the state of the chain as plain data.

    Raises:
        LedgerDamaged: It names the first line that was changed or can't be understood.
    """
    return Ledger(path).verify()
