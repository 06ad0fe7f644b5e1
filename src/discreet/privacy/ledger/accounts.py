"""One budget's accounts: what everyone owes alike, what each named client owes beyond it, and what still fits."""

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
_FURTHEST = 2**40  # a step that fits so often costs nothing that anyone would count


class Overrun(NamedTuple):
    """A reservation that does not fit: what would be reached, for whom (None: everyone), and how often it would fit."""

    epsilon: float
    client: int | None
    asked: int
    fits: int


class Spent(NamedTuple):
    """The largest ε of any client, and which client it is (None: everyone who isn't named)."""

    epsilon: float
    client: int | None


class Accounts:
    """A budget holds when it holds for every client: their data are disjoint, so the largest account decides."""

    def __init__(self, budget: Budget, prices: PriceList, meter: Meter) -> None:
        self.budget = budget
        self._covered = None if budget.clients is None else frozenset(budget.clients)
        self._prices = prices
        self._meter = meter
        self._room = _Room(meter, budget.epsilon)
        self._everyone: Bill = ()
        self._own: dict[int, Bill] = {}
        self._held: Counter[Bill] = Counter()  # how many clients owe each bill of their own

    @property
    def shows_removals(self) -> bool:
        """Whether the budget promises what no release of examples keeps: that a removed one is hidden."""
        return self.budget.relation == "add_or_remove" and self.budget.unit != "client"

    def restate(self) -> None:
        """Promise zero-out instead; bills stay as they are, since both relations have the same price."""
        self.budget = replace(self.budget, relation="zero_out")

    @property
    def clients(self) -> int:
        return len(self._own)

    def read(self, releases: Sequence[Release]) -> Charges:
        """What these releases of one reservation add to each account."""
        added: Charges = {}
        for clients, event, relation in charges(self.budget, releases):
            bill = self._prices.bill(event, relation)
            for client in (None,) if clients is None else clients:
                if client is None or self._covered is None or client in self._covered:
                    added[client] = add_bills(added[client], bill) if client in added else bill
        return added

    def overrun(self, added: Charges) -> Overrun | None:
        """The first account that these charges would take past the budget. Accounts they don't touch don't matter."""
        for_all = added.get(None, ())
        moves: dict[tuple[Bill, Bill], int | None] = {}  # what is owed and what is added, with someone it happens to
        if for_all:
            moves.update({(own, ()): None for own in [(), *self._held]})
        moves.update({(self._own.get(who, ()), bill): who for who, bill in added.items() if who is not None})
        for (own, bill), client in moves.items():
            start, step = add_bills(self._everyone, own), add_bills(bill, for_all)
            if not self._room.fits(start, step):
                one = ((step[0][0], 1),) if len(step) == 1 else step  # 1000 rounds at once: say how many would fit
                asked = step[0][1] if len(step) == 1 else 1
                who = client if client is not None or not own else self._holder(own)
                return Overrun(self._meter.epsilon(add_bills(start, step)), who, asked, self._room.more(start, one))
        return None

    def add(self, added: Charges, times: int = 1) -> None:
        """Charge the accounts; `times=-1` takes a charge back."""
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

    def spent(self) -> Spent:
        bills = {add_bills(self._everyone, own): own for own in [(), *self._held]}
        bill, epsilon = _largest(self._meter, bills)
        return Spent(epsilon, self._holder(bills[bill]) if bills.get(bill) else None)

    def by_client(self) -> dict[tuple[int, ...], float]:
        """What each named client has spent, with what everyone pays; those who owe the same together."""
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
    """How many more of the same still fit: searched for once, and then only counted."""

    def __init__(self, meter: Meter, budget: float) -> None:
        self._meter = meter
        self._budget = budget
        self._limits: dict[tuple[Bill, Bill], tuple[int, bool]] = {}  # how often it fits, and whether that is tight

    def fits(self, start: Bill, step: Bill) -> bool:
        return not step or self._limit(start, step, 1) >= 1

    def more(self, start: Bill, step: Bill) -> int:
        return max(0, self._limit(start, step, _FURTHEST))

    def _limit(self, start: Bill, step: Bill, wanted: int) -> int:
        """How many more of `step` fit after `start`: all of them, or as far as the quick bound sees if that is enough.

        Clients that are at different counts of the same step share one search: it starts from what is not of it.
        """
        already, rest = split_bill(start, step)
        limit, tight = self._limits.get((rest, step)) or (self._search(self._meter.bound, rest, step, 0), False)
        if not tight and limit < min(already + wanted, _FURTHEST):
            limit, tight = self._search(self._meter.epsilon, rest, step, limit), True
        self._limits[rest, step] = limit, tight
        return limit - already

    def _search(self, cost: Callable[[Bill], float], rest: Bill, step: Bill, least: int) -> int:
        """The largest n for which `rest` and n of `step` stay within budget; `least` is known to, or is 0."""

        def fits(n: int) -> bool:
            return cost(add_bills(rest, step, n)) <= self._budget  # NaN does not

        low, stride = least, max(1, least // 8)
        while low < _FURTHEST and fits(low + stride):
            low, stride = low + stride, 2 * stride
        high = low + stride
        while high - low > 1 and low < _FURTHEST:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low


def add_bills(bill: Bill, other: Bill, times: int = 1) -> Bill:
    """Both bills as one; `times=-1` subtracts."""
    if not bill and times == 1:
        return other
    counts = dict(bill)
    for number, count in other:
        counts[number] = counts.get(number, 0) + times * count
    return tuple(sorted((number, count) for number, count in counts.items() if count))


def split_bill(bill: Bill, step: Bill) -> tuple[int, Bill]:
    """How many whole times `bill` holds `step`, and the rest of it."""
    counts = dict(bill)
    whole = min(counts.get(number, 0) // count for number, count in step)
    return whole, add_bills(bill, step, -whole)


def _largest(meter: Meter, bills: Iterable[Bill]) -> tuple[Bill, float]:
    """The bill that costs most. Bounds sort them, so that the slow accountant is asked only for those that may win."""
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
