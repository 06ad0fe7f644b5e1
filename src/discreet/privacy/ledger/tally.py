"""What the lines of a ledger add up to: the spending of each budget, and the reservations still outstanding."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from discreet.errors import BudgetRefused, InvalidInput, LedgerDamaged, Unsupported
from discreet.part import to_plain
from discreet.privacy.ledger import entries
from discreet.privacy.ledger.accounts import Accounts, Charges, Overrun
from discreet.privacy.ledger.entries import Budget, Entry, Ticket
from discreet.privacy.ledger.log import RESTORE, Record
from discreet.privacy.ledger.meters import Filter, Plan, PriceList
from discreet.privacy.release import Release

State: TypeAlias = Literal["reserved", "committed", "voided"]


@dataclass
class Reservation:
    """One reservation and its state. Its charges are kept until it is committed, since it may still be voided."""

    ticket: Ticket
    reserved: str  # the digest of the reserved releases
    charges: list[Charges]
    adaptive: bool
    state: State = "reserved"
    committed: str = ""  # the digest of the committed releases


@dataclass
class Tally:
    """The sum of all entries, read in the order of the log. A reservation counts until it is voided."""

    header: entries.OpenEntry
    created: str
    recovered: int = 0
    lines_by_code: Counter[str | None] = field(default_factory=Counter)  # by the stamp of the code that wrote them
    _books: list[Accounts] = field(default_factory=list)
    _by_seq: dict[int, Reservation] = field(default_factory=dict)
    _by_key: dict[str, Reservation] = field(default_factory=dict)
    _adaptive: bool = False

    def __post_init__(self) -> None:
        for position, budget in enumerate(self.header.budgets):
            prices = PriceList()
            by_filter = self.header.mode == "filter"
            meter = Filter(budget, prices, self.header.orders[position]) if by_filter else Plan(budget, prices)
            self._books.append(Accounts(budget, prices, meter))

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """The budgets as they hold now."""
        return tuple(book.budget for book in self._books)

    def restatable_accounts(self) -> list[Accounts]:
        """Return the accounts whose budgets promise to hide a removed example or person."""
        return [book for book in self._books if book.promises_hidden_removals]

    def find_reservation(self, key: str) -> Reservation | None:
        """Return what is reserved or committed under this key. A voided reservation leaves its key free."""
        reservation = self._by_key.get(key)
        return None if reservation is None or reservation.state == "voided" else reservation

    def reservation_for(self, ticket: Ticket) -> Reservation:
        """Return the reservation that gave this ticket; raise InvalidInput if it is from another ledger."""
        reservation = self._by_seq.get(ticket.seq)
        if reservation is None or reservation.ticket != ticket:
            raise InvalidInput(
                f"The ticket for {ticket.key!r} is not from this ledger.", fix="Commit where it was reserved."
            )
        return reservation

    def outstanding_tickets(self) -> list[Ticket]:
        """Return the tickets that were neither committed nor voided."""
        return [reservation.ticket for reservation in self._by_seq.values() if reservation.state == "reserved"]

    def counts(self) -> dict[State, int]:
        """Return how many reservations are in each state."""
        counted = Counter(reservation.state for reservation in self._by_seq.values())
        return {"committed": counted["committed"], "reserved": counted["reserved"], "voided": counted["voided"]}

    def charges_for(self, releases: Sequence[Release]) -> list[Charges]:
        """Return what these releases cost each budget; raise Unsupported where a budget can't price them."""
        return [book.charges_for(releases) for book in self._books]

    def admit(self, releases: Sequence[Release], charges: list[Charges]) -> None:
        """Raise BudgetRefused unless every budget can pay. Nothing is counted yet."""
        if self.header.mode == "plan" and (self._adaptive or _is_adaptive(releases)):
            raise Unsupported(
                "A price was chosen after looking at earlier releases, and this ledger adds up plans that were fixed "
                "before.",
                fix='Make the ledger with mode="filter", which holds for adaptive plans too.',
            )
        for book, added in zip(self._books, charges, strict=True):
            overrun = book.overrun(added)
            if overrun:
                raise self._refusal(book.budget, overrun)

    def apply(self, entry: Entry, record: Record, charges: list[Charges] | None = None) -> None:
        """Count one more line of the log.

        Args:
            charges: The price of its releases, if it is known already.

        Raises:
            LedgerDamaged: The line can't follow the ones before it. Nothing changes.
        """
        self._apply(entry, record, charges)
        self.lines_by_code[record.code] += 1

    def _apply(self, entry: Entry, record: Record, charges: list[Charges] | None) -> None:
        match entry:
            case entries.ReserveEntry():
                self._reserve(entry, record, charges or self.charges_for(entry.releases))
            case entries.CommitEntry():
                self._commit(entry, record, charges)
            case entries.VoidEntry():
                reservation = self._find_unsettled(entry.ticket, record, {"reserved"})
                self._charge(reservation.charges, times=-1)
                reservation.state = "voided"
            case entries.RestateEntry():
                for book in self.restatable_accounts():
                    book.restate()
            case entries.RecoverEntry():
                self.recovered += 1
            case entries.OpenEntry():
                raise LedgerDamaged(f"Line {record.seq + 1} opens the ledger again.", fix=RESTORE)

    def budget_summaries(self) -> list[dict[str, Any]]:
        """Return each budget and its spending as plain data. This runs the accountants."""
        return [self._budget_summary(position, book) for position, book in enumerate(self._books)]

    def by_client(self) -> list[list[dict[str, Any]]]:
        """Return the spending of each budget's named clients, the largest first. This runs the accountants."""
        return [
            [
                {"clients": list(clients), "spent": spent, "remaining": max(0.0, book.budget.epsilon - spent)}
                for clients, spent in sorted(book.by_client().items(), key=lambda item: -item[1])
            ]
            for book in self._books
        ]

    def _reserve(self, entry: entries.ReserveEntry, record: Record, charges: list[Charges]) -> None:
        if self.find_reservation(entry.key):
            raise LedgerDamaged(f"Line {record.seq + 1} reserves {entry.key!r} a second time.", fix=RESTORE)
        self._charge(charges)
        ticket = Ticket(key=entry.key, seq=record.seq, hash=record.hash)
        reservation = Reservation(
            ticket, digest_releases(record.body["releases"]), charges, _is_adaptive(entry.releases)
        )
        self._by_seq[record.seq] = self._by_key[entry.key] = reservation

    def _commit(self, entry: entries.CommitEntry, record: Record, charges: list[Charges] | None) -> None:
        reservation = self._find_unsettled(entry.ticket, record, {"reserved", "voided"})
        if entry.releases is not None:
            after = charges or self.charges_for(entry.releases)
            reservation.adaptive = _is_adaptive(entry.releases)
            if reservation.state == "reserved":
                self._charge(reservation.charges, times=-1)
            self._charge(after)
        elif reservation.state == "voided":
            self._charge(reservation.charges)
        reservation.committed = (
            reservation.reserved if entry.releases is None else digest_releases(record.body["releases"])
        )
        reservation.state, reservation.charges = "committed", []
        self._adaptive |= reservation.adaptive

    def _find_unsettled(self, seq: int, record: Record, states: set[State]) -> Reservation:
        reservation = self._by_seq.get(seq)
        if reservation is None or reservation.state not in states:
            raise LedgerDamaged(
                f"Line {record.seq + 1} settles line {seq + 1}, which is not an open reservation.", fix=RESTORE
            )
        return reservation

    def _charge(self, charges: list[Charges], times: int = 1) -> None:
        for book, added in zip(self._books, charges, strict=True):
            book.add(added, times)

    def _budget_summary(self, position: int, book: Accounts) -> dict[str, Any]:
        spent = book.largest_spending()
        return {
            **to_plain(book.budget),
            "order": self.header.orders[position] if self.header.mode == "filter" else None,
            "spent": spent.epsilon,
            "remaining": max(0.0, book.budget.epsilon - spent.epsilon),
            "largest_client": spent.client,
            "named_clients": book.clients,
        }

    def _refusal(self, budget: Budget, overrun: Overrun) -> BudgetRefused:
        counts = self.counts()
        waiting, total = counts["reserved"], counts["committed"] + counts["reserved"]
        so_far = f"{total} release was made" if total == 1 else f"{total} releases were made"
        if waiting:
            so_far += f", {waiting} of them reserved and not committed"
        for_whom = "" if overrun.client is None else f" for client {overrun.client}"
        what = f"{overrun.affordable} of its {overrun.asked} steps" if overrun.asked > 1 else "no more of this one"
        return BudgetRefused(
            f"This release would raise epsilon to {format_above(overrun.epsilon, budget.epsilon)}{for_whom}, over the "
            f"budget of {budget.epsilon:g} at delta={budget.delta:g} ({budget}). {so_far}; the budget affords {what}.",
            fix="Keep the last model, or plan fewer rounds or more noise."
            + (" Void the reservations of which nothing left the process." if waiting else ""),
        )


def _is_adaptive(releases: Sequence[Release]) -> bool:
    return any(release.adaptive for release in releases)


def digest_releases(releases: Sequence[dict[str, Any]]) -> str:
    """Return the SHA-256 of these releases' plain data."""
    return hashlib.sha256(json.dumps(list(releases), separators=(",", ":")).encode()).hexdigest()


def format_above(value: float, limit: float) -> str:
    """Format `value` in the fewest digits, at least four, that show that it is above `limit`."""
    for digits in range(4, 17):
        if not float(text := f"{value:.{digits}g}") <= limit:
            break
    return text
