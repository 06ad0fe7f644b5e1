"""Clients that lie inside a secure sum of real nodes: what each lie achieves, and who is named for it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
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
from discreet.secure_sums.secagg import key_agreement
from discreet.secure_sums.secagg.message_codec import encode, parse
from discreet.secure_sums.secagg.message_signatures import SignedMessage, sign_message
from discreet.secure_sums.secagg.session_client import Client
from discreet.secure_sums.secagg.session_messages import Masked, Message, Revealed, Shares
from tests.deploy.example_sites import SECURE, Replies, Wire, add_shared, connect_nodes, copy_site
from tests.deploy.node_requests import count_releases

pytestmark = pytest.mark.usefixtures("one_thread")

LIAR = 100  # the node of client 0, whose replies are read first
Lie = Callable[[Message], Message | None]  # what is sent instead of a message; None: nothing


@dataclass
class LyingMemberWire(Wire):
    """A network in which client 0 changes its messages of these kinds, and signs them with its own key."""

    lies: Mapping[type[Message], Lie] = field(default_factory=dict)

    def exchange(
        self, requests: Mapping[int, bytes], enough: int, limit: float = math.inf, shared: bytes = b""
    ) -> Replies:
        requests = add_shared(requests, shared)
        came = dict(super().exchange(requests, enough))
        if LIAR in came:
            lie = self._lie(requests[LIAR], came.pop(LIAR))
            came = came if lie is None else {LIAR: lie, **came}
        return iter(came.items())

    def _lie(self, request: bytes, reply: bytes) -> bytes | None:
        node = self.nodes_at[LIAR]
        about, _ = signed_messages.read_request(request, bytes.fromhex(node.policy.server_key))
        answer, session = signed_messages.read_reply(reply), node.journal.load_session(about.run)
        if not isinstance(answer, bytes) or session is None:
            return reply
        terms = Client.from_bytes(session.state, identity=node.identity).terms
        message = parse(SignedMessage.read(answer, terms).content, terms)
        if type(message) not in self.lies:
            return reply
        lie = self.lies[type(message)](message)
        if lie is None:
            return None
        return signed_messages.encode_answer(sign_message(encode(lie, terms), terms, node.identity))


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

    kind: type[Message]
    lie: Lie
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
        "Ignored what client-0 sent: Client 0 revealed a share of client 1's secret that is not the one it was dealt.",
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
        "this client, round and list of keys, or not what it committed to. It lies, or the server changed them.",
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
    wire = LyingMemberWire(connect_nodes(tmp_path, site, heard).nodes_at, lies={case.kind: case.lie})
    job = DeployedRun(site, "first").prepare_job(RunKey.from_seed(7), wire, heard.append)
    assert job.remote_engine is not None
    return job.remote_engine.gather(job.algorithm.broadcast(job.algorithm.init(job.params), 0), [0, 1, 2])


def deal_nothing(message: Message) -> Message:
    """Deal nothing that anybody can open."""
    assert isinstance(message, Shares | Masked)
    return replace(message, sealed={peer: bytes(len(row)) for peer, row in message.sealed.items()})


def say_nothing(message: Message) -> None:
    return None


DEALERS: dict[str, tuple[dict[type[Message], Lie], str]] = {
    "of self-masks that nobody can open": ({Masked: deal_nothing, Revealed: say_nothing}, "client-1, client-2"),
    "of a self-mask that one client can't open": ({Masked: seal_nonsense, Revealed: say_nothing}, "client-1"),
    "of mask keys that nobody can open": ({Shares: deal_nothing, Masked: say_nothing}, "client-1, client-2"),
    "of mask keys that one client can't open": ({Shares: seal_nonsense, Masked: say_nothing}, "client-1"),
}


def train_with_liar(
    tmp_path: Path, lies: Mapping[type[Message], Lie], heard: list[str], dropouts: int = 1
) -> tuple[Outcome, Wire, RunStatus]:
    """Train for five rounds while client 0 lies in each."""
    experiment = SECURE.replace("rounds = 3", "rounds = 5").replace("dropouts = 1", f"dropouts = {dropouts}")
    site = copy_site(tmp_path, experiment)
    wire = LyingMemberWire(connect_nodes(tmp_path, site, heard).nodes_at, lies=lies)
    say = record_refusals(site.refusals_file("first"), heard.append)
    return DeployedRun(site, "first").train(wire, say), wire, read_status(site).runs[0]


@pytest.mark.parametrize(("lies", "complaining"), DEALERS.values(), ids=list(DEALERS))
def test_a_dealer_who_is_silent_when_its_secret_is_opened_costs_one_round_and_is_left_out_of_the_others(
    tmp_path: Path, lies: Mapping[type[Message], Lie], complaining: str
) -> None:
    """Also if one client alone complains, and may be the liar: with one faulty client, the honest ones would do."""
    heard = list[str]()
    outcome, wire, status = train_with_liar(tmp_path, lies, heard)
    assert outcome.stopped is None
    rounds = outcome.record.read_rounds()
    assert [line["clients"] for line in rounds] == [0, 2, 2, 2, 2]
    assert [line.get("revealed") for line in rounds] == [True, None, None, None, None]
    lost = f"The round is lost because of client-0, which dealt shares that {complaining} can't use, or they lie: "
    assert len([line for line in heard if line.startswith(lost)]) == 1
    left_out = f"client-0 is left out of the rounds after round 1: it did not answer, and {complaining} can't use "
    assert len([line for line in heard if line.startswith(left_out)]) == 1
    assert status.problems[0].startswith(left_out)
    assert [count_releases(node) for node in wire.nodes_at.values()] == [1, 5, 5]
    asked = [LIAR in exchange for exchange in wire.passed]
    assert asked == sorted(asked, reverse=True)  # not even for keys, once it is left out


@pytest.mark.parametrize("lie", [deal_nothing, seal_nonsense])
def test_a_dealer_of_nonsense_that_answers_loses_no_round(tmp_path: Path, lie: Lie) -> None:
    outcome, _, _ = train_with_liar(tmp_path, {Shares: lie, Masked: lie}, [])
    assert [line["clients"] for line in outcome.record.read_rounds()] == [3, 3, 3, 3, 3]


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


def test_a_client_that_the_sum_can_not_do_without_is_named_and_ends_the_run_after_one_round(tmp_path: Path) -> None:
    heard = list[str]()
    lies: dict[type[Message], Lie] = {Masked: deal_nothing, Revealed: say_nothing}
    outcome, wire, _ = train_with_liar(tmp_path, lies, heard, dropouts=0)
    assert [line["revealed"] for line in outcome.record.read_rounds()] == [True]
    assert outcome.stopped is not None
    assert outcome.stopped.startswith("Stopped after 1 of 5 rounds. 0 shares of client 0's secret were revealed, and ")
    assert (
        "client-0, which dealt shares that client-1, client-2 can't use, or they lie; 2 clients remain without, and 3 "
        "are needed. Find out who lies" in outcome.stopped
    )
    assert not [line for line in heard if "is left out" in line]
    assert [count_releases(node) for node in wire.nodes_at.values()] == [1, 1, 1]


def test_the_clients_without_whose_answer_a_round_is_lost_are_named(tmp_path: Path) -> None:
    heard = list[str]()
    outcome, _, _ = train_with_liar(tmp_path, {Masked: say_nothing}, heard, dropouts=0)
    assert [line["clients"] for line in outcome.record.read_rounds()] == [0, 0]
    assert [line for line in heard if line.startswith("The round is lost for want of ")] == [
        "The round is lost for want of client-0: 2 clients sent a masked vector, and 3 are needed."
    ] * 2


def send_anything(message: Message) -> Message:
    """Mask random numbers, which wrap around in the sum."""
    assert isinstance(message, Masked)
    return replace(message, vector=key_agreement.random_bytes(len(message.vector) - 8) + bytes(8))


def test_a_sum_that_honest_clients_can_not_have_sent_stops_the_run_since_nobody_can_be_left_out(tmp_path: Path) -> None:
    heard = list[str]()
    outcome, wire, _ = train_with_liar(tmp_path, {Masked: send_anything}, heard)
    assert [line["revealed"] for line in outcome.record.read_rounds()] == [True]
    assert outcome.stopped is not None
    assert outcome.stopped.startswith(
        "Stopped after 1 of 5 rounds. A round was lost by a hostile or broken client. The sum of 3 clients has a norm "
    )
    assert outcome.stopped.endswith("submit the run again: it continues after its last round.")
    assert [count_releases(node) for node in wire.nodes_at.values()] == [1, 1, 1]
