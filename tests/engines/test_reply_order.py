"""Replies in the order of the cohort: what is yielded when, and what of it is in memory."""

import itertools
import tracemalloc
from collections.abc import Iterator

import pytest

pytest.importorskip("flwr")

from discreet.engines.flower import reply_order
from discreet.engines.flower.reply_order import in_order


@pytest.mark.parametrize("memory", [2**22, 1])
@pytest.mark.parametrize("asked", [(3, 1, 4, 2)])
def test_any_order_of_arrival_and_any_who_stay_away_give_the_order_of_the_cohort(
    monkeypatch: pytest.MonkeyPatch, memory: int, asked: tuple[int, ...]
) -> None:
    """Whether early replies wait in memory or in a file."""
    monkeypatch.setattr(reply_order, "MEMORY_BYTES", memory)
    for count in range(len(asked) + 1):
        for came in itertools.permutations(asked, count):
            replies = [(client, b"from %d" % client * client) for client in came]
            expected = [(client, b"from %d" % client * client) for client in asked if client in came]
            assert list(in_order(iter(replies), asked)) == expected


def test_a_reply_is_yielded_as_soon_as_those_before_it_have_come() -> None:
    seen: list[int] = []

    def arrive() -> Iterator[tuple[int, bytes]]:
        for client, before in ((1, []), (0, []), (3, [0, 1]), (2, [0, 1])):
            assert seen == before
            yield client, b""

    for client, _ in in_order(arrive(), range(4)):
        seen.append(client)
    assert seen == [0, 1, 2, 3]


def test_of_replies_that_come_in_the_worst_order_one_is_in_memory() -> None:
    """The allowance is twice the bytes that may wait in memory, while they move to the file, and two replies."""
    size = 2**20

    def arrive() -> Iterator[tuple[int, bytes]]:
        for client in reversed(range(40)):
            yield client, bytes(size)

    tracemalloc.start()
    try:
        assert [client for client, _ in in_order(arrive(), range(40))] == list(range(40))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * reply_order.MEMORY_BYTES + 3 * size
