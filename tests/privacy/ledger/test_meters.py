"""What bills cost, how often the accountants are called, and how many more releases fit."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import BudgetRefused, Unsupported
from discreet.privacy import accountant, gaussian, rdp
from discreet.privacy.events import (
    Event,
    GaussianNoise,
    LaplaceNoise,
    PoissonSampled,
    Repeated,
    SampledWithoutReplacement,
)
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger.accounts import _Room, add_bills, split_bill
from discreet.privacy.ledger.meters import Bill, Filter, Plan, PriceList, best_order
from discreet.privacy.ledger.tally import Tally

from .helpers import DELTA, budget, filter_epsilon, gaussian_epsilon, lines, no_disk, release, spend_all, spent_epsilon

SAMPLED = PoissonSampled(sampling_rate=0.1, event=GaussianNoise(noise_multiplier=1.0))
BILLS = st.dictionaries(st.integers(0, 4), st.integers(1, 9), max_size=4).map(lambda each: tuple(sorted(each.items())))


class CallCounter:
    """The accountant, with a count of its calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        self._epsilon = accountant.epsilon
        monkeypatch.setattr(accountant, "epsilon", self)

    def __call__(self, *args: Any) -> float:
        self.asked += 1
        return self._epsilon(*args)


@given(BILLS, BILLS, st.integers(1, 5))
def test_bills_add_and_subtract_like_counts(bill: Bill, other: Bill, times: int):
    assert add_bills(add_bills(bill, other, times), other, -times) == bill
    assert add_bills(bill, other) == add_bills(other, bill)


@given(BILLS, BILLS.filter(bool))
def test_a_bill_splits_into_whole_steps_and_a_rest(bill: Bill, step: Bill):
    whole, rest = split_bill(bill, step)
    assert add_bills(rest, step, whole) == bill
    assert split_bill(rest, step)[0] == 0


@given(st.floats(0.1, 30), st.floats(0.001, 2), st.integers(0, 40))
def test_a_search_finds_the_last_that_fits(limit: float, price: float, already: int):
    class Linear:
        def bound(self, bill: Bill) -> float:
            return 1.3 * self.epsilon(bill)

        def epsilon(self, bill: Bill) -> float:
            return price * dict(bill).get(0, 0)

        def fits(self, bill: Bill, budget: float) -> bool:
            return self.epsilon(bill) <= budget

    room = _Room(Linear(), limit)
    start: Bill = ((0, already),) if already else ()
    last = max(n for n in range(40_000) if price * n <= limit)
    assert room.has_room(start, ((0, 1),)) == (already + 1 <= last)
    assert room.room_left(start, ((0, 1),)) == max(0, last - already)


def test_a_plan_is_as_tight_as_the_accountant_and_a_filter_less():
    prices = PriceList()
    bill = prices.bill(SAMPLED, "add_or_remove")
    fifty = add_bills((), bill, 50)
    assert Plan(budget(8.0), prices).epsilon(fifty) == pytest.approx(5.1483, abs=1e-3)
    planned = Filter(budget(5.9), prices, best_order(budget(5.9), SAMPLED))
    assert 5.1483 < planned.epsilon(fifty) <= 5.8854  # dp-accounting's RDP, at the best of fewer orders


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 4.0, 30.0, 1000.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
def test_the_order_of_a_filter_affords_as_many_gaussians_as_any(epsilon: float, delta: float):
    order = best_order(budget(epsilon, delta=delta))
    affords = (epsilon - max(0.0, filter_epsilon(order, 0.0, delta))) / order
    others = 1 + np.geomspace(1e-4, 1e5, 5000)
    best = max((epsilon - max(0.0, filter_epsilon(other, 0.0, delta))) / other for other in others)
    assert affords >= 0.99 * best > 0


def test_a_filter_can_be_tuned_to_what_is_planned(tmp_path: Path):
    made = []
    tuned: dict[str, dict[str, Any]] = {"gaussian": {}, "sampled": {"tuned_to": SAMPLED}}
    for name, options in tuned.items():
        ledger = Ledger.create(tmp_path / name, [budget(4.0)], "filter", **options)
        made.append(spend_all(ledger, release(SAMPLED))[0])
    assert made == [5, 16]  # at its best order RDP gives 3.948 after 16, and 4.017 after 17


def test_a_filter_refuses_what_has_no_bound_at_its_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rdp, "curve", lambda event, orders, relation: np.full(len(orders), np.inf))
    with pytest.raises(Unsupported, match="no Rényi bound"):
        Ledger.create(tmp_path / "ledger", [budget()], "filter")


def test_a_mixed_bill_costs_no_less_than_its_parts_under_their_own_relations(tmp_path: Path):
    ledger = Ledger.create(tmp_path / "plan", [budget(30.0)])
    ledger.reserve("1", [release(2.0)])
    ledger.reserve("2", [release(2.0, unit="client")])
    sound = gaussian_epsilon(math.sqrt(1 / 4 + 1))  # z = 2, and z = 2 ÷ 2
    assert sound <= spent_epsilon(ledger.summary()) < gaussian_epsilon(math.sqrt(2))
    by_filter = Ledger.create(tmp_path / "filter", [budget(30.0)], "filter")
    by_filter.reserve("1", [release(2.0)])
    by_filter.reserve("2", [release(2.0, unit="client")])
    order = lines(tmp_path / "filter")[0]["orders"][0]
    assert spent_epsilon(by_filter.summary()) == pytest.approx(filter_epsilon(order, order / 2 * (1 / 4 + 1)))


@pytest.mark.parametrize("event", [LaplaceNoise(noise_multiplier=5.0), SAMPLED, GaussianNoise(noise_multiplier=3.0)])
def test_a_ledger_agrees_with_the_accountant_on_what_fits(tmp_path: Path, event: Event):
    ledger = Ledger.create(tmp_path / "ledger", [budget(3.0)])
    made, _ = spend_all(ledger, release(event))
    assert accountant.epsilon(Repeated(count=made, event=event), DELTA) <= 3.0
    assert accountant.epsilon(Repeated(count=made + 1, event=event), DELTA) > 3.0


def test_fixed_cohorts_are_counted_under_replacement(tmp_path: Path):
    event = SampledWithoutReplacement(cohort=10, population=100, event=GaussianNoise(noise_multiplier=4.0))
    ledger = Ledger.create(tmp_path / "ledger", [budget(8.0, unit="client", relation="replace", view="public")])
    ledger.reserve("1", [release(event, unit="client", relation="replace", view="public")])
    assert spent_epsilon(ledger.summary()) == pytest.approx(accountant.epsilon(event, DELTA, "replace"), rel=1e-6)


def test_nan_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ledger = Ledger.create(tmp_path / "ledger", [budget(1e6)])
    by_filter = Ledger.create(tmp_path / "filter", [budget(1e6)], "filter")
    monkeypatch.setattr(accountant, "epsilon", lambda *_: math.nan)
    monkeypatch.setattr(gaussian, "delta", lambda *_: math.nan)
    monkeypatch.setattr(rdp, "curve", lambda event, orders, relation: np.full(len(orders), np.nan))
    with pytest.raises(BudgetRefused, match="epsilon to nan"):
        ledger.reserve("1", [release(1.0)])
    with pytest.raises(BudgetRefused, match="epsilon to inf"):
        by_filter.reserve("1", [release(1.0)])
    ledger._tally._books[0].add({None: ((0, 1),)})  # as a commit would
    assert math.isnan(ledger.summary()["budgets"][0]["spent"])


def test_rounds_are_counted_down_and_not_accounted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    no_disk(monkeypatch)
    counted = CallCounter(monkeypatch)
    ledger = Ledger.create(tmp_path / "ledger", [budget(20.0)])
    assert spend_all(ledger, release(SAMPLED))[0] > 600
    assert counted.asked < 20


def test_ten_thousand_clients_that_join_at_random_share_one_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    no_disk(monkeypatch)
    counted = CallCounter(monkeypatch)
    ledger = Ledger.create(tmp_path / "ledger", [budget(4.0)])
    draw = np.random.default_rng(7)
    everyone = release(10.0)
    for made in range(100):  # reserved for all before the cohort is drawn, committed as those who joined
        cohort = tuple(np.flatnonzero(draw.random(10_000) < 0.3).tolist())
        ledger.commit(ledger.reserve(str(made), [everyone]), [release(10.0, clients=cohort)])
    summary = ledger.summary()
    assert summary["budgets"][0]["named_clients"] == 10_000
    assert 0 < summary["budgets"][0]["spent"] <= 4.0
    assert counted.asked < 20


def test_clients_that_all_differ_are_admitted_by_quick_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    no_disk(monkeypatch)
    counted = CallCounter(monkeypatch)
    ledger = Ledger.create(tmp_path / "ledger", [budget(8.0)])
    own = [release(20.0 + client / 100, clients=(client,)) for client in range(1000)]
    for made in range(10):
        ledger.commit(ledger.reserve(str(made), own), own)
    assert counted.asked == 0
    worst = ledger.summary()["budgets"][0]
    assert worst["spent"] == pytest.approx(gaussian_epsilon(math.sqrt(10) / 20), abs=1e-3)
    assert worst["largest_client"] == 0
    assert counted.asked < 300  # bills whose bound is below the largest value found are never computed


def reserve_meanwhile(monkeypatch: pytest.MonkeyPatch, path: Path, key: str) -> None:
    """Let another ledger object, as another process would, reserve while the next reservation is first priced."""
    other, admit, waiting = Ledger(path, wait=0.0), Tally.admit, [key]

    def price(tally: Tally, *args: Any) -> None:
        if waiting:
            other.reserve(waiting.pop(), [release(2.5)])
        admit(tally, *args)

    monkeypatch.setattr(Tally, "admit", price)


def test_another_process_can_reserve_while_a_reservation_is_priced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ledger = Ledger.create(tmp_path / "ledger", [budget(gaussian_epsilon(0.6))])
    reserve_meanwhile(monkeypatch, tmp_path / "ledger", "other")
    ledger.reserve("mine", [release(2.5)])
    assert ledger.summary()["releases"]["reserved"] == 2


def test_what_another_process_took_while_a_reservation_was_priced_is_not_given_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    ledger = Ledger.create(tmp_path / "ledger", [budget(gaussian_epsilon(0.4001))])
    reserve_meanwhile(monkeypatch, tmp_path / "ledger", "other")
    with pytest.raises(BudgetRefused):
        ledger.reserve("mine", [release(2.5)])
    assert ledger.summary()["releases"]["reserved"] == 1


@pytest.mark.parametrize("delta", [1e-9, 1e-5])
@pytest.mark.parametrize("event", [SAMPLED, Repeated(count=40, event=SAMPLED), GaussianNoise(noise_multiplier=2.0)])
def test_one_evaluation_decides_as_the_search_does(event: Event, delta: float):
    exact = accountant.epsilon(event, delta)
    for factor in (0.5, 0.99, 0.999):
        assert not accountant.holds(event, factor * exact, delta)
    for factor in (1.0, 1.001, 1.5):
        assert accountant.holds(event, factor * exact, delta)
