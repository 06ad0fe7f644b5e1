"""What the lines of a ledger add up to: who owes what, and which reservations are still outstanding."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from discreet.errors import BudgetRefused, InvalidInput, LedgerDamaged, Unsupported
from discreet.part import to_plain
from discreet.privacy.ledger.accounts import Accounts, Charges, Overrun
from discreet.privacy.ledger.entries import (
    Budget,
    Committed,
    Entry,
    Opened,
    Recovered,
    Reserved,
    Restated,
    Ticket,
    Voided,
)
from discreet.privacy.ledger.log import RESTORE, Record
from discreet.privacy.ledger.meters import Filter, Plan, PriceList
from discreet.privacy.release import Release

State: TypeAlias = Literal["reserved", "committed", "voided"]


@dataclass
class Reservation:
    """One reservation's life. Its charges are kept until it is committed: until then they may be taken back."""

    ticket: Ticket
    reserved: str  # the digests of what was reserved, and of what was committed
    charges: list[Charges]
    adaptive: bool
    state: State = "reserved"
    committed: str = ""


@dataclass
class Tally:
    """Reads entries in the order of the log. What is reserved counts like what is committed, until it is voided."""

    header: Opened
    created: str
    recovered: int = 0
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
        return tuple(book.budget for book in self._books)

    def restatable(self) -> list[Accounts]:
        """The accounts whose budgets promise that a removed example, or person, is hidden."""
        return [book for book in self._books if book.shows_removals]

    def under(self, key: str) -> Reservation | None:
        """What is reserved or committed under this key; a voided reservation leaves its key free."""
        held = self._by_key.get(key)
        return None if held is None or held.state == "voided" else held

    def of(self, ticket: Ticket) -> Reservation:
        held = self._by_seq.get(ticket.seq)
        if held is None or held.ticket != ticket:
            raise InvalidInput(
                f"The ticket for {ticket.key!r} is not of this ledger.", fix="Commit where it was reserved."
            )
        return held

    def outstanding(self) -> list[Ticket]:
        return [held.ticket for held in self._by_seq.values() if held.state == "reserved"]

    def counts(self) -> dict[State, int]:
        counted = Counter(held.state for held in self._by_seq.values())
        return {"committed": counted["committed"], "reserved": counted["reserved"], "voided": counted["voided"]}

    def read(self, releases: Sequence[Release]) -> list[Charges]:
        """What these releases cost each budget; Unsupported where a budget can't be answered for."""
        return [book.read(releases) for book in self._books]

    def admit(self, releases: Sequence[Release], charges: list[Charges]) -> None:
        """Raise unless every budget can pay; nothing changes."""
        if self.header.mode == "plan" and (self._adaptive or _adaptive(releases)):
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
        """Count one more line; `charges` saves reading its releases again.

        A line that can't follow the ones before it is damage, and changes nothing.
        """
        match entry:
            case Reserved():
                self._reserve(entry, record, charges or self.read(entry.releases))
            case Committed():
                self._commit(entry, record, charges)
            case Voided():
                held = self._settled(entry.ticket, record, {"reserved"})
                self._charge(held.charges, times=-1)
                held.state = "voided"
            case Restated():
                for book in self.restatable():
                    book.restate()
            case Recovered():
                self.recovered += 1
            case Opened():
                raise LedgerDamaged(f"Line {record.seq + 1} opens the ledger again.", fix=RESTORE)

    def standing(self) -> list[dict[str, Any]]:
        """Each budget and what is spent of it, as plain data. This asks the accountants."""
        return [self._standing(position, book) for position, book in enumerate(self._books)]

    def by_client(self) -> list[list[dict[str, Any]]]:
        """For each budget what its named clients have spent, the most first. This asks the accountants for each."""
        return [
            [
                {"clients": list(clients), "spent": spent, "remaining": max(0.0, book.budget.epsilon - spent)}
                for clients, spent in sorted(book.by_client().items(), key=lambda each: -each[1])
            ]
            for book in self._books
        ]

    def _reserve(self, entry: Reserved, record: Record, charges: list[Charges]) -> None:
        if self.under(entry.key):
            raise LedgerDamaged(f"Line {record.seq + 1} reserves {entry.key!r} a second time.", fix=RESTORE)
        self._charge(charges)
        ticket = Ticket(key=entry.key, seq=record.seq, hash=record.hash)
        held = Reservation(ticket, digest_releases(record.body["releases"]), charges, _adaptive(entry.releases))
        self._by_seq[record.seq] = self._by_key[entry.key] = held

    def _commit(self, entry: Committed, record: Record, charges: list[Charges] | None) -> None:
        held = self._settled(entry.ticket, record, {"reserved", "voided"})
        if entry.releases is not None:
            after = charges or self.read(entry.releases)
            held.adaptive = _adaptive(entry.releases)
            if held.state == "reserved":
                self._charge(held.charges, times=-1)
            self._charge(after)
        elif held.state == "voided":
            self._charge(held.charges)
        held.committed = held.reserved if entry.releases is None else digest_releases(record.body["releases"])
        held.state, held.charges = "committed", []
        self._adaptive |= held.adaptive

    def _settled(self, seq: int, record: Record, states: set[State]) -> Reservation:
        held = self._by_seq.get(seq)
        if held is None or held.state not in states:
            raise LedgerDamaged(
                f"Line {record.seq + 1} settles line {seq + 1}, which is no open reservation.", fix=RESTORE
            )
        return held

    def _charge(self, charges: list[Charges], times: int = 1) -> None:
        for book, added in zip(self._books, charges, strict=True):
            book.add(added, times)

    def _standing(self, position: int, book: Accounts) -> dict[str, Any]:
        spent = book.spent()
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
        waiting, made = counts["reserved"], counts["committed"] + counts["reserved"]
        so_far = f"{made} release was made" if made == 1 else f"{made} releases were made"
        if waiting:
            so_far += f", {waiting} of them reserved and not committed"
        for_whom = "" if overrun.client is None else f" for client {overrun.client}"
        what = f"{overrun.fits} of its {overrun.asked} steps" if overrun.asked > 1 else "no more of this one"
        return BudgetRefused(
            f"This release would raise epsilon to {format_above(overrun.epsilon, budget.epsilon)}{for_whom}, over the "
            f"budget of {budget.epsilon:g} at delta={budget.delta:g} ({budget}). {so_far}; the budget affords {what}.",
            fix="Keep the last model, or plan fewer rounds or more noise."
            + (" Void the reservations of which nothing left the process." if waiting else ""),
        )


def _adaptive(releases: Sequence[Release]) -> bool:
    return any(release.adaptive for release in releases)


def digest_releases(releases: Sequence[dict[str, Any]]) -> str:
    """One short name for these releases, from their plain data: the same releases have the same."""
    return hashlib.sha256(json.dumps(list(releases), separators=(",", ":")).encode()).hexdigest()


def format_above(value: float, limit: float) -> str:
    """`value` in as few digits, from four, as show that it is more than `limit`."""
    for digits in range(4, 17):
        if not float(text := f"{value:.{digits}g}") <= limit:
            break
    return text
