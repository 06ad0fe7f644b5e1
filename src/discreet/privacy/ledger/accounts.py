"""The accounts of one budget: what every client has spent, what named clients spent on top, and what still fits."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from discreet.privacy.ledger.charges import charges
from discreet.privacy.ledger.entries import Budget
from discreet.privacy.ledger.meters import Bill, Meter, PriceList
from discreet.privacy.release import Release

Charges: TypeAlias = dict[int | None, Bill]
_FURTHEST = 2**40  # a step that fits this often costs practically nothing


class Overrun(NamedTuple):
    """A reservation that does not fit a budget.

    Attributes:
        epsilon: The ε that it would reach.
        client: The client that would exceed its budget; None for every client.
        asked: How many times the step was asked for.
        affordable: How many times the step still fits.
    """

    epsilon: float
    client: int | None
    asked: int
    affordable: int


class Spending(NamedTuple):
    """The largest ε of any client, and the client's number; None if it is that of every client not named."""

    epsilon: float
    client: int | None


class Accounts:
    """What each client has spent of one budget.

    Clients hold disjoint data, so a budget holds when it holds for every client: the largest account decides.
    """

    def __init__(self, budget: Budget, prices: PriceList, meter: Meter) -> None:
        self.budget = budget
        self._covered = None if budget.clients is None else frozenset(budget.clients)
        self._prices = prices
        self._meter = meter
        self._room = _Room(meter, budget.epsilon)
        self._everyone: Bill = ()
        self._own: dict[int, Bill] = {}
        self._held: Counter[Bill] = Counter()  # how many named clients have each bill

    @property
    def promises_hidden_removals(self) -> bool:
        """Whether the budget promises to hide a removed example or person, which no release of examples does."""
        return self.budget.relation == "add_or_remove" and self.budget.unit != "client"

    def restate(self) -> None:
        """Change the promise to zero-out. Bills stay as they are, since both relations have the same price."""
        self.budget = replace(self.budget, relation="zero_out")

    @property
    def clients(self) -> int:
        """The number of named clients."""
        return len(self._own)

    def charges_for(self, releases: Sequence[Release]) -> Charges:
        """Return what the releases of one reservation add to each account."""
        added: Charges = {}
        for clients, event, relation in charges(self.budget, releases):
            bill = self._prices.bill(event, relation)
            for client in (None,) if clients is None else clients:
                if client is None or self._covered is None or client in self._covered:
                    added[client] = add_bills(added[client], bill) if client in added else bill
        return added

    def overrun(self, added: Charges) -> Overrun | None:
        """Return the first account that these charges would take past the budget, or None if all of them fit."""
        for_all = added.get(None, ())
        moves: dict[tuple[Bill, Bill], int | None] = {}  # (bill so far, added), with one client it applies to
        if for_all:
            moves.update({(own, ()): None for own in [(), *self._held]})
        moves.update({(self._own.get(who, ()), bill): who for who, bill in added.items() if who is not None})
        for (own, bill), client in moves.items():
            start, step = add_bills(self._everyone, own), add_bills(bill, for_all)
            if not self._room.has_room(start, step):
                one = ((step[0][0], 1),) if len(step) == 1 else step  # of 1000 rounds at once, say how many would fit
                asked = step[0][1] if len(step) == 1 else 1
                who = client if client is not None or not own else self._holder(own)
                return Overrun(
                    self._meter.epsilon(add_bills(start, step)), who, asked, self._room.room_left(start, one)
                )
        return None

    def add(self, added: Charges, times: int = 1) -> None:
        """Charge the accounts. `times=-1` takes a charge back."""
        sums: dict[tuple[Bill, Bill], Bill] = {}
        for client, bill in added.items():
            if client is None:
                self._everyone = add_bills(self._everyone, bill, times)
                continue
            old = self._own.pop(client, ())
            if (old, bill) not in sums:
                sums[old, bill] = add_bills(old, bill, times)
            new = sums[old, bill]
            self._hold(old, -1)
            self._hold(new, 1)
            if new:
                self._own[client] = new

    def largest_spending(self) -> Spending:
        """Return the largest ε spent by any client."""
        bills = {add_bills(self._everyone, own): own for own in [(), *self._held]}
        bill, epsilon = _largest_bill(self._meter, bills)
        return Spending(epsilon, self._holder(bills[bill]) if bills.get(bill) else None)

    def by_client(self) -> dict[tuple[int, ...], float]:
        """Return the total ε of each named client. Clients with the same bill share an entry."""
        owed: dict[Bill, list[int]] = {}
        for client, own in sorted(self._own.items()):
            owed.setdefault(add_bills(self._everyone, own), []).append(client)
        return {tuple(clients): self._meter.epsilon(bill) for bill, clients in owed.items()}

    def _hold(self, bill: Bill, times: int) -> None:
        if bill:
            self._held[bill] += times
            if not self._held[bill]:
                del self._held[bill]

    def _holder(self, own: Bill) -> int:
        return min(client for client, bill in self._own.items() if bill == own)


class _Room:
    """How many more of the same step still fit. What was found to fit is remembered, and then only counted down."""

    def __init__(self, meter: Meter, budget: float) -> None:
        self._meter = meter
        self._budget = budget
        # By (rest of the bill, step): how often the step is known to fit. Clients at different counts share it.
        self._known: dict[tuple[Bill, Bill], int] = {}
        self._ahead: dict[tuple[Bill, Bill], int] = {}  # how far ahead the last evaluation looked
        self._too_many: dict[tuple[Bill, Bill], int] = {}  # how often it was found not to fit

    def has_room(self, start: Bill, step: Bill) -> bool:
        """Return whether `step` still fits after `start`: by the quick bound, or by one evaluation of the tight one."""
        if not step:
            return True
        already, rest = split_bill(start, step)
        if self._known_to_fit(rest, step) > already:
            return True
        # Each time look twice as far ahead as the last time, so that a step that is repeated needs few evaluations.
        # Once that was too far, look half as far: all reservations together do the search of a limit.
        key = rest, step
        half = (self._too_many.get(key, _FURTHEST) - already) // 2
        ahead = min(2 * self._ahead.get(key, 0) + 1, already + 1, max(1, half))
        for n in dict.fromkeys((ahead, 1)):
            if self._fits(rest, step, already + n):
                self._known[key], self._ahead[key] = already + n, n
                return True
            self._too_many[key] = already + n
        return False

    def room_left(self, start: Bill, step: Bill) -> int:
        """Return how many times `step` still fits after `start`."""
        already, rest = split_bill(start, step)
        limit = self._search(lambda n: self._fits(rest, step, n), self._known_to_fit(rest, step))
        self._known[rest, step] = limit
        return max(0, limit - already)

    def _known_to_fit(self, rest: Bill, step: Bill) -> int:
        if (rest, step) not in self._known:
            self._known[rest, step] = self._search(
                lambda n: self._meter.bound(add_bills(rest, step, n)) <= self._budget, 0
            )
        return self._known[rest, step]

    def _fits(self, rest: Bill, step: Bill, n: int) -> bool:
        return self._meter.fits(add_bills(rest, step, n), self._budget)

    def _search(self, fits: Callable[[int], bool], least: int) -> int:
        """Return the largest n that fits; `least` is known to fit."""
        low, stride = least, max(1, least // 8)
        while low < _FURTHEST and fits(low + stride):
            low, stride = low + stride, 2 * stride
        high = low + stride
        while high - low > 1 and low < _FURTHEST:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low


def add_bills(bill: Bill, other: Bill, times: int = 1) -> Bill:
    """Return the sum of both bills; `times=-1` subtracts the second."""
    if not bill and times == 1:
        return other
    counts = dict(bill)
    for number, count in other:
        counts[number] = counts.get(number, 0) + times * count
    return tuple(sorted((number, count) for number, count in counts.items() if count))


def split_bill(bill: Bill, step: Bill) -> tuple[int, Bill]:
    """Return how many whole times `bill` contains `step`, and the rest of the bill."""
    counts = dict(bill)
    whole = min(counts.get(number, 0) // count for number, count in step)
    return whole, add_bills(bill, step, -whole)


def _largest_bill(meter: Meter, bills: Iterable[Bill]) -> tuple[Bill, float]:
    """Return the most expensive bill and its ε.

    Bills are sorted by a quick bound, so that the slow accountant runs only for those that can be the largest.
    """
    worst: Bill = ()
    most = 0.0
    for bound, bill in sorted(((meter.bound(bill), bill) for bill in bills), reverse=True):
        if bound <= most:
            break
        epsilon = meter.epsilon(bill)
        if not epsilon <= most:
            worst, most = bill, epsilon
        if math.isnan(epsilon):  # nothing can be said to exceed it
            break
    return worst, most
