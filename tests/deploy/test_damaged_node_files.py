"""A damaged file of a node is refused in one sentence that names it, and stays as it is."""

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from discreet.deploy.counting_note import CountingNote
from discreet.deploy.journal import Entry, Journal, OpenSession
from discreet.deploy.ledger_counter import LedgerCounter
from discreet.errors import DiscreetError, LedgerDamaged

RUN, LEDGER, DAY = "1", Path("ledger-2026.jsonl"), date(2026, 1, 1)
DAMAGES = {
    "empty": b"",
    "zeros": bytes(50),
    "not UTF-8": b"\xff\xfe\x00{}",
    "nested too deep": b"[" * 100_000,
    "a list of numbers": b"[1, 2]",
    "null": b"null",
    "a text": b'"x"',
    "a bool": b"true",
    "an object of lists": b'{"day": [], "ledger": [], "attempt": [], "broadcast": 1}',
    "a number of 5,000 digits": b"9" * 5000,
}


def note_of(folder: Path) -> CountingNote:
    return CountingNote(folder / "counting.json", LedgerCounter(folder / "counter.json"))


READERS: dict[str, Callable[[Path], object]] = {
    "counting.json": lambda folder: note_of(folder).check(LEDGER, DAY),
    "counter.json": lambda folder: LedgerCounter(folder / "counter.json").knows(LEDGER),
    "1/session": lambda folder: Journal(folder).load_session(RUN),
    "1/counted": lambda folder: Journal(folder).counted_rounds(RUN),
    "1/round-0.json": lambda folder: Journal(folder).find_attempt(RUN, 0, "digest"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    note = note_of(tmp_path)
    note.counter.prepare()
    note.write(LEDGER, DAY)
    (tmp_path / LEDGER).touch()
    journal = Journal(tmp_path)
    journal.store_session(RUN, OpenSession("digest", (0, 1), "name", b"state"))
    journal.store_counted_rounds(RUN, 3)
    journal.begin_attempt(RUN, 0, Entry(0, "digest"))
    return tmp_path


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_of_a_node_is_named(folder: Path, name: str, damage: str) -> None:
    (folder / name).write_bytes(DAMAGES[damage])
    with pytest.raises(DiscreetError, match="can't be read") as refused:
        READERS[name](folder)
    assert str(folder / name) in refused.value.problem
    assert (folder / name).read_bytes() == DAMAGES[damage]


@pytest.mark.parametrize(
    "entry",
    [
        [3, "SECRET"],
        [3, "g" * 64],
        [3, "a" * 63],
        [3, 4],
        [0, "a" * 64],
        [10**13, "a" * 64],
        [True, "a" * 64],
        ["3", "a" * 64],
    ],
    ids=str,
)
def test_a_counter_whose_length_or_hash_is_none_is_damaged_and_not_shown(folder: Path, entry: list[object]) -> None:
    (folder / "counter.json").write_text(json.dumps({LEDGER.name: entry}))
    with pytest.raises(LedgerDamaged, match="Put its newest copy back") as refused:
        READERS["counter.json"](folder)
    assert "SECRET" not in str(refused.value)


def test_files_of_a_node_that_are_whole_are_read(folder: Path) -> None:
    assert note_of(folder).counter.knows(LEDGER) is False
    note_of(folder).check(folder / LEDGER, DAY)
    assert Journal(folder).load_session(RUN) == OpenSession("digest", (0, 1), "name", b"state")
    assert Journal(folder).counted_rounds(RUN) == 3
    assert Journal(folder).find_attempt(RUN, 0, "digest") == Entry(0, "digest")
