"""The log: complete lines only, each chained to the one before, whatever happens to its writer or its disk."""

import errno
import fcntl
import hashlib
import os
import stat
import threading
from pathlib import Path

import pytest

from discreet.errors import InvalidInput, LedgerDamaged, LedgerUnavailable
from discreet.privacy.ledger.log import GENESIS, Log

from .helpers import lines


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "log"
    Log.create(made, {"type": "first"})
    return made


def read_all(path: Path) -> Log:
    log = Log(path, wait=0.0)
    with log.lock(to_write=False):
        list(log.read_new_records())
    return log


def append(path: Path, *bodies: dict[str, object]) -> Log:
    log = Log(path, wait=0.0)
    with log.lock(to_write=True):
        list(log.read_new_records())
        for body in bodies:
            log.append(body)
    return log


def test_each_record_names_the_hash_of_the_one_before(path: Path):
    append(path, {"type": "a"}, {"type": "b"})
    first, second, third = lines(path)
    assert [first["prev"], second["prev"], third["prev"]] == [GENESIS, first["hash"], second["hash"]]
    assert [first["seq"], second["seq"], third["seq"]] == [0, 1, 2]


def test_a_reader_is_given_only_what_is_new_to_it(path: Path):
    log = read_all(path)
    append(path, {"type": "a"})
    with log.lock(to_write=False):
        assert [record.body for record in log.read_new_records()] == [{"type": "a"}]
        assert list(log.read_new_records()) == []


def test_a_reader_that_fails_on_a_record_meets_it_again(path: Path):
    append(path, {"type": "a"})
    log = Log(path, wait=0.0)
    for _ in range(2):
        with log.lock(to_write=False):
            records = log.read_new_records()
            assert next(records).body == {"type": "first"}


def test_a_line_without_its_newline_counts_and_is_ended_by_the_next_writer(path: Path):
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    reader = read_all(path)
    assert (reader.length, reader.torn) == (1, b"")
    append(path, {"type": "a"})
    assert path.read_bytes().startswith(whole)
    with reader.lock(to_write=False):  # a reader that had seen the line without its newline continues too
        assert [record.body for record in reader.read_new_records()] == [{"type": "a"}]


def test_a_torn_line_is_replaced_by_a_record_of_it(path: Path):
    path.write_bytes(path.read_bytes() + b'{"seq":1,"pr')
    assert read_all(path).torn == b'{"seq":1,"pr'
    append(path, {"type": "a"})
    _, recovered, last = lines(path)
    assert (recovered["type"], recovered["torn_bytes"], recovered["torn_start"]) == ("recovered", 12, '{"seq":1,"pr')
    assert len(recovered["torn_sha256"]) == 64
    assert last["type"] == "a"
    assert read_all(path).length == 3


@pytest.mark.parametrize("torn", [b"\0" * 4096, b"x", b'{"seq":1,' + b"9" * 2000], ids=["zeros", "a byte", "long"])
def test_a_writer_that_dies_while_it_sets_a_torn_line_aside_can_be_followed(path: Path, torn: bytes):
    good = path.read_bytes()
    path.write_bytes(good + torn)
    append(path, {"type": "a"})
    written = path.read_bytes().removeprefix(good)
    recovered = written[: written.index(b"\n") + 1]
    for died_with in [torn[:1], *(recovered[:done] for done in range(1, len(recovered) + 1))]:
        path.write_bytes(good + died_with)
        append(path, {"type": "b"})
        assert [line["type"] for line in lines(path)] == ["first", "recovered", "b"]
        assert not read_all(path).torn


@pytest.mark.parametrize(("taken", "left"), [(0, 1), (100, 100)])
def test_a_torn_line_on_a_full_disk_stays_torn(path: Path, monkeypatch: pytest.MonkeyPatch, taken: int, left: int):
    path.write_bytes(path.read_bytes() + b"torn")
    pwrite = os.pwrite
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, data[:taken], at))
        with pytest.raises(LedgerUnavailable, match="No space left"):
            append(path, {"type": "a"})
    assert len(read_all(path).torn) == left
    assert append(path, {"type": "a"}).length == 3


@pytest.mark.parametrize("flip", [0x01, 0x80, 0x2A])
def test_any_changed_byte_is_found(path: Path, flip: int):
    append(path, {"type": "a", "of": [1, 2.5, "x"]}, {"type": "b"})
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :])
        with pytest.raises(LedgerDamaged, match=r"Line \d+ of"):
            read_all(path)


def test_any_byte_that_becomes_a_newline_is_found(path: Path):
    append(path, {"type": "a"})
    whole = path.read_bytes()
    for place in [place for place, byte in enumerate(whole) if byte != ord("\n")]:
        path.write_bytes(whole[:place] + b"\n" + whole[place + 1 :])
        with pytest.raises(LedgerDamaged):
            read_all(path)


def test_before_a_torn_line_too_any_changed_byte_is_found(path: Path):
    append(path, {"type": "a"})
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :] + b'{"seq":2,"prev":"ab')
        with pytest.raises(LedgerDamaged):
            read_all(path)


def test_removed_and_swapped_lines_are_found_by_their_number(path: Path):
    append(path, {"type": "a"}, {"type": "b"}, {"type": "c"})
    first, a, b, c = path.read_bytes().splitlines(keepends=True)
    for changed, line in [(first + b + c, 2), (first + b + a + c, 2), (first + a + a + b + c, 3), (a + b + c, 1)]:
        path.write_bytes(changed)
        with pytest.raises(LedgerDamaged, match=f"Line {line} of .* does not follow"):
            read_all(path)


def test_a_line_of_another_log_is_found_though_it_has_the_right_number(path: Path, tmp_path: Path):
    other = tmp_path / "other"
    Log.create(other, {"type": "other"})
    append(other, {"type": "a"})
    path.write_bytes(path.read_bytes() + other.read_bytes().splitlines(keepends=True)[1])
    with pytest.raises(LedgerDamaged, match=r"Line 2 of .* does not follow"):
        read_all(path)


def test_a_log_that_is_cut_short_or_replaced_under_a_reader_is_found(path: Path, tmp_path: Path):
    short = path.read_bytes()
    log = append(path, {"type": "a"})
    path.write_bytes(short)
    with pytest.raises(LedgerDamaged, match="no longer holds its line 2"), log.lock(to_write=True):
        list(log.read_new_records())
    other = tmp_path / "other"
    Log.create(other, {"type": "first"})
    append(other, {"type": "another"})
    os.replace(other, path)
    with pytest.raises(LedgerDamaged, match="cut short or replaced"), log.lock(to_write=True):
        list(log.read_new_records())


def test_hashed_by_someone_else_is_damage_and_no_crash(path: Path):
    for payload in (b"[1,2]", b'{"seq":1}', b"nonsense}"):
        line = payload[:-1] + b',"hash":"' + hashlib.sha256(payload[:-1] + b"}").hexdigest().encode() + b'"}\n'
        path.write_bytes(path.read_bytes()[: path.read_bytes().index(b"\n") + 1] + line)
        with pytest.raises(LedgerDamaged, match="Line 2"):
            read_all(path)


@pytest.mark.parametrize("taken", [0, 1, 40])
def test_a_disk_that_fills_up_leaves_the_log_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch, taken: int):
    before = path.read_bytes()
    write, room = os.write, [taken]

    def nearly_full(fd: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        room[0], now = 0, room[0]
        return write(fd, data[:now])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", nearly_full)
        with pytest.raises(LedgerUnavailable, match=r"could not be written \(No space left on device\).*Make room"):
            append(path, {"type": "a"})
    assert path.read_bytes() == before
    assert append(path, {"type": "a"}).length == 2


def test_a_disk_that_does_not_even_shorten_the_log_leaves_a_torn_line(path: Path, monkeypatch: pytest.MonkeyPatch):
    write = os.write

    def fail(fd: int, data: bytes | int) -> int:
        if isinstance(data, bytes):
            write(fd, data[:30])
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fail)
        patch.setattr(os, "ftruncate", fail)
        with pytest.raises(LedgerUnavailable, match="Check the disk"):
            append(path, {"type": "a"})
    assert len(read_all(path).torn) == 30
    append(path, {"type": "b"})
    assert [line["type"] for line in lines(path)] == ["first", "recovered", "b"]


def test_a_record_that_did_not_reach_the_disk_is_taken_back(path: Path, monkeypatch: pytest.MonkeyPatch):
    before = path.read_bytes()

    def fail(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(LedgerUnavailable, match="Input/output error"):
            append(path, {"type": "a"})
    assert path.read_bytes() == before


def test_a_short_write_is_finished(path: Path, monkeypatch: pytest.MonkeyPatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:7]))
    append(path, {"type": "a"})
    assert read_all(path).length == 2


def test_a_lock_that_another_holds_is_waited_for_and_then_told(path: Path):
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(LedgerUnavailable, match=r"Another process has held .* for more than 0 s\. Try again"):
            append(path, {"type": "a"})
    append(path, {"type": "a"})


def test_a_log_that_is_replaced_while_its_lock_is_waited_for_is_opened_anew(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    log = append(path, {"type": "a"})
    restored = tmp_path / "restored"
    restored.write_bytes(path.read_bytes())
    append(restored, {"type": "b"})
    flock = fcntl.flock

    def slow(fd: int, how: int) -> None:
        if restored.exists():
            os.replace(restored, path)
        flock(fd, how)

    monkeypatch.setattr(fcntl, "flock", slow)
    monkeypatch.setattr(log, "_wait", 30.0)
    with log.lock(to_write=True):
        assert [record.body for record in log.read_new_records()] == [{"type": "b"}]


def test_readers_share_and_a_writer_is_alone(path: Path):
    first, second = Log(path, wait=0.0), Log(path, wait=0.0)
    with first.lock(to_write=False):
        with second.lock(to_write=False):
            pass
        with pytest.raises(LedgerUnavailable), second.lock(to_write=True):
            pass


def test_a_disk_without_locks_is_told(path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(LedgerUnavailable, match=r"could not be locked \(No locks available\)"):
        read_all(path)


def test_threads_that_share_a_log_take_turns(path: Path):
    log = Log(path, wait=30.0)

    def work() -> None:
        for _ in range(20):
            with log.lock(to_write=True):
                list(log.read_new_records())
                log.append({"type": "a"})

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_all(path).length == 81


def test_a_file_that_exists_is_never_replaced(path: Path):
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match="exists already"):
        Log.create(path, {"type": "first"})
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == ["log"]


def test_a_new_name_in_a_directory_is_on_the_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    synced: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(stat.S_ISDIR(os.fstat(fd).st_mode)))
    Log.create(tmp_path / "log", {"type": "first"})
    assert synced == [False, True]


def test_where_no_log_can_be_made_it_is_told(tmp_path: Path):
    with pytest.raises(LedgerUnavailable, match=r"No ledger could be made at .* \(No such file or directory\)"):
        Log.create(tmp_path / "none" / "log", {"type": "first"})
