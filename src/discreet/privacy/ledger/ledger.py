"""The ledger: written before data is touched, kept beside the data, and closed once its budget is spent."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from discreet.errors import InvalidInput, LedgerDamaged
from discreet.part import from_plain, to_plain
from discreet.privacy.events import Event
from discreet.privacy.ledger.accounts import Charges
from discreet.privacy.ledger.entries import Budget, Committed, Entry, Mode, Opened, Reserved, Restated, Ticket, Voided
from discreet.privacy.ledger.log import RESTORE, Log, Record
from discreet.privacy.ledger.meters import ANY_GAUSSIAN, best_order
from discreet.privacy.ledger.tally import Tally, digest_releases
from discreet.privacy.release import Release

WAIT_SECONDS = 30.0


class Ledger:
    """Budgets, and a durable record of everything that was spent of them; any number of processes may share one.

    Guarantee: once `reserve` has returned, its releases count for every reader on any later day, until they are
    committed as what they became, or voided; so a process that dies at any point has counted too much, never too
    little. No reservation is admitted that takes any client past any budget.

    That holds if `reserve` comes before the data is touched, if a key names one release for ever (the same key means
    the same bytes again, so it carries the run's own identity), if clients hold disjoint data, and if each list of
    releases tells, for each unit and view it names, all that this view sees.
    """

    def __init__(self, path: str | Path, *, wait: float = WAIT_SECONDS) -> None:
        self.path = Path(path)
        self._log = Log(self.path, wait)
        self._tally: Tally | None = None
        with self._caught_up(to_write=False):
            pass

    @classmethod
    def create(
        cls, path: str | Path, budgets: Sequence[Budget], mode: Mode = "plan", *, tuned_to: Event = ANY_GAUSSIAN
    ) -> "Ledger":
        """Make a new ledger file; one that exists is never touched.

        mode: "plan" for one run whose prices are fixed before it starts (the tightest ε); "filter" for adaptive plans,
        and for a ledger that several runs share, since later runs are planned after seeing earlier ones.
        tuned_to: the filter is tightest for this event, and sound for all.
        """
        if not budgets:
            raise InvalidInput(
                "A ledger needs at least one budget.", fix="Name a unit, relation, view, epsilon, delta."
            )
        if len({(each.unit, each.relation, each.view, each.clients) for each in budgets}) < len(budgets):
            raise InvalidInput("Two budgets are for the same unit, relation and view.", fix="Keep the smaller one.")
        orders = tuple(best_order(budget, tuned_to) for budget in budgets) if mode == "filter" else ()
        Log.create(Path(path), to_plain(Opened(mode=mode, budgets=tuple(budgets), orders=orders)))
        return cls(path)

    @classmethod
    def open(cls, path: str | Path) -> "Ledger":
        """Read a ledger and check its whole chain."""
        return cls(path)

    @property
    def budgets(self) -> tuple[Budget, ...]:
        with self._caught_up(to_write=False) as tally:
            return tally.budgets

    def reserve(self, key: str, releases: Sequence[Release]) -> Ticket:
        """Ask before data is touched. BudgetRefused if any budget would be passed; nothing is then recorded.

        Asking again with the same key and releases gives the same ticket and costs nothing.
        """
        entry = Reserved(key=key, releases=tuple(releases))
        body = to_plain(entry)
        with self._caught_up(to_write=True) as tally:
            held = tally.under(key)
            if held is None:
                charges = tally.read(entry.releases)
                tally.admit(entry.releases, charges)
                record = self._write(tally, entry, body, charges)
                return Ticket(key=key, seq=record.seq, hash=record.hash)
            if held.reserved != digest_releases(body["releases"]):
                raise InvalidInput(
                    f"The key {key!r} is already used for other releases.",
                    fix="Give each round of each run its own key.",
                )
            self._log.sync()
            return held.ticket

    def is_open(self, key: str) -> bool:
        """Whether something was reserved under this key, of which nobody has said what became of it."""
        with self._caught_up(to_write=False) as tally:
            held = tally.under(key)
            return held is not None and held.state == "reserved"

    def commit(self, ticket: Ticket, releases: Sequence[Release]) -> None:
        """Record what really happened, even if it cost more than was reserved: it did happen.

        The same again changes nothing; something else is an error, and so is a list that a budget can't read.
        """
        releases = tuple(releases)
        entry = Committed(ticket=ticket.seq, releases=releases)
        body = to_plain(entry)
        happened = digest_releases(body["releases"])
        with self._caught_up(to_write=True) as tally:
            held = tally.of(ticket)
            if held.state == "committed":
                if held.committed != happened:
                    raise InvalidInput(f"{ticket.key!r} is already committed, as other releases.", fix="Use a new key.")
                self._log.sync()
                return
            if happened == held.reserved:
                entry = Committed(ticket=ticket.seq, releases=None)
                self._write(tally, entry, to_plain(entry))
            else:
                self._write(tally, entry, body, tally.read(releases))

    def void(self, ticket: Ticket) -> None:
        """Take a reservation back, because nothing of it left the process; its key is then free again."""
        with self._caught_up(to_write=True) as tally:
            held = tally.of(ticket)
            if held.state == "committed":
                raise InvalidInput(
                    f"{ticket.key!r} is committed: it was released, and can't be taken back.",
                    fix="Void only what never left the process.",
                )
            if held.state == "voided":
                self._log.sync()
                return
            entry = Voided(ticket=ticket.seq)
            self._write(tally, entry, to_plain(entry))

    def restate(self) -> None:
        """Let the budgets for examples and persons promise zero-out, where they promised add-or-remove.

        How many examples a client holds is public, so releases of examples keep the one and not the other. What was
        spent stays spent: both have the same ε. Nothing of the file changes but for one line more.
        """
        with self._caught_up(to_write=True) as tally:
            if not tally.restatable():
                raise InvalidInput(
                    f"No budget of {self.path} promises add_or_remove for examples or persons, so there is nothing to "
                    "restate.",
                    fix="See what it promises: discreet ledger show",
                )
            entry = Restated()
            self._write(tally, entry, to_plain(entry))

    def verify(self) -> dict[str, Any]:
        """The state of the chain, as plain data. Compare `head` and `records` with those on a card: a chain can't show
        by itself that its end was cut off."""
        with self._caught_up(to_write=False) as tally:
            return self._chain(tally)

    def summary(self, *, by_client: bool = False) -> dict[str, Any]:
        """All that a person asks of a ledger, as plain data: its chain, its reservations, and what each budget has
        spent, with outstanding reservations counted as spent; `by_client` adds a line for each named client."""
        with self._caught_up(to_write=False) as tally:
            budgets = tally.standing()
            if by_client:
                for budget, own in zip(budgets, tally.by_client(), strict=True):
                    budget["by_client"] = own
            return {
                **self._chain(tally),
                "created": tally.created,
                "mode": tally.header.mode,
                "releases": tally.counts(),
                "budgets": budgets,
            }

    def _chain(self, tally: Tally) -> dict[str, Any]:
        return {
            "path": str(self.path),
            "records": self._log.length,
            "head": self._log.head,
            "torn_bytes": len(self._log.torn),
            "recovered": tally.recovered,
            "outstanding": [{"key": ticket.key, "line": ticket.seq + 1} for ticket in tally.outstanding()],
        }

    @contextmanager
    def _caught_up(self, *, to_write: bool) -> Iterator[Tally]:
        """The tally of all lines that are in the file by now, which stays locked meanwhile."""
        with self._log.held(to_write=to_write):
            for record in self._log.unread():
                self._count(record)
            if self._tally is None:
                raise LedgerDamaged(
                    f"{self.path} is {'no ledger, or has lost its first line' if self._log.torn else 'empty'}; "
                    "every ledger begins with its budgets.",
                    fix=f"Check the path. If this was a ledger: {RESTORE}",
                )
            yield self._tally

    def _count(self, record: Record) -> None:
        try:
            entry = from_plain(Entry, record.body)
            if self._tally is not None:
                self._tally.apply(entry, record)
            elif isinstance(entry, Opened):
                self._tally = Tally(entry, created=record.at)
            else:
                raise InvalidInput(f"it says {entry.type!r}, and the first line opens.")
        except InvalidInput as error:
            raise LedgerDamaged(
                f"Line {record.seq + 1} of {self.path} is whole, but can't be understood: {error}",
                fix="If a newer discreet wrote it, use that one.",
            ) from None

    def _write(self, tally: Tally, entry: Entry, body: dict[str, Any], charges: list[Charges] | None = None) -> Record:
        record = self._log.append(body)
        tally.apply(entry, record, charges)
        return record


def verify(path: str | Path) -> dict[str, Any]:
    """Check a ledger's whole chain, and that its lines make sense; LedgerDamaged names the first that doesn't."""
    return Ledger(path).verify()
