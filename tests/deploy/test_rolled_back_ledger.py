"""A node notices that an older copy of its ledger was put back, and no crash makes it refuse its own ledger."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from discreet.deploy.app_folder import AppFolder
from discreet.deploy.client_ledger import ClientLedger, round_releases
from discreet.deploy.client_node import today
from discreet.deploy.enrolment import enroll
from discreet.deploy.policy import ClientFolder
from discreet.engines.flower import signed_messages
from discreet.errors import LedgerDamaged
from discreet.privacy.ledger import Ledger
from discreet.privacy.release import Release
from tests.deploy.example_sites import PLAIN, copy_site
from tests.deploy.node_requests import RequestCase, refusal, restart

pytestmark = pytest.mark.usefixtures("one_thread")

CRASHABLE = ("fsync", "replace", "link", "write")  # the calls of `os` by which files reach the disk


def open_ledger(node: Path) -> ClientLedger:
    return ClientLedger(node, ClientFolder.open(node).policy, None)


def releases_of_a_round(folder: Path) -> tuple[Release, ...]:
    app = AppFolder.open(copy_site(folder, PLAIN).app)
    return round_releases(app.experiment.algorithm, app.population, 0, 0)


def ledger_file(node: Path) -> Path:
    (path,) = node.glob("ledger-*.jsonl")
    return path


def test_an_older_copy_of_the_ledger_is_refused_at_the_start_and_at_the_next_request(request_case: RequestCase) -> None:
    folder, _, node, about, body, key = request_case
    client = folder / "client-0"
    requests = [signed_messages.sign_request(replace(about, round=round), body, key) for round in range(3)]
    node.answer(requests[0])
    older = ledger_file(client).read_bytes()
    node.answer(requests[1])
    newest = ledger_file(client).read_bytes()
    ledger_file(client).write_bytes(older)
    told = list[str]()
    again = replace(restart(node), say=told.append)
    with pytest.raises(LedgerDamaged, match=r"must continue the 5 lines that this node left in it") as refused:
        again.check_ready()
    assert str(ledger_file(client)) in str(refused.value)
    assert str(client / "counter.json") in str(refused.value)
    assert refused.value.fix.startswith("Put the newest copy of ledger-")
    assert "(LedgerDamaged); the node's owner sees why" in refusal(again, requests[2])
    assert "an older copy was put back" in told[0]
    assert ledger_file(client).read_bytes() == older
    ledger_file(client).write_bytes(newest)
    assert isinstance(signed_messages.read_reply(restart(again).answer(requests[2])), bytes)


def test_another_ledger_of_the_same_length_is_refused(tmp_path: Path) -> None:
    asked, node = releases_of_a_round(tmp_path), tmp_path / "client-0"
    open_ledger(node).reserve("first", asked, today())
    path, budgets = ledger_file(node), ClientFolder.open(node).policy.budgets
    path.unlink()
    Ledger.create(path, budgets, "filter").reserve("another", asked)
    with pytest.raises(LedgerDamaged, match="it is another ledger"):
        open_ledger(node).reserve("second", asked, today())


def test_a_counter_that_was_removed_is_refused(tmp_path: Path) -> None:
    """Otherwise an older ledger would be taken again after its counter is deleted."""
    asked, node = releases_of_a_round(tmp_path), tmp_path / "client-0"
    open_ledger(node).reserve("first", asked, today())
    (node / "counter.json").unlink()
    with pytest.raises(LedgerDamaged, match=r"counter\.json, by which .* is gone"):
        open_ledger(node).check(today(), asked)
    (node / "counter.json").write_text("[1")
    with pytest.raises(LedgerDamaged, match=r"counter\.json must have the length .* and can't be read"):
        open_ledger(node).check(today(), asked)


def test_a_server_learns_only_the_kind_of_fault_of_a_damaged_counter(request_case: RequestCase) -> None:
    folder, _, node, about, body, key = request_case
    node.answer(signed_messages.sign_request(about, body, key))
    counter = folder / "client-0" / "counter.json"
    counter.write_text(json.dumps({name: [3, "SECRET"] for name in json.loads(counter.read_text())}))
    told = list[str]()
    again = replace(restart(node), say=told.append)
    request = signed_messages.sign_request(replace(about, round=1), body, key)
    assert refusal(again, request) == "The request could not be answered (LedgerDamaged); the node's owner sees why."
    assert f"{counter} must have the length and the last hash of each ledger" in told[0]


def test_lines_of_another_node_in_a_shared_ledger_are_no_rollback(tmp_path: Path) -> None:
    asked = releases_of_a_round(tmp_path)
    app = AppFolder.open(tmp_path / "site" / "app")
    (tmp_path / "counted").mkdir()
    for name in ("one", "two"):
        enroll(app, "client-0", tmp_path / name, None, tmp_path / "counted")
    for name in ("one", "two", "one"):
        open_ledger(tmp_path / name).reserve(f"asked {name}", asked, today())()


def test_a_node_of_an_older_version_gets_its_counter_with_the_next_round(tmp_path: Path) -> None:
    asked, node = releases_of_a_round(tmp_path), tmp_path / "client-0"
    open_ledger(node).reserve("first", asked, today())()
    (node / "counter.json").unlink()
    (node / "counting.json").write_text(f'{{"ledger": "{ledger_file(node).name}", "day": "{today()}"}}')
    open_ledger(node).reserve("second", asked, today())()
    assert (node / "counter.json").exists()


class Crash(BaseException):
    """The process dies here. Nothing of ours catches this."""


class CrashingDisk:
    """Raises Crash before the call with this number, counted from 1; knows what a power failure would leave."""

    def __init__(self, number: int, patch: pytest.MonkeyPatch) -> None:
        self.left, self.synced = number, dict[str, bytes]()
        for name in CRASHABLE:
            patch.setattr(os, name, self._count(getattr(os, name), is_sync=name == "fsync"))

    def _count(self, call: Callable[..., Any], *, is_sync: bool) -> Callable[..., Any]:
        def count(*given: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                raise Crash
            result = call(*given, **named)
            path = Path(os.readlink(f"/proc/self/fd/{given[0]}")) if is_sync else None
            if path is not None and path.is_file():
                self.synced[str(path)] = path.read_bytes()
            return result

        return count

    def fail_power(self, ledger: Path) -> None:
        """Drop what was written to the ledger and not flushed."""
        if str(ledger) in self.synced:
            ledger.write_bytes(self.synced[str(ledger)])


@pytest.mark.parametrize("power_fails", [False, True])
def test_a_crash_before_any_write_never_makes_a_node_refuse_its_own_ledger(tmp_path: Path, power_fails: bool) -> None:
    asked, node, number, is_over = releases_of_a_round(tmp_path), tmp_path / "client-0", 0, False
    kept = {path.name for path in node.iterdir()}
    while not is_over:
        number += 1
        for path in node.iterdir():
            if path.name not in kept:
                path.unlink()
        with pytest.MonkeyPatch.context() as patch:
            disk = CrashingDisk(number, patch)
            try:
                for key in ("first", "second"):
                    open_ledger(node).reserve(key, asked, today())()
                is_over = True
            except Crash:
                pass
        if power_fails and (begun := list(node.glob("ledger-*.jsonl"))):
            disk.fail_power(*begun)
        for key in ("first", "second"):
            open_ledger(node).check(today(), asked)
            open_ledger(node).reserve(key, asked, today())()
        assert open_ledger(node).open_ledger(today()).summary()["releases"]["committed"] == 2
    assert number > 30  # each reservation and each commit writes the ledger and then the counter
