"""A secure sum from a client's view: for whom and on what terms it begins, what it masks, and when it ends."""

import math
import shutil
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from discreet.deploy.app_folder import AppFolder
from discreet.deploy.deployed_run import DeployedRun
from discreet.deploy.journal import Entry
from discreet.engines.flower import signed_messages
from discreet.engines.flower.flower_errors import ClientsRefused
from discreet.randomness.streams import RunKey
from discreet.secure_sums.secagg.session_errors import TooFewClients
from discreet.secure_sums.secagg.session_messages import SETUP
from discreet.secure_sums.secagg.session_terms import Terms
from tests.deploy.example_sites import SECURE, Replies, Wire, connect_nodes, copy_site, edit_policy
from tests.deploy.node_requests import OpenSession, are_equal, count_releases, open_request, refusal, restart

MASK = 1 + len(SETUP)  # the number of the first exchange of masked vectors: it follows who is there, and the set-up

pytestmark = pytest.mark.usefixtures("one_thread")


def is_lost(left_out: int | None, mask: int, node: int, number: int) -> bool:
    """Whether an exchange is lost: this node's, from its masked vector on."""
    return node == left_out and number >= mask


def anew(wire: Wire) -> None:
    wire.nodes_at = {number: restart(node) for number, node in wire.nodes_at.items()}


def test_a_secure_session_of_one_experiment_does_not_serve_another(open_session: OpenSession) -> None:
    site, wire, engine, broadcast = open_session
    engine.gather(broadcast, [0, 1, 2])
    before, agreed = engine.calls.experiment, site.app / "resolved.toml"
    agreed.write_text(agreed.read_text().replace("learning_rate = 2.0", "learning_rate = 1.0"))
    engine.calls.experiment = AppFolder.open(site.app).digest
    assert engine.calls.experiment != before
    for node in wire.nodes_at.values():
        edit_policy(node.client_folder.folder, before, engine.calls.experiment)
    anew(wire)
    with pytest.raises(ClientsRefused, match="No secure sum was begun with this node"):
        engine.gather(replace(broadcast, round=1), [0, 1, 2])
    for node in wire.nodes_at.values():  # nor if its file is in the other's place
        runs = node.client_folder.folder / "runs"
        shutil.copytree(runs / before, runs / engine.calls.experiment, dirs_exist_ok=True)
    with pytest.raises(ClientsRefused, match="was begun for another experiment"):
        engine.gather(replace(broadcast, round=2), [0, 1, 2])


def test_two_sessions_that_a_server_gives_one_name_are_two_attempts_with_two_noises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one noise in both, the sum of three clients minus that of two of them would be the third's update."""
    honest = Terms.choose
    monkeypatch.setattr(Terms, "choose", lambda **asked: replace(honest(**asked), session=bytes(16)))
    site, heard = copy_site(tmp_path, SECURE), list[str]()
    wire = connect_nodes(tmp_path, site, heard)
    sums = []
    for left_out in (None, 102):
        job = DeployedRun(site, "first").prepare_job(RunKey.from_seed(7), wire, heard.append)
        assert job.remote_engine is not None
        engine, broadcast, began = (
            job.remote_engine,
            job.algorithm.broadcast(job.algorithm.init(job.params), 0),
            wire.passed,
        )
        mask = len(began) + MASK
        wire.lost = partial(is_lost, left_out, mask)
        sums.append(engine.gather(broadcast, [0, 1, 2]))
    assert [each.contributors for each in sums] == [(0, 1, 2), (0, 1)]
    assert [count_releases(node) for node in wire.nodes_at.values()] == [2, 2, 1]
    third = wire.nodes_at[102].learner
    alone = third.update(
        "",
        third.decode_broadcast(0, signed_messages.encode_broadcast(broadcast.params, broadcast.announcement)),
        Entry(0, ""),
    )
    difference = {name: sums[0].total[name] - sums[1].total[name] for name in alone}
    assert not are_equal(difference, alone)


def test_a_session_that_was_begun_is_held_to_the_policy_of_today(open_session: OpenSession) -> None:
    _, wire, engine, broadcast = open_session
    engine.gather(broadcast, [0, 1, 2])
    for node in wire.nodes_at.values():
        edit_policy(node.client_folder.folder, "minimum_cohort = 2", "minimum_cohort = 3")
    anew(wire)
    with pytest.raises(ClientsRefused, match="sums of at least 3 clients, and the server would make one of 2"):
        engine.gather(replace(broadcast, round=1), [0, 1, 2])


def test_a_mask_that_is_asked_for_again_is_the_same_and_another_question_gets_none(open_session: OpenSession) -> None:
    """Exchanges: who is there, keys, shares, mask; nothing is sent after it, so the clients stay in this stage."""
    site, wire, engine, broadcast = open_session
    wire.lost = lambda node, number: number > MASK
    with pytest.raises(TooFewClients):
        engine.gather(broadcast, [0, 1, 2])
    request, reply = wire.passed[MASK][100]
    node = restart(wire.nodes_at[100])
    assert node.answer(request) == reply
    about, body, key = open_request(wire, MASK, 100, site)
    number, members, spread = signed_messages.decode_mask_request(body)
    params, announced = signed_messages.decode_broadcast(spread, node.learner.params)
    other = signed_messages.encode_broadcast({name: value + 1 for name, value in params.items()}, announced)
    question = signed_messages.sign_request(about, signed_messages.encode_mask_request(number, members) + other, key)
    assert "already answered, for another broadcast" in refusal(node, question)
    assert count_releases(node) == 1


def test_a_client_whose_first_vector_was_lost_is_in_the_next_sum_of_the_session(open_session: OpenSession) -> None:
    """The server sends it the members again, since it does not know whether they arrived."""
    _, wire, engine, broadcast = open_session
    heard = list[str]()
    engine.calls.say = heard.append
    carry = wire.exchange

    def lose_one(requests: Mapping[int, bytes], enough: int, limit: float = math.inf, shared: bytes = b"") -> Replies:
        replies = dict(carry(requests, enough, limit, shared))
        if len(wire.passed) == MASK + 1:
            del replies[100]
        return iter(replies.items())

    engine.calls.carrier.exchange = lose_one  # type: ignore[method-assign]
    sums = [engine.gather(replace(broadcast, round=round), [0, 1, 2]).contributors for round in range(2)]
    assert sums == [(1, 2), (0, 1, 2)]
    assert heard == []


def test_a_mask_that_can_not_be_made_costs_nothing(open_session: OpenSession) -> None:
    """Before the keys are exchanged; with a number that was used, or that the session does not have."""
    site, wire, engine, broadcast = open_session
    wire.lost = lambda node, number: number > 1
    with pytest.raises(TooFewClients):
        engine.gather(broadcast, [0, 1, 2])
    spread = signed_messages.encode_broadcast(broadcast.params, broadcast.announcement)
    about, _, key = open_request(wire, 1, 100, site)
    about, node = replace(about, kind="mask"), wire.nodes_at[100]
    why = refusal(node, signed_messages.sign_request(about, signed_messages.encode_mask_request(0, b"") + spread, key))
    assert "masked when the set-up is done" in why
    assert count_releases(node) == 0
    wire.lost = lambda node, number: False
    engine.gather(broadcast, [0, 1, 2])
    assert count_releases(node) == 1
    for number in (0, 3):
        why = refusal(
            node,
            signed_messages.sign_request(
                replace(about, round=1), signed_messages.encode_mask_request(number, b"") + spread, key
            ),
        )
        assert f"and got {number}: a round's keys serve once" in why
    assert count_releases(node) == 1


def test_a_session_that_is_aborted_at_its_first_mask_stays_so(open_session: OpenSession) -> None:
    """The server gives client 0 the shares that are for client 1."""
    site, wire, engine, broadcast = open_session
    wire.lost = lambda node, number: number > MASK or (number == MASK and node == 100)
    with pytest.raises(TooFewClients):
        engine.gather(broadcast, [0, 1, 2])
    about, body, key = open_request(wire, MASK, 101, site)
    node, mine = wire.nodes_at[100], replace(about, client=0)
    assert "This node has left the secure sum" in refusal(node, signed_messages.sign_request(mine, body, key))
    assert "was aborted, and its secrets are erased" in refusal(node, signed_messages.sign_request(mine, body, key))
    assert count_releases(node) == 0


@pytest.mark.parametrize(
    ("terms", "why"),
    [
        ({"length": 2**31}, "The secure sum has other numbers than this algorithm."),
        ({"bits": 40}, "The secure sum has other numbers than this algorithm."),
        ({"rounds": 4}, "The secure sum is for 4 rounds, and the experiment has 3 left."),
    ],
    ids=str,
)
def test_a_session_of_other_numbers_is_not_begun(open_session: OpenSession, terms: dict[str, Any], why: str) -> None:
    site, wire, engine, broadcast = open_session
    engine.gather(broadcast, [0, 1, 2])
    about, body, key = open_request(wire, 1, 100, site)
    spoiled = replace(Terms.from_bytes(body), **terms)
    assert refusal(wire.nodes_at[100], signed_messages.sign_request(about, spoiled.to_bytes(), key)) == why
