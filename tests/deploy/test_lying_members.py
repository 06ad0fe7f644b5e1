"""Clients that lie inside a secure sum of real nodes: what each lie achieves, and who is named for it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pytest

from discreet.deploy.deployed_run import DeployedRun
from discreet.deploy.deployment_status import RunStatus, read_status
from discreet.deploy.run_refusals import record_refusals
from discreet.engines.engine import CohortSum
from discreet.engines.flower import signed_messages
from discreet.engines.flower.flower_engine import FlowerEngine
from discreet.engines.flower.flower_errors import ClientsAway
from discreet.experiment.loop.outcome import Outcome
from discreet.randomness.streams import RunKey
from discreet.secure_sums.secagg.message_codec import encode, parse
from discreet.secure_sums.secagg.message_signatures import SignedMessage, sign_message
from discreet.secure_sums.secagg.session_client import Client
from discreet.secure_sums.secagg.session_messages import ClientMessage, Masked, Message, Revealed, Shares
from tests.deploy.example_sites import SECURE, Replies, Wire, connect_nodes, copy_site
from tests.deploy.node_requests import count_releases

pytestmark = pytest.mark.usefixtures("one_thread")

LIAR = 100  # the node of client 0, whose replies are read first


@dataclass
class LyingMemberWire(Wire):
    """A network in which client 0 changes its messages of one kind, and signs them with its own key."""

    kind: type[ClientMessage] = Masked
    lie: Callable[[Message], Message] = lambda message: message

    def exchange(self, requests: Mapping[int, bytes], enough: int, limit: float = math.inf) -> Replies:
        came = dict(super().exchange(requests, enough))
        return ((node, self._lie(requests[node], reply) if node == LIAR else reply) for node, reply in came.items())

    def _lie(self, request: bytes, reply: bytes) -> bytes:
        node = self.nodes_at[LIAR]
        about, _ = signed_messages.read_request(request, bytes.fromhex(node.policy.server_key))
        answer, session = signed_messages.read_reply(reply), node.journal.load_session(about.run)
        if not isinstance(answer, bytes) or session is None:
            return reply
        terms = Client.from_bytes(session.state, identity=node.identity).terms
        message = parse(SignedMessage.read(answer, terms).content, terms)
        if not isinstance(message, self.kind):
            return reply
        return signed_messages.encode_answer(sign_message(encode(self.lie(message), terms), terms, node.identity))


def name_another(message: Message) -> Message:
    """Answer in the name of client 1."""
    if isinstance(message, Masked):
        sealed = {0 if peer == 1 else peer: row for peer, row in message.sealed.items()}
        return replace(message, client=1, sealed=sealed)
    assert isinstance(message, Revealed)
    return replace(message, client=1)


def reveal_zeros(message: Message) -> Message:
    assert isinstance(message, Revealed)
    return replace(message, self_masks=dict.fromkeys(message.self_masks, bytes(33)))


def seal_nonsense(message: Message) -> Message:
    """Deal nothing that client 1 can open."""
    assert isinstance(message, Shares | Masked)
    return replace(message, sealed={**message.sealed, 1: bytes(len(message.sealed[1]))})


class LyingCase(NamedTuple):
    """A lie of client 0, whose updates are in the sum nevertheless, and what the operator and an owner read of it."""

    kind: type[ClientMessage]
    lie: Callable[[Message], Message]
    contributors: tuple[int, ...]
    line: str


CASES = {
    "a masked vector in another's name": LyingCase(
        Masked, name_another, (1, 2), "Ignored what client-0 sent: Client 0 sent a message in the name of client 1."
    ),
    "shares in another's name": LyingCase(
        Revealed,
        name_another,
        (0, 1, 2),
        "Ignored what client-0 sent: Client 0 sent a message in the name of client 1.",
    ),
    "wrong shares": LyingCase(
        Revealed,
        reveal_zeros,
        (0, 1, 2),
        "Ignored what client-0 sent: Client 0 revealed a share of client 0's secret that is not the one it was dealt.",
    ),
    "shares that client 1 can't open": LyingCase(
        Masked,
        seal_nonsense,
        (0, 1, 2),
        "The sum came without some shares of client-0, which dealt shares that client-1 can't use, or they lie.",
    ),
    "shares of a mask key that client 1 can't open": LyingCase(
        Shares,
        seal_nonsense,
        (0, 1, 2),
        "About client-0: Client 0 dealt shares of its mask key that this client can't use: they are not sealed for "
        "this client, round and list of keys, or not what it committed to.",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_client_that_lies_is_named_and_loses_nobody_the_round(tmp_path: Path, case: LyingCase) -> None:
    heard = list[str]()
    found = sum_with_liar(tmp_path, case, heard)
    assert found.contributors == case.contributors
    assert case.line in heard
    assert all("client-0" in line for line in heard)


def sum_with_liar(tmp_path: Path, case: LyingCase, heard: list[str]) -> CohortSum:
    site = copy_site(tmp_path, SECURE)
    wire = LyingMemberWire(connect_nodes(tmp_path, site, heard).nodes_at, kind=case.kind, lie=case.lie)
    job = DeployedRun(site, "first").prepare_job(RunKey.from_seed(7), wire, heard.append)
    assert job.remote_engine is not None
    return job.remote_engine.gather(job.algorithm.broadcast(job.algorithm.init(job.params), 0), [0, 1, 2])


def deal_nothing(message: Message) -> Message:
    """Deal nothing that anybody can open."""
    assert isinstance(message, Masked)
    return replace(message, sealed={peer: bytes(len(row)) for peer, row in message.sealed.items()})


NAMED = "The round is lost because of client-0, which dealt shares that client-1, client-2 can't use, or they lie: "


def train_with_dealer_of_nothing(tmp_path: Path, dropouts: int, heard: list[str]) -> tuple[Outcome, Wire, RunStatus]:
    """Train for five rounds while client 0 deals nothing that anybody can open."""
    experiment = SECURE.replace("rounds = 3", "rounds = 5").replace("dropouts = 1", f"dropouts = {dropouts}")
    site = copy_site(tmp_path, experiment)
    wire = LyingMemberWire(connect_nodes(tmp_path, site, heard).nodes_at, kind=Masked, lie=deal_nothing)
    say = record_refusals(site.refusals_file("first"), heard.append)
    return DeployedRun(site, "first").train(wire, say), wire, read_status(site).runs[0]


def test_a_client_whose_update_nobody_can_unmask_costs_one_round_and_is_left_out_of_the_others(tmp_path: Path) -> None:
    heard = list[str]()
    outcome, wire, status = train_with_dealer_of_nothing(tmp_path, 1, heard)
    assert outcome.stopped is None
    rounds = outcome.record.read_rounds()
    assert [line["clients"] for line in rounds] == [0, 2, 2, 2, 2]
    assert [line.get("revealed") for line in rounds] == [True, None, None, None, None]
    assert len([line for line in heard if line.startswith(NAMED)]) == 1
    left_out = "client-0 is left out of the rounds after round 1: "
    assert len([line for line in heard if line.startswith(left_out)]) == 1
    assert status.problems[0].startswith(left_out)
    assert [count_releases(node) for node in wire.nodes_at.values()] == [1, 5, 5]
    asked = [LIAR in exchange for exchange in wire.passed]
    assert asked == sorted(asked, reverse=True)  # not even for keys, once it is left out


def test_a_round_that_needs_a_client_that_is_left_out_is_refused_before_anybody_is_asked(tmp_path: Path) -> None:
    heard = list[str]()
    site = copy_site(tmp_path, SECURE)
    wire = connect_nodes(tmp_path, site, heard)
    job = DeployedRun(site, "first").prepare_job(RunKey.from_seed(7), wire, heard.append)
    assert isinstance(job.remote_engine, FlowerEngine)
    calls = job.remote_engine.calls
    calls.leave_out(0, 0, "it lies.")
    before = len(wire.passed)
    with pytest.raises(ClientsAway, match="2 of 3 clients are not left out, and 3 are needed"):
        calls.await_clients([0, 1, 2], 3, 1)
    assert len(wire.passed) == before
    assert calls.await_clients([0, 1, 2], 2, 1) == [1, 2]


def test_a_client_that_the_sum_can_not_do_without_is_named_and_ends_the_run_before_the_budget_is_spent(
    tmp_path: Path,
) -> None:
    heard = list[str]()
    outcome, wire, _ = train_with_dealer_of_nothing(tmp_path, 0, heard)
    assert [line["revealed"] for line in outcome.record.read_rounds()] == [True, True]
    assert outcome.stopped is not None
    assert outcome.stopped.startswith(
        "Stopped after 2 of 5 rounds. 2 rounds in a row were lost, the last one because: "
    )
    assert len([line for line in heard if line.startswith(NAMED)]) == 2
    assert not [line for line in heard if "is left out" in line]
    assert [count_releases(node) for node in wire.nodes_at.values()] == [2, 2, 2]
