"""The ledger: reserve, commit, void; what each costs, what is refused, and with which message."""

import math
import os
import shutil
from pathlib import Path

import pytest

from discreet.code_version import CodeVersion, read_code_version
from discreet.errors import BudgetRefused, InvalidInput, LedgerDamaged, LedgerUnavailable, Unsupported
from discreet.part import to_plain
from discreet.privacy.events import NOTHING, GaussianNoise, PoissonSampled, Repeated
from discreet.privacy.ledger import Budget, Ledger, Ticket, verify
from discreet.privacy.ledger.log import Log
from discreet.privacy.release import Person

from .helpers import DELTA, budget, filter_epsilon, gaussian_epsilon, lines, release, spend_all, spent_epsilon


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    return Ledger.create(path, [budget(8.0)])


def test_a_new_ledger_has_spent_nothing(ledger: Ledger):
    summary = ledger.summary()
    assert spent_epsilon(summary) == 0.0
    assert summary["budgets"][0]["remaining"] == 8.0
    assert summary["releases"] == {"committed": 0, "reserved": 0, "voided": 0}


def test_every_line_names_the_code_that_wrote_it(ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch):
    """Processes of several versions share a ledger, so its header can't say it for all lines."""
    ours, theirs = read_code_version().stamp, CodeVersion("0.4.0", "7" * 40, True)
    ticket = ledger.reserve("1", [release(1.0)])
    monkeypatch.setattr("discreet.privacy.ledger.log.read_code_version", lambda: theirs)
    ledger.commit(ticket, [release(1.0)])
    assert [line["code"] for line in lines(path)] == [ours, ours, theirs.stamp]
    assert verify(path)["code"] == [{"code": ours, "lines": 2}, {"code": theirs.stamp, "lines": 1}]
    assert ledger.verify() == verify(path)


def test_a_ledger_that_an_earlier_version_wrote_is_verified_and_goes_on(path: Path):
    shutil.copy(Path(__file__).parent / "kept" / "written_by_0_2_0.jsonl", path)
    before = Ledger.open(path)
    head = "0406dde883a4e7cefc5f7aa33422971c59336ef2a0d5122ee114f3c67789414b"
    assert (before.verify()["head"], before.verify()["code"]) == (head, [{"code": None, "lines": 6}])
    assert before.summary()["releases"] == {"committed": 1, "reserved": 1, "voided": 1}
    assert spent_epsilon(before.summary()) == 0.9922565470250727  # as that version printed it
    before.reserve("run b round 0", [release(10.0, relation="zero_out")])
    assert verify(path)["code"] == [{"code": None, "lines": 6}, {"code": read_code_version().stamp, "lines": 1}]


def test_what_is_reserved_is_spent_before_it_is_committed(ledger: Ledger, path: Path):
    ledger.reserve("1", [release(1.0)])
    assert spent_epsilon(Ledger.open(path).summary()) == pytest.approx(gaussian_epsilon(1.0), abs=1e-3)
    assert verify(path)["outstanding"] == [{"key": "1", "line": 2}]


def test_committing_what_was_reserved_costs_nothing_more(ledger: Ledger, path: Path):
    ledger.commit(ledger.reserve("1", [release(1.0)]), [release(1.0)])
    assert spent_epsilon(ledger.summary()) == pytest.approx(4.377, abs=1e-3)  # z = 1, δ = 1e-5
    assert spent_epsilon(ledger.summary()) == spent_epsilon(Ledger.open(path).summary())
    assert verify(path)["outstanding"] == []
    assert lines(path)[-1]["releases"] is None  # a commit that says: as reserved


def test_voiding_gives_everything_back(ledger: Ledger, path: Path):
    ticket = ledger.reserve("1", [release(1.0)])
    ledger.void(ticket)
    ledger.void(ticket)
    assert spent_epsilon(Ledger.open(path).summary()) == 0.0
    assert len(lines(path)) == 3


def test_a_voided_key_is_free_again(ledger: Ledger):
    first = ledger.reserve("1", [release(1.0)])
    ledger.void(first)
    second = ledger.reserve("1", [release(2.0)])
    assert second != first
    assert spent_epsilon(ledger.summary()) == pytest.approx(gaussian_epsilon(0.5), abs=1e-3)


def test_fewer_survivors_than_planned_cost_more_and_are_recorded_past_the_budget(ledger: Ledger, path: Path):
    ledger.commit(ledger.reserve("1", [release(1.0)]), [release(0.5)])
    assert spent_epsilon(ledger.summary()) == pytest.approx(gaussian_epsilon(2.0), abs=1e-3)
    assert ledger.summary()["budgets"][0]["remaining"] == 0.0
    with pytest.raises(BudgetRefused):
        Ledger.open(path).reserve("2", [release(100.0)])


def test_more_survivors_than_planned_cost_less(ledger: Ledger, path: Path):
    ledger.commit(ledger.reserve("1", [release(1.0)]), [release(2.0)])
    assert spent_epsilon(Ledger.open(path).summary()) == pytest.approx(gaussian_epsilon(0.5), abs=1e-3)


def test_a_replay_gets_the_same_ticket_and_pays_once(ledger: Ledger, path: Path):
    ticket = ledger.reserve("1", [release(1.0)])
    resumed = Ledger.open(path)
    assert resumed.reserve("1", [release(1.0)]) == ticket
    resumed.commit(ticket, [release(1.0)])
    assert ledger.reserve("1", [release(1.0)]) == ticket
    ledger.commit(ticket, [release(1.0)])
    assert len(lines(path)) == 3


def test_a_replay_makes_certain_that_the_first_attempt_reached_the_disk(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
):
    """Its writer may have been killed between the write and the sync."""
    ticket = ledger.reserve("1", [release(1.0)])
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    ledger.reserve("1", [release(1.0)])
    assert len(synced) == 1
    ledger.commit(ticket, [release(1.0)])
    ledger.commit(ticket, [release(1.0)])
    assert len(synced) == 3


def test_one_key_is_for_one_list_of_releases(ledger: Ledger):
    ledger.reserve("1", [release(1.0)])
    with pytest.raises(InvalidInput, match="'1' is already used for other releases"):
        ledger.reserve("1", [release(2.0)])


def test_a_second_commit_must_say_the_same(ledger: Ledger):
    ticket = ledger.reserve("1", [release(1.0)])
    ledger.commit(ticket, [release(2.0)])
    ledger.commit(ticket, [release(2.0)])
    with pytest.raises(InvalidInput, match="already committed, as other releases"):
        ledger.commit(ticket, [release(1.0)])


def test_what_is_committed_can_not_be_voided(ledger: Ledger):
    ticket = ledger.reserve("1", [release(1.0)])
    ledger.commit(ticket, [release(1.0)])
    with pytest.raises(InvalidInput, match="can't be taken back"):
        ledger.void(ticket)


@pytest.mark.parametrize("z", [1.0, 2.0])
def test_a_commit_after_a_mistaken_void_still_counts_because_it_happened(ledger: Ledger, path: Path, z: float):
    ticket = ledger.reserve("1", [release(1.0)])
    ledger.void(ticket)
    ledger.commit(ticket, [release(z)])
    assert spent_epsilon(Ledger.open(path).summary()) == pytest.approx(gaussian_epsilon(1 / z), abs=1e-3)


def test_a_ticket_of_another_ledger_is_refused(ledger: Ledger, tmp_path: Path):
    other = Ledger.create(tmp_path / "other", [budget(8.0)])
    ticket = other.reserve("1", [release(1.0)])
    ledger.reserve("1", [release(2.0)])
    for wrong in (ticket, Ticket(key="9", seq=9, hash="")):
        with pytest.raises(InvalidInput, match="not from this ledger"):
            ledger.commit(wrong, [release(1.0)])


def test_a_commit_that_a_budget_can_not_read_leaves_the_reservation_counted(ledger: Ledger, path: Path):
    ticket = ledger.reserve("1", [release(1.0)])
    for unreadable in ([], [release(1.0, view="public")]):
        with pytest.raises(Unsupported, match="say nothing about"):
            ledger.commit(ticket, unreadable)
    assert len(lines(path)) == 2


def test_the_refusal_tells_what_would_be_reached_and_what_to_do(path: Path):
    ledger = Ledger.create(path, [budget(4.0)])
    step = release(PoissonSampled(sampling_rate=0.1, event=GaussianNoise(noise_multiplier=1.0)))
    made, refusal = spend_all(ledger, step)
    assert made == 26  # dp-accounting's PLD: 3.9549 after 26, 4.0120 after 27
    assert str(refusal) == (
        "This release would raise epsilon to 4.012, over the budget of 4 at delta=1e-05 "
        "(unit example, relation add_or_remove, view server). 26 releases were made; the budget affords no more of "
        "this one. Keep the last model, or plan fewer rounds or more noise."
    )
    assert len(lines(path)) == 53


def test_a_whole_plan_that_is_too_long_is_told_how_much_of_it_fits(path: Path):
    ledger = Ledger.create(path, [budget(4.0)])
    ledger.reserve("before", [release(10.0)])
    with pytest.raises(
        BudgetRefused, match=r"1 release was made, .* affords 84 of its 400 steps\. .* Void the reservations"
    ):
        ledger.reserve("plan", [release(Repeated(count=400, event=GaussianNoise(noise_multiplier=10.0)))])
    assert gaussian_epsilon(85**0.5 / 10) <= 4.0 < gaussian_epsilon(86**0.5 / 10)


def test_a_refusal_never_shows_a_number_that_looks_allowed(path: Path):
    exact = gaussian_epsilon(1.0)
    ledger = Ledger.create(path, [budget(exact - 1e-6)])
    with pytest.raises(BudgetRefused, match=r"raise epsilon to 4\.37") as refusal:
        ledger.reserve("1", [release(1.0)])
    reached = float(str(refusal.value).split("epsilon to ")[1].split(",")[0])
    assert reached > exact - 1e-6


def test_a_smaller_release_may_still_fit_after_a_refusal(path: Path):
    ledger = Ledger.create(path, [budget(4.0)])
    with pytest.raises(BudgetRefused):
        ledger.reserve("1", [release(1.0)])
    ledger.reserve("1", [release(2.0)])


def test_nothing_costs_nothing(path: Path):
    ledger = Ledger.create(path, [budget(4.0)])
    ledger.commit(ledger.reserve("1", [release(1.2)]), [release(0.5)])
    ledger.reserve("2", [release(NOTHING)])


def test_every_budget_must_hold(path: Path):
    ledger = Ledger.create(path, [budget(8.0), budget(2.0, unit="client")])
    with pytest.raises(BudgetRefused, match="unit client"):
        ledger.reserve("1", [release(1.0), release(1.0, unit="client")])
    ledger.reserve("1", [release(1.0), release(4.0, unit="client")])
    assert [each["spent"] for each in ledger.summary()["budgets"]] == pytest.approx(
        [gaussian_epsilon(1.0), gaussian_epsilon(0.25)], abs=1e-3
    )


def test_disjoint_clients_pay_the_maximum_and_everyone_pays_what_is_for_all(path: Path):
    ledger = Ledger.create(path, [budget(8.0)])
    ledger.reserve("1", [release(2.0, clients=(0, 1)), release(1.0, clients=(2,))])
    assert spent_epsilon(ledger.summary()) == pytest.approx(gaussian_epsilon(1.0), abs=1e-3)
    assert ledger.summary()["budgets"][0]["largest_client"] == 2
    ledger.reserve("2", [release(2.0)])
    assert spent_epsilon(ledger.summary()) == pytest.approx(gaussian_epsilon((1 + 1 / 4) ** 0.5), abs=1e-3)


def test_a_client_whose_budget_is_spent_does_not_stop_the_others(path: Path):
    ledger = Ledger.create(path, [budget(4.5)])
    ledger.reserve("1", [release(1.0, clients=(3,))])
    with pytest.raises(BudgetRefused, match="for client 3,"):
        ledger.reserve("2", [release(2.0, clients=(3, 4))])
    ledger.reserve("2", [release(2.0, clients=(4,))])
    with pytest.raises(BudgetRefused, match="for client 3,"):
        ledger.reserve("3", [release(2.0)])


def test_a_plan_refuses_prices_that_were_chosen_on_the_way(ledger: Ledger):
    with pytest.raises(Unsupported, match='mode="filter"'):
        ledger.reserve("1", [release(1.0, adaptive=True)])
    ledger.commit(ledger.reserve("1", [release(10.0)]), [release(10.0, adaptive=True)])
    with pytest.raises(Unsupported, match="after looking"):  # it happened, so no later total is that of a plan
        ledger.reserve("2", [release(10.0)])


def test_a_filter_takes_them_at_its_fixed_order(path: Path):
    ledger = Ledger.create(path, [budget(4.0)], "filter")
    order = lines(path)[0]["orders"][0]
    for key, z in enumerate([5.0, 4.0, 3.0]):
        ledger.reserve(str(key), [release(z, adaptive=True)])
    divergence = order / 2 * (1 / 25 + 1 / 16 + 1 / 9)
    assert spent_epsilon(Ledger.open(path).summary()) == pytest.approx(filter_epsilon(order, divergence), rel=1e-12)


def test_the_head_and_length_of_the_chain_are_shown(ledger: Ledger, path: Path):
    ledger.reserve("1", [release(1.0)])
    summary = ledger.summary()
    assert (summary["records"], summary["head"]) == (2, lines(path)[-1]["hash"])
    assert summary["created"] == lines(path)[0]["at"]


def test_a_budget_for_a_person_comes_back_as_it_was(path: Path):
    person = budget(3.0, unit=Person(column="patient", at_most=20), view="public")
    Ledger.create(path, [person], "filter")
    assert Ledger.open(path).budgets == (person,)


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), float("inf"), True, "4"])
def test_a_budget_is_a_number(wrong: object):
    with pytest.raises(InvalidInput):
        Budget(unit="example", relation="add_or_remove", view="server", epsilon=wrong, delta=DELTA)  # type: ignore[arg-type]


def test_a_ledger_has_budgets_each_for_something_else(path: Path):
    with pytest.raises(InvalidInput, match="at least one budget"):
        Ledger.create(path, [])
    with pytest.raises(InvalidInput, match="same unit, relation and view"):
        Ledger.create(path, [budget(1.0), budget(2.0)])
    assert not path.exists()


def test_an_existing_ledger_is_not_made_again(ledger: Ledger, path: Path):
    with pytest.raises(InvalidInput, match="exists already"):
        Ledger.create(path, [budget(99.0)])


def test_no_file_is_no_ledger(path: Path):
    with pytest.raises(InvalidInput, match="There is no ledger at"):
        Ledger.open(path)


def test_a_directory_is_no_ledger(tmp_path: Path):
    with pytest.raises(InvalidInput, match="is a directory"):
        Ledger.open(tmp_path)


def test_an_empty_file_is_no_ledger(path: Path):
    path.touch()
    with pytest.raises(LedgerDamaged, match="is empty"):
        Ledger.open(path)


@pytest.mark.parametrize("content", [b"hello", b"hello\n", b'{"seq": 0}\n', b"\x00\xff\n" * 100])
def test_another_file_is_no_ledger(path: Path, content: bytes):
    path.write_bytes(content)
    with pytest.raises(LedgerDamaged, match="is not a ledger"):
        Ledger.open(path)


def test_a_file_that_may_not_be_read_is_told(ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch):
    def forbidden(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", forbidden)
    with pytest.raises(LedgerUnavailable, match=r"could not be opened \(Permission denied\)"):
        Ledger.open(path)


def test_a_line_of_a_later_version_is_not_guessed_at(ledger: Ledger, path: Path):
    log = Log(path, wait=0.0)
    with log.lock(to_write=True):
        list(log.read_new_records())
        log.append({"type": "refund", "ticket": 1})
    with pytest.raises(LedgerDamaged, match=r"Line 2 of .* can't be understood"):
        ledger.summary()
    with pytest.raises(LedgerDamaged, match=r"Line 2 of .* can't be understood"):  # and not skipped the next time
        ledger.reserve("1", [release(1.0)])


@pytest.mark.parametrize(
    "forged",
    [
        {"type": "commit", "ticket": 7, "releases": None},
        {"type": "void", "ticket": 0},
        {"type": "open", "mode": "plan", "budgets": []},
        {"type": "open", "mode": "plan", "budgets": [to_plain(budget(8.0))]},
        {"type": "open", "mode": "filter", "budgets": [to_plain(budget(8.0))]},  # a filter without its order
    ],
)
def test_a_line_that_can_not_follow_is_damage(ledger: Ledger, path: Path, forged: dict[str, object]):
    log = Log(path, wait=0.0)
    with log.lock(to_write=True):
        list(log.read_new_records())
        log.append(forged)
    with pytest.raises(LedgerDamaged, match="Line 2"):
        verify(path)


def test_a_key_that_is_reserved_twice_in_the_file_is_damage(ledger: Ledger, path: Path):
    ledger.reserve("1", [release(1.0)])
    again = {key: value for key, value in lines(path)[1].items() if key in ("type", "key", "releases")}
    log = Log(path, wait=0.0)
    with log.lock(to_write=True):
        list(log.read_new_records())
        log.append(again)
    with pytest.raises(LedgerDamaged, match="Line 3 reserves '1' a second time"):
        verify(path)


def test_a_file_whose_first_line_opens_nothing_is_damage(path: Path):
    Log.create(path, {"type": "void", "ticket": 0})
    with pytest.raises(LedgerDamaged, match="the first line opens"):
        Ledger.open(path)


def test_a_pipe_is_no_ledger(path: Path):
    os.mkfifo(path)
    with pytest.raises(InvalidInput, match="is not an ordinary file"):
        Ledger.open(path)


def test_each_named_client_is_told_what_it_spent_itself(path: Path):
    """Client 0 paid twice at z = 10 and client 1 once: √2/10 and 1/10 (Balle & Wang 2018)."""
    ledger = Ledger.create(path, [budget(8.0)])
    for number, clients in enumerate([(0, 1), (0,)]):
        made = [release(10.0, clients=clients)]
        ledger.commit(ledger.reserve(str(number), made), made)
    (shown,) = ledger.summary(by_client=True)["budgets"]
    spent = {tuple(each["clients"]): each["spent"] for each in shown["by_client"]}
    assert spent == {
        (0,): pytest.approx(gaussian_epsilon(math.sqrt(2) / 10), rel=1e-3),
        (1,): pytest.approx(gaussian_epsilon(1 / 10), rel=1e-3),
    }
    assert all(each["remaining"] == 8.0 - each["spent"] for each in shown["by_client"])


def test_a_client_that_a_budget_does_not_cover_pays_nothing_from_it(path: Path):
    ledger = Ledger.create(path, [budget(8.0, clients=(0,))])
    ledger.reserve("1", [release(10.0, clients=(1, 2))])
    assert spent_epsilon(ledger.summary()) == 0.0
    ledger.reserve("2", [release(10.0, clients=(0, 1))])
    assert spent_epsilon(ledger.summary()) == pytest.approx(gaussian_epsilon(1 / 10), rel=1e-3)


def test_a_reservation_is_open_until_it_is_committed_or_voided(ledger: Ledger):
    assert not ledger.is_open("1")
    ticket = ledger.reserve("1", [release(10.0)])
    assert ledger.is_open("1")
    ledger.void(ticket)
    assert not ledger.is_open("1")
