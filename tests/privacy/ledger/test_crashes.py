"""Dying at any byte, sharing, corruption and full disks: spending that was reported is never forgotten."""

import errno
import os
import resource
import signal
from collections import Counter
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import LedgerDamaged, LedgerUnavailable
from discreet.privacy.ledger import Ledger, verify

from .helpers import budget, filter_epsilon, in_a_process, lines, no_disk, release, spend_all, spent_epsilon


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


def make_a_mix(path: Path) -> bytes:
    """Every kind of line: all and named clients, costlier and cheaper commits, voids, a reused key, a torn line."""
    ledger = Ledger.create(path, [budget(50.0)], "filter")
    ledger.commit(ledger.reserve("as planned", [release(9.0)]), [release(9.0)])
    ledger.void(ledger.reserve("again", [release(8.0)]))
    dearer = ledger.reserve("dearer", [release(7.0, clients=(0, 1, 2))])
    ledger.commit(ledger.reserve("again", [release(6.0)]), [release(6.5, clients=(1, 2)), release(6.0, clients=(3,))])
    ledger.commit(dearer, [release(3.0, clients=(0, 1)), release(9.0)])
    path.write_bytes(path.read_bytes() + b'{"seq":12,"prev":"0123')
    ledger.reserve("outstanding", [release(5.0)])
    mistaken = ledger.reserve("mistaken", [release(4.0, clients=(0,))])
    ledger.void(mistaken)
    ledger.commit(mistaken, [release(4.0, clients=(0,))])
    ledger.reserve("last", [release(10.0)])
    return path.read_bytes()


def committed_divergence(records: list[dict[str, Any]]) -> float:
    """Return what the commits among these lines cost the client that pays most, at order 1: Σ 1/(2z²), by hand."""
    reserved = {record["seq"]: record["releases"] for record in records if record["type"] == "reserve"}
    paid: Counter[int | None] = Counter()
    for record in records:
        if record["type"] == "commit":
            for each in record["releases"] or reserved[record["ticket"]]:
                for client in [None] if each["clients"] is None else each["clients"]:
                    paid[client] += 1 / (2 * each["event"]["noise_multiplier"] ** 2)  # type: ignore[assignment]
    return paid[None] + max((cost for client, cost in paid.items() if client is not None), default=0.0)


def test_at_every_byte_what_is_recovered_is_no_less_than_what_was_committed_and_a_writer_can_go_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    no_disk(monkeypatch)
    whole = make_a_mix(path)
    records = lines(path)
    order = records[0]["orders"][0]
    header, *ends = [place + 1 for place, byte in enumerate(whole) if byte == ord("\n")]
    floor, counted = 0.0, 0
    for cut in range(header - 1, len(whole) + 1):
        if cut in ends:
            counted += 1
            divergence = committed_divergence(records[: counted + 1])
            floor = filter_epsilon(order, order * divergence) if divergence else 0.0
        path.write_bytes(whole[:cut])
        ledger = Ledger.open(path)
        assert spent_epsilon(ledger.summary()) >= floor * (1 - 1e-12)
        ledger.commit(ledger.reserve("more", [release(1.0)]), [release(1.0)])
        assert spent_epsilon(Ledger.open(path).summary()) > floor
    assert counted == len(ends) == len(records) - 1 >= 14


def test_without_a_whole_header_there_is_no_ledger_rather_than_an_empty_one(path: Path):
    Ledger.create(path, [budget()])
    whole = path.read_bytes()
    for cut in range(len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(LedgerDamaged, match=r"Restore it from a copy, and don't delete it"):
            Ledger.open(path)


def test_any_changed_byte_is_found_or_was_never_acknowledged(path: Path, monkeypatch: pytest.MonkeyPatch):
    no_disk(monkeypatch)
    whole = make_a_mix(path) + b'{"seq":19,"prev":"ab'
    acknowledged = whole.rindex(b"\n") + 1
    before = spent_epsilon(Ledger.open(path).summary())
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        if place < acknowledged:
            line = whole[:place].count(b"\n") + 1
            with pytest.raises(LedgerDamaged, match=f"Line {line} of .* Restore it from a copy"):
                verify(path)
        else:
            assert spent_epsilon(Ledger.open(path).summary()) == before


def spend_and_tell(path: Path, name: str, told: Connection) -> None:
    ledger = Ledger.open(path)
    for number in range(10_000):
        key = f"{name}/{number}"
        ticket = ledger.reserve(key, [release(100.0)])
        told.send(("reserved", key))
        if number % 5 == 4:
            ledger.void(ticket)
        else:
            ledger.commit(ticket, [release(50.0 if number % 3 == 2 else 100.0)])
            told.send(("committed", key))


def receive_all(told: Connection) -> Iterator[tuple[str, str]]:
    try:
        while True:
            yield told.recv()
    except (EOFError, OSError):  # OSError: it died while it was sending
        return


def test_ten_processes_killed_in_mid_work_have_spent_at_least_what_they_told(path: Path):
    Ledger.create(path, [budget(1000.0)], "filter")
    order = lines(path)[0]["orders"][0]
    told: list[tuple[str, str]] = []
    for kill in range(10):
        receive, send = Pipe(duplex=False)
        process = in_a_process(spend_and_tell, path, str(kill), send)
        send.close()
        told += [receive.recv() for _ in range(1 + 3 * kill + kill % 2)]
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        told += receive_all(receive)  # what it had reported before it died
        committed = [key for what, key in told if what == "committed"]
        divergence = sum(1 / (2 * (50.0 if int(key.split("/")[1]) % 3 == 2 else 100.0) ** 2) for key in committed)
        summary = Ledger.open(path).summary()
        reported = filter_epsilon(order, order * divergence) if committed else 0.0
        assert spent_epsilon(summary) >= reported * (1 - 1e-12)  # the two sums are rounded in another order
        assert summary["releases"]["committed"] >= len(committed)
        on_disk = {record["key"] for record in lines(path) if record["type"] == "reserve"}
        assert on_disk >= {key for _, key in told}
    assert len(told) > 100


def die_at(path: Path, call: str, number: int, share: float) -> None:
    """Be killed within the `number`-th call of os.write, os.fsync or another: after a part of it was done."""
    real, calls = getattr(os, call), iter(range(1, 100))

    def deadly(*args: Any) -> Any:
        if next(calls) == number:
            if call == "write":
                real(args[0], args[1][: int(len(args[1]) * share)])
            elif share == 1:
                real(*args)
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args)

    setattr(os, call, deadly)
    if not path.exists():
        Ledger.create(path, [budget(8.0)], "filter")
        return
    ledger = Ledger.open(path)
    ledger.commit(ledger.reserve("1", [release(10.0)]), [release(5.0)])


@pytest.mark.parametrize(
    ("call", "number", "share", "reserved", "committed"),
    [
        ("write", 1, 0.0, 0, 0),
        ("write", 1, 0.5, 0, 0),
        ("write", 1, 0.999, 1, 0),  # all but the newline
        ("write", 1, 1.0, 1, 0),
        ("fsync", 1, 0.0, 1, 0),
        ("fsync", 1, 1.0, 1, 0),
        ("write", 2, 0.5, 1, 0),
        ("fsync", 2, 0.0, 0, 1),
    ],
)
def test_a_kill_at_the_worst_moment_never_counts_too_little(
    path: Path, call: str, number: int, share: float, reserved: int, committed: int
):
    Ledger.create(path, [budget(8.0)], "filter")
    process = in_a_process(die_at, path, call, number, share)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    ledger = Ledger.open(path)
    assert ledger.summary()["releases"] == {"committed": committed, "reserved": reserved, "voided": 0}
    ledger.commit(ledger.reserve("1", [release(10.0)]), [release(5.0)])  # the resumed run asks for the same again
    assert Ledger.open(path).summary()["releases"] == {"committed": 1, "reserved": 0, "voided": 0}


@pytest.mark.parametrize(("call", "share", "exists"), [("write", 0.5, False), ("link", 0, False), ("link", 1, True)])
def test_a_killed_creator_leaves_a_whole_ledger_or_none(path: Path, call: str, share: float, exists: bool):
    process = in_a_process(die_at, path, call, 1, share)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert path.exists() == exists
    if exists:
        assert verify(path)["records"] == 1
    else:
        Ledger.create(path, [budget(8.0)], "filter")


def spend_and_count(path: Path, name: str, start: Connection, told: Connection) -> None:
    ledger = Ledger.open(path)
    start.recv()
    told.send(spend_all(ledger, release(10.0), name)[0])


@pytest.mark.parametrize("mode", ["plan", "filter"])
def test_two_writers_together_spend_what_one_could_and_no_more(path: Path, tmp_path: Path, mode: Any):
    alone = Ledger.create(tmp_path / "alone", [budget(4.0)], mode)
    affordable, _ = spend_all(alone, release(10.0))
    Ledger.create(path, [budget(4.0)], mode)
    told, starts, processes = [], [], []
    for name in "ab":
        (wait, start), (receive, send) = Pipe(duplex=False), Pipe(duplex=False)
        processes.append(in_a_process(spend_and_count, path, name, wait, send))
        starts.append(start)
        told.append(receive)
    for start in starts:
        start.send("go")
    made = [receive.recv() for receive in told]
    for process in processes:
        process.join()
    assert sum(made) == affordable
    assert spent_epsilon(Ledger.open(path).summary()) == spent_epsilon(alone.summary()) <= 4.0
    assert verify(path)["records"] == 1 + 2 * affordable


def test_a_full_disk_refuses_the_reservation_and_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch):
    ledger = Ledger.create(path, [budget(8.0)], "filter")
    ledger.reserve("1", [release(10.0)])
    before, counted = path.read_bytes(), ledger.summary()
    write = os.write

    def full(fd: int, data: bytes) -> int:
        write(fd, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(LedgerUnavailable, match="No space left on device"):
            ledger.reserve("2", [release(10.0)])
    assert (path.read_bytes(), ledger.summary()) == (before, counted)
    ledger.reserve("2", [release(10.0)])
    assert Ledger.open(path).summary()["releases"]["reserved"] == 2


def spend_within(path: Path, size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    ledger = Ledger.open(path)
    try:
        for number in range(100):
            ledger.reserve(str(number), [release(100.0)])
    except LedgerUnavailable as error:
        os._exit(0 if "File too large" in str(error) and number == 2 else 1)


def test_a_file_that_may_not_grow_refuses_and_loses_nothing(path: Path):
    Ledger.create(path, [budget(8.0)], "filter")
    header = path.stat().st_size
    Ledger.open(path).reserve("0", [release(100.0)])
    line = path.stat().st_size - header
    process = in_a_process(spend_within, path, header + 2 * line + line // 2)
    process.join()
    assert process.exitcode == 0
    assert path.stat().st_size == header + 2 * line
    assert verify(path)["records"] == 3
    Ledger.open(path).reserve("2", [release(100.0)])
