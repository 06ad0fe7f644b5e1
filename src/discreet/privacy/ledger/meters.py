"""The ε of an account: by plan (tight, for prices fixed in advance) or by filter (for prices chosen adaptively)."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInput, Unsupported
from discreet.privacy import accountant, rdp
from discreet.privacy.events import Composed, Event, GaussianNoise, Repeated, Step, steps
from discreet.privacy.ledger.entries import Budget
from discreet.privacy.release import Relation

Floats: TypeAlias = NDArray[np.float64]
Bill: TypeAlias = tuple[tuple[int, int], ...]
"""The steps of an account: sorted pairs of (number in the price list, count). Equal bills have equal cost."""

ANY_GAUSSIAN = GaussianNoise(noise_multiplier=1.0)
_QUICK_ORDERS = np.array([1.5, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 256, 512, np.inf])


class PriceList:
    """The distinct steps that one budget has met, by number, so that ε is computed once per bill, not per client."""

    def __init__(self) -> None:
        self.entries: list[tuple[Step, Relation]] = []
        self._numbers: dict[tuple[Step, Relation], int] = {}

    def bill(self, event: Event, relation: Relation) -> Bill:
        """Return the event's steps by their numbers; new steps get the next number."""
        return tuple(sorted((self._number(step, relation), count) for step, count in _step_counts(event)))

    def _number(self, step: Step, relation: Relation) -> int:
        number = self._numbers.setdefault((step, relation), len(self.entries))
        if number == len(self.entries):
            self.entries.append((step, relation))
        return number


class Meter(Protocol):
    """The cost of a bill at the budget's δ. Both values are certified."""

    def bound(self, bill: Bill) -> float:
        """Return a quick upper bound, never below `epsilon`."""

    def epsilon(self, bill: Bill) -> float:
        """Return the bill's ε."""

    def fits(self, bill: Bill, budget: float) -> bool:
        """Return whether the bill's ε is certified to be at most `budget`, without computing it if possible."""


class RenyiMeter:
    """The best Rényi bound of a bill at a few fixed orders. Each step's curve is computed once."""

    def __init__(self, prices: PriceList, orders: Floats, delta: float) -> None:
        self._prices = prices
        self._orders = orders
        self._delta = delta
        self._curves: dict[int, Floats] = {}

    def bound(self, bill: Bill) -> float:
        if not bill:
            return 0.0
        total = sum((count * self._curve(number) for number, count in bill), start=np.zeros_like(self._orders))
        least = float(np.min(rdp.to_epsilon(self._orders, total, self._delta)))
        return math.inf if math.isnan(least) else least

    def _curve(self, number: int) -> Floats:
        if number not in self._curves:
            step, relation = self._prices.entries[number]
            try:
                self._curves[number] = rdp.curve(step, self._orders, relation)
            except InvalidInput:  # an event that can't be priced exceeds every budget
                self._curves[number] = np.full_like(self._orders, np.inf)
        return self._curves[number]


class Filter(RenyiMeter):
    """The Rényi privacy filter: one order, fixed before any data was seen.

    Guarantee: (epsilon, delta) holds for the whole sequence even if every event, and whether to go on, was chosen
    after looking at all earlier releases (Feldman & Zrnic, 2021; Lécuyer, 2021).
    """

    def __init__(self, budget: Budget, prices: PriceList, order: float) -> None:
        super().__init__(prices, np.array([order]), budget.delta)

    def epsilon(self, bill: Bill) -> float:
        return self.bound(bill)

    def fits(self, bill: Bill, budget: float) -> bool:
        return self.bound(bill) <= budget


class Plan(RenyiMeter):
    """Composition of events whose prices were fixed in advance, by the tightest certified accountant.

    Guarantee: never below the true ε of the bill. A few Rényi orders are tried first, since they take microseconds;
    the privacy-loss distribution is computed only where they don't suffice.
    """

    def __init__(self, budget: Budget, prices: PriceList) -> None:
        super().__init__(prices, _QUICK_ORDERS, budget.delta)
        self._cache: dict[Bill, float] = {(): 0.0}

    def epsilon(self, bill: Bill) -> float:
        if bill not in self._cache:
            tight, bound = self._tight_epsilon(bill), self.bound(bill)
            self._cache[bill] = bound if bound <= tight else tight  # a NaN stays NaN, and is refused
        return self._cache[bill]

    def fits(self, bill: Bill, budget: float) -> bool:
        if bill not in self._cache and self.bound(bill) > budget:
            try:
                event, relation = self._compose(bill)
                return accountant.holds(event, budget, self._delta, relation)
            except InvalidInput:  # an event that can't be priced exceeds every budget
                return False
        return self.epsilon(bill) <= budget if bill in self._cache else True

    def _tight_epsilon(self, bill: Bill) -> float:
        try:
            event, relation = self._compose(bill)
            return accountant.epsilon(event, self._delta, relation)
        except InvalidInput:  # an event that can't be priced exceeds every budget
            return math.inf

    def _compose(self, bill: Bill) -> tuple[Event, Relation]:
        entries = [(self._prices.entries[number], count) for number, count in bill]
        # The accountant composes under one relation. Replacement covers adding and removing (with a contribution of
        # zero on one side), so it is sound for a bill that mixes them.
        relation: Relation = "replace" if any(priced == "replace" for (_, priced), _ in entries) else "add_or_remove"
        return Composed(events=tuple(Repeated(count=count, event=step) for (step, _), count in entries)), relation


def best_order(budget: Budget, tuned_to: Event = ANY_GAUSSIAN) -> float:
    """Return the Rényi order at which the budget affords `tuned_to` most often. Any Gaussian gives the same order."""
    largest = 10 + 4 * math.log(1 / budget.delta) / budget.epsilon  # beyond it the conversion is nearly free
    orders = 1 + np.geomspace(1e-3, largest, 500)
    relation: Relation = "replace" if budget.relation == "replace" else "add_or_remove"
    left = budget.epsilon - rdp.to_epsilon(orders, np.zeros_like(orders), budget.delta)
    affords = left / rdp.curve(tuned_to, orders, relation)
    if not affords.max() > 0:
        raise Unsupported(
            "The event that the filter should be tuned to has no Rényi bound at any order.",
            fix="Leave it out; the order is then the best for Gaussian noise.",
        )
    return float(f"{orders[affords.argmax()]:.6g}")


@lru_cache(maxsize=65536)
def _step_counts(event: Event) -> Sequence[tuple[Step, int]]:
    return tuple(steps(event).items())
