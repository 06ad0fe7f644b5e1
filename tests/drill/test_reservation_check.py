"""The drill's own check finds an update without a reservation, at a node and at the server."""

from typing import Any

from tests.drill.reservation_check import find_under_counts

RESERVED: list[dict[str, Any]] = [{"seq": 1, "type": "reserve", "key": "run a round 0 of b"}]


def test_an_update_that_was_sent_again_counts_once() -> None:
    sent = [("client-0", "r", 0, "digest", 1), ("client-0", "r", 0, "digest", 1)]
    assert find_under_counts(sent, RESERVED, secure=False) == []


def test_a_second_update_without_a_reservation_is_found() -> None:
    sent = [("client-0", "r", 0, "one", 1), ("client-0", "r", 0, "another", 1)]
    assert find_under_counts(sent, RESERVED, secure=False) == ["client-0 made 2 updates in round 1 and had counted 1"]


def test_a_round_that_the_server_never_reserved_or_gave_back_is_found() -> None:
    sent = [("client-0", "r", 0, "one", 1)]
    void: list[dict[str, Any]] = [*RESERVED, {"type": "void", "ticket": 1}]
    for ledger in ([], void):
        assert find_under_counts(sent, ledger, secure=False) == ["the server has no reservation for round 1"]
