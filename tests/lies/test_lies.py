"""Every lie is told in a whole run: it costs a round at most, names nobody honest, and achieves what the page says.

A few lies are told by `make test`, and all of them by `make test-slow`.
"""

import json
from typing import Any

import pytest

from tests.lies.__main__ import LIES, RESULTS, play_lie
from tests.lies.client_table import CLIENT_LIES
from tests.lies.page import lost_rounds, render_page
from tests.lies.server_table import SERVER_LIES

RECORDS: list[dict[str, Any]] = json.loads(RESULTS.read_text(encoding="utf-8"))
CLIENTS = [record for record in RECORDS if record["who"] == "client"]
SERVERS = [record for record in RECORDS if record["who"] == "server"]
EVERY = 8  # so many lies, of which one is told by `make test`
NAMELESS = {  # of lies that are no silence: the masked vectors are uniform, and what achieves nothing is not looked for
    "masks any numbers, with no regard to the limit",
    "deals client 1 shares of another secret",
    "deals client 1 a share of another secret",
    "sends its first update again",
    "sends zeros for an update",
}
SILENT = ("says nothing", "is silent", "does not answer", "and two more are silent")


def label(record: dict[str, Any]) -> str:
    return f"{record['who']}: {record['stage']}: {record['lie']}"[:100]


@pytest.mark.parametrize(
    "place",
    [pytest.param(place, marks=[pytest.mark.slow] if place % EVERY else []) for place in range(LIES)],
)
def test_a_lie_achieves_what_the_page_says(place: int) -> None:
    assert play_lie(place) == RECORDS[place]


def test_every_lie_of_the_tables_is_on_the_page_and_the_page_is_what_the_script_writes() -> None:
    assert [(record["stage"], record["lie"]) for record in CLIENTS] == [(each.stage, each.text) for each in CLIENT_LIES]
    assert [(record["stage"], record["lie"]) for record in SERVERS] == [(each.stage, each.text) for each in SERVER_LIES]
    assert RESULTS.with_suffix(".md").read_text(encoding="utf-8") == render_page(RECORDS)
    assert min(len(CLIENTS), len(SERVERS)) >= 40


@pytest.mark.parametrize("record", RECORDS, ids=label)
def test_a_lie_was_told_and_every_update_is_counted(record: dict[str, Any]) -> None:
    assert record["told"] > 0
    assert all(counted >= sent for counted, sent in zip(record["counted"], record["updates"], strict=True))


@pytest.mark.parametrize("record", RECORDS, ids=label)
def test_a_sum_is_exactly_that_of_enough_clients_or_noise(record: dict[str, Any]) -> None:
    enough = 3 if record["exact"] else 1
    assert all(each is None or len(each) >= enough for each in record["rounds"])
    assert record["exact"].count(False) == len(record["noise"])
    assert all(0.4 <= median <= 0.6 for median in record["noise"])


@pytest.mark.parametrize("record", CLIENTS, ids=label)
def test_a_liar_costs_one_round_at_most(record: dict[str, Any]) -> None:
    """Two rounds in a row can be lost to silence, and then the run stops."""
    assert lost_rounds(record) <= (2 if record["limit"] == "silence" else len(record["liars"]))
    if record["limit"] == "silence":
        assert record["stopped"]


@pytest.mark.parametrize("record", CLIENTS, ids=label)
def test_nobody_honest_is_accused_and_a_quarrel_has_a_liar_on_one_side(record: dict[str, Any]) -> None:
    """Where more are at fault than the session withstands, an honest client may be left out if it was silent."""
    liars = set(record["liars"])
    if record["limit"] != "beyond":
        assert {*record["named"], *record["left_out"], *record["silence"]} <= liars
        assert {int(client) for client in record["owners"]} <= liars
    assert not record["quarrel"] or liars & set(record["quarrel"])


@pytest.mark.parametrize("record", CLIENTS, ids=label)
def test_a_liar_is_named_wherever_it_can_be_known(record: dict[str, Any]) -> None:
    named = {*record["named"], *record["quarrel"], *map(int, record["owners"])}
    is_silent = record["lie"].startswith(SILENT) and lost_rounds(record) == 0
    if record["lie"] in NAMELESS or is_silent:
        assert not named
    elif not record["strangers"] and record["limit"] != "silence":
        assert set(record["liars"]) <= named | set(record["silence"])


@pytest.mark.parametrize("record", SERVERS, ids=label)
def test_a_lie_of_a_server_is_refused_in_words_for_the_owner_or_gets_nothing_new(record: dict[str, Any]) -> None:
    refused = [reply for reply in record["replies"] if reply not in ("an answer", "the same bytes again")]
    assert bool(refused) == bool(record["refusing"])
    assert all(reply.endswith((".", ")")) for reply in refused)
