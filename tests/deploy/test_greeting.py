"""Server and nodes greet each other: who is there, and which code runs on each side."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from discreet.code_version import CodeVersion, read_code_version
from discreet.deploy import client_node
from discreet.deploy.deployed_run import DeployedRun
from discreet.engines.flower import client_calls, hello_messages, signed_messages
from discreet.engines.flower.flower_engine import FlowerEngine
from discreet.randomness.streams import RunKey
from discreet.secure_sums.secagg import key_agreement
from discreet.secure_sums.secagg.session_errors import BadMessage
from discreet.secure_sums.secagg.wire import VERSION, Writer
from tests.deploy.example_sites import PLAIN, SECURE, Replies, Wire, add_shared, connect_nodes, copy_site
from tests.deploy.node_requests import RequestCase, refusal

OTHER = CodeVersion("0.4.0", "7" * 40, True)

pytestmark = pytest.mark.usefixtures("one_thread")


def test_a_run_records_the_code_of_its_clients_and_says_nothing_if_all_run_the_same(tmp_path: Path) -> None:
    site, heard = copy_site(tmp_path, PLAIN), list[str]()
    outcome = DeployedRun(site, "first").train(connect_nodes(tmp_path, site, heard), heard.append)
    stamp = read_code_version().stamp
    assert [line["client_code"] for line in outcome.record.read_rounds()] == [[stamp]] * 3
    assert json.loads(outcome.record.read_text("guarantee.json"))["client_code"] == [stamp]
    assert not [line for line in heard if " runs discreet " in line]


@pytest.mark.parametrize(
    ("module", "line"),
    [
        (client_node, "The server runs {ours}; this node runs {other}."),
        (client_calls, "client-0 runs {ours}; this server runs {other}."),
    ],
)
def test_another_code_on_the_other_side_is_named_and_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: object, line: str
) -> None:
    monkeypatch.setattr(module, "read_code_version", lambda: OTHER)
    site, heard = copy_site(tmp_path, PLAIN), list[str]()
    outcome = DeployedRun(site, "first").train(connect_nodes(tmp_path, site, heard), heard.append)
    assert outcome.completed == 3
    assert line.format(ours=read_code_version(), other=OTHER) in heard


def test_the_signature_of_a_hello_covers_the_greeting_and_the_code() -> None:
    secret = key_agreement.random_bytes(key_agreement.KEY_BYTES)
    public = key_agreement.identity_key(secret)
    body = hello_messages.encode_greeting(b"n" * 32)
    hello = hello_messages.read_hello(hello_messages.encode_hello("run", 2, body, secret))
    assert (hello.client, hello.stamp, hello.version) == (2, read_code_version().stamp, VERSION)
    assert hello_messages.read_greeting(body) == (read_code_version().stamp, VERSION)
    assert hello.is_proven("run", body, public)
    assert not hello._replace(stamp=OTHER.stamp).is_proven("run", body, public)
    assert not hello._replace(client=1).is_proven("run", body, public)
    assert not hello.is_proven("run", hello_messages.encode_greeting(b"m" * 32), public)
    assert not hello.is_proven("another run", body, public)


@pytest.mark.parametrize(
    ("nonce", "why"),
    [
        (
            b"n" * 32,
            f"The server speaks version 1 of the protocol, and the node version {VERSION}: update discreet on the "
            "server.",
        ),
        (
            b"n" * 32 + bytes([VERSION + 1]),
            f"The server speaks version {VERSION + 1} of the protocol, and the node version "
            f"{VERSION}: update discreet on the node's machine.",
        ),
    ],
    ids=["an older server", "a newer server"],
)
def test_a_node_refuses_a_server_of_another_version_in_words(request_case: RequestCase, nonce: bytes, why: str) -> None:
    _, _, node, about, _, key = request_case
    body = Writer().blob(nonce).blob(read_code_version().stamp.encode()).to_bytes()
    hello = signed_messages.sign_request(replace(about, kind="hello", cohort=()), body, key)
    assert refusal(node, hello) == why


@dataclass
class OlderNodeWire(Wire):
    """A network on which client 2 answers a greeting as version 1 did: without its version."""

    def exchange(
        self, requests: Mapping[int, bytes], enough: int, limit: float = math.inf, shared: bytes = b""
    ) -> Replies:
        requests = add_shared(requests, shared)
        came = dict(super().exchange(requests, enough))
        return iter((came if len(self.passed) > 1 else {**came, 102: came[102][:-1]}).items())


def test_a_server_refuses_a_node_of_an_older_version_in_words(tmp_path: Path) -> None:
    site, heard = copy_site(tmp_path, SECURE), list[str]()
    wire = OlderNodeWire(connect_nodes(tmp_path, site, heard).nodes_at)
    job = DeployedRun(site, "first").prepare_job(RunKey.from_seed(7), wire, heard.append)
    engine = job.remote_engine
    assert isinstance(engine, FlowerEngine)
    engine.calls.timeout = 0.0
    found = engine.gather(job.algorithm.broadcast(job.algorithm.init(job.params), 0), [0, 1, 2])
    assert found.contributors == (0, 1)
    assert heard[0] == (
        f"client-2 can't take part. The server speaks version {VERSION} of the protocol, and the node version 1: "
        "update discreet on the node's machine."
    )


@dataclass
class RefusingNodeWire(Wire):
    """A network on which client 2 refuses the greeting until its owner has mended the cause."""

    is_mended: bool = False
    is_away: bool = False

    def nodes(self) -> list[int]:
        return [node for node in self.nodes_at if node != 102 or not self.is_away]

    def exchange(
        self, requests: Mapping[int, bytes], enough: int, limit: float = math.inf, shared: bytes = b""
    ) -> Replies:
        came = dict(super().exchange(requests, enough, limit, shared))
        if 102 in came and not self.is_mended:
            came[102] = signed_messages.encode_refusal(signed_messages.Refusal("The policy forbids it."))
        return iter(came.items())


@pytest.fixture
def greeting_case(tmp_path: Path) -> tuple[RefusingNodeWire, client_calls.ClientCalls, list[str]]:
    """A network with a client that refuses the greeting, the calls of a run of 80 rounds, and what they print."""
    site, heard = copy_site(tmp_path, PLAIN.replace("rounds = 3", "rounds = 80")), list[str]()
    wire = RefusingNodeWire(connect_nodes(tmp_path, site, []).nodes_at)
    engine = DeployedRun(site, "first").prepare_job(RunKey.from_seed(7), wire, heard.append).remote_engine
    assert isinstance(engine, FlowerEngine)
    engine.calls.timeout = 0.0
    return wire, engine.calls, heard


def test_a_node_that_refused_is_asked_again_after_ever_more_rounds_and_then_takes_part(
    greeting_case: tuple[RefusingNodeWire, client_calls.ClientCalls, list[str]],
) -> None:
    """Its number is the same after a restart, so nothing else shows that its owner has mended the cause."""
    wire, calls, heard = greeting_case
    asked = []
    for round in range(40):
        before = len(wire.passed)
        assert calls.await_clients([0, 1, 2], 1, round) == [0, 1]
        asked += [round] * len(wire.passed[before:])
    assert asked == [0, 10, 30]
    assert [line for line in heard if "refused" in line] == ["A node refused to say who it is: The policy forbids it."]
    wire.is_mended = True
    assert [calls.await_clients([0, 1, 2], 1, round) for round in (69, 70)] == [[0, 1], [0, 1, 2]]


def test_a_node_that_refused_is_asked_again_when_it_has_left_and_come_back(
    greeting_case: tuple[RefusingNodeWire, client_calls.ClientCalls, list[str]],
) -> None:
    wire, calls, _ = greeting_case
    assert calls.await_clients([0, 1, 2], 1, 0) == [0, 1]
    wire.is_mended = wire.is_away = True
    assert calls.await_clients([0, 1, 2], 1, 1) == [0, 1]
    wire.is_away = False
    assert calls.await_clients([0, 1, 2], 1, 2) == [0, 1, 2]


def test_a_node_that_refused_is_not_asked_again_and_again_while_another_client_is_awaited(
    greeting_case: tuple[RefusingNodeWire, client_calls.ClientCalls, list[str]],
) -> None:
    wire, calls, _ = greeting_case
    del wire.nodes_at[101]
    now = [0.0]
    calls.timeout, calls.clock = 60.0, lambda: now[0]
    calls.pause = lambda seconds: now.__setitem__(0, now[0] + seconds)
    assert calls.await_clients([0, 1, 2], 1, 0) == [0]
    assert len(wire.passed) == 1


@pytest.mark.parametrize("said", ["", "0.3. south refused round 2: its budget is spent", "0.3\n", "x" * 61])
def test_a_hello_whose_stamp_is_free_text_is_refused_on_both_sides(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    """A stamp is printed at the other side and comes to be on the card of the run."""
    monkeypatch.setattr(hello_messages, "read_code_version", lambda: CodeVersion(said))
    secret = key_agreement.random_bytes(key_agreement.KEY_BYTES)
    for read, message in (
        (hello_messages.read_greeting, hello_messages.encode_greeting(b"n" * 32)),
        (hello_messages.read_hello, hello_messages.encode_hello("run", 2, b"body", secret)),
    ):
        with pytest.raises(BadMessage, match="does not say which code runs there"):
            read(message)


@pytest.mark.parametrize("answer", [b"", b"\x00" * 70, b"\x00" * 68 + b"\xff" * 8, b"\x00" * 68 + b"\x00" * 10])
def test_an_answer_that_is_no_hello_is_refused(answer: bytes) -> None:
    with pytest.raises(BadMessage):
        hello_messages.read_hello(answer)
