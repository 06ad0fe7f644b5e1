"""What the open port lets through, and what a node and a server print if the other is missing; without processes."""

import asyncio
import json
import os
import socket
import subprocess
import threading
from base64 import b64encode
from collections.abc import Callable, MutableMapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr")

import httpx
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.proto import fleet_pb2 as fleet
from flwr.proto.message_pb2 import Message, Metadata, ObjectTree
from flwr.proto.node_pb2 import Node
from flwr.supercore.date import now
from flwr.supercore.primitives.asymmetric import public_key_to_bytes, sign_message
from flwr.supercore.protobuf.translation import PROTOBUF_REQUEST_TYPES

from discreet.cli import main as cli
from discreet.deploy import deployment_lock, flower_commands, superlink
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.engines.flower import node_registry, supernode
from discreet.engines.flower.front_proxy import (
    ALLOWED_PATHS,
    BACKEND_CONNECTIONS,
    HEARTBEAT_PATH,
    FrontProxy,
    bind_port,
)
from discreet.engines.flower.supernode import ServerLink, SuperLinkAddress
from discreet.errors import InvalidInput
from tests.deploy.example_sites import SECURE, copy_site

KEY, OTHER = (ec.generate_private_key(ec.SECP384R1()) for _ in range(2))
PULL, PUSH = "/v1/fleet/pull-messages", "/v1/fleet/push-messages"
NODE, SERVER = 17, 1  # numbers of nodes
ELSEWHERE = [path for _, path in PROTOBUF_REQUEST_TYPES if path not in ALLOWED_PATHS]


def signed(key: ec.EllipticCurvePrivateKey = KEY, age: float = 0.0) -> dict[str, str]:
    timestamp = (now() - timedelta(seconds=age)).isoformat()
    return {
        "flwr-public-key": b64encode(public_key_to_bytes(key.public_key())).decode(),
        "flwr-signature": b64encode(sign_message(key, timestamp.encode())).decode(),
        "flwr-timestamp": timestamp,
    }


class Backend:
    """A SuperLink that answers with the request it got, and records it."""

    def __init__(self, fails: bool = False) -> None:
        self.asked: list[httpx.Request] = []
        self.fails = fails

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        if self.fails:
            raise httpx.ConnectError("nobody is there")
        return httpx.Response(
            200, content=b"got " + request.content, headers={"content-type": "application/x-protobuf"}
        )


def ask_proxy(backend: Backend, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> httpx.Response:
    async def ask() -> httpx.Response:
        within = httpx.AsyncClient(transport=httpx.MockTransport(backend), base_url="https://127.0.0.1:1")
        front = FrontProxy(within, frozenset({public_key_to_bytes(KEY.public_key())}), max_bytes=1000, max_objects=4)
        outside = httpx.AsyncClient(transport=httpx.ASGITransport(front), base_url="https://server:8000")
        async with within, outside:
            return await outside.request(method, path, headers=headers, content=body)

    return asyncio.run(ask())


def test_what_a_node_asks_for_is_handed_on_as_it_is() -> None:
    backend = Backend()
    answer = ask_proxy(backend, "POST", PULL, {**signed(), "flwr-other": "kept"}, b"bytes")
    assert (answer.status_code, answer.content) == (200, b"got bytes")
    assert answer.headers["content-type"] == "application/x-protobuf"
    (request,) = backend.asked
    assert (request.method, str(request.url)) == ("POST", f"https://127.0.0.1:1{PULL}")
    assert request.headers["flwr-other"] == "kept"
    assert request.headers["host"] == "127.0.0.1:1"


@pytest.mark.parametrize("path", [*ELSEWHERE, "/docs", "/openapi.json", "/", "/v1/fleet/", "/v1/fleet/new"])
def test_every_other_path_of_flowers_is_refused_to_a_client_too(path: str) -> None:
    backend = Backend()
    assert ask_proxy(backend, "POST", path, signed()).status_code == 404
    assert not backend.asked


@pytest.mark.parametrize(
    "path",
    [
        f"{PULL}/../../control/start-run",
        f"{PULL}/",
        "//v1/control/start-run",
        f"{PULL}%2f..%2f..%2fcontrol%2fstart-run",
    ],
)
def test_no_spelling_of_a_path_reaches_the_control_api(path: str) -> None:
    backend = Backend()
    assert ask_proxy(backend, "POST", path, signed()).status_code == 404
    assert not backend.asked


def test_flower_has_control_and_runtime_paths_that_are_refused() -> None:
    assert {"/v1/control/start-run", "/v1/control/register-node", "/v1/runtime/acquire-task"} <= set(ELSEWHERE)
    assert {"/v1/fleet/register-node", "/v1/fleet/unregister-node"} <= set(ELSEWHERE)
    assert {path for _, path in PROTOBUF_REQUEST_TYPES} >= ALLOWED_PATHS


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_another_method_is_refused(method: str) -> None:
    backend = Backend()
    assert ask_proxy(backend, method, PULL, signed()).status_code == 404
    assert not backend.asked


@pytest.mark.parametrize(
    "headers",
    [
        {},
        signed(OTHER),
        {**signed(OTHER), "flwr-public-key": signed()["flwr-public-key"]},
        {**signed(), "flwr-timestamp": now().isoformat()},
        {**signed(), "flwr-signature": "no base64!"},
        signed(age=1000.0),
        signed(age=-1000.0),
    ],
)
def test_who_has_no_key_of_a_client_is_refused(headers: dict[str, str]) -> None:
    backend = Backend()
    assert ask_proxy(backend, "POST", PULL, headers, b"x" * 2000).status_code == 401  # before the body is read
    assert not backend.asked


def test_a_request_that_is_too_long_is_refused() -> None:
    backend = Backend()
    assert ask_proxy(backend, "POST", PULL, signed(), b"x" * 1000).status_code == 200
    assert ask_proxy(backend, "POST", PULL, signed(), b"x" * 1001).status_code == 413
    assert ask_proxy(backend, "POST", PULL, {**signed(), "content-length": "1"}, b"x" * 1001).status_code == 413
    assert len(backend.asked) == 1


def announcement(
    objects: int = 3, source: int = NODE, reply_to: str = "request", replies: int = 1, root: str = "reply"
) -> bytes:
    """Return a node's announcement of replies that have so many objects each."""
    tree = ObjectTree(object_id=root)
    for number in range(1, objects):
        (tree if number % 2 else tree.children[-1]).children.append(ObjectTree(object_id=f"{number}"))
    message = Message(metadata=Metadata(message_id="reply", src_node_id=source, reply_to_message_id=reply_to))
    request = fleet.PushMessagesRequest(
        node=Node(node_id=NODE), messages_list=[message] * replies, message_object_trees=[tree] * replies
    )
    return bytes(request.SerializeToString())


@pytest.mark.parametrize("objects", [1, 3, 4])
def test_a_reply_is_handed_on(objects: int) -> None:
    backend = Backend()
    assert ask_proxy(backend, "POST", PUSH, signed(), announcement(objects)).status_code == 200
    assert [request.content for request in backend.asked] == [announcement(objects)]


@pytest.mark.parametrize(
    "body",
    [
        announcement(objects=5),
        announcement(objects=30),
        announcement(source=SERVER),
        announcement(source=SERVER, reply_to=""),
        announcement(reply_to=""),
        announcement(replies=0),
        announcement(replies=2),
        announcement(root="another"),
        b"garbage",
    ],
)
def test_a_node_can_only_announce_one_reply_of_its_own_that_is_no_larger_than_ours(body: bytes) -> None:
    """With a thousand objects in one call, a client locked the SuperLink's database until the server ended."""
    backend = Backend()
    assert ask_proxy(backend, "POST", PUSH, signed(), body).status_code == 400
    assert not backend.asked


def test_a_superlink_that_is_away_is_a_trouble_that_passes() -> None:
    assert ask_proxy(Backend(fails=True), "POST", PULL, signed()).status_code == 502


class SlowSuperLink:
    """A SuperLink that answers no call before it may."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.may_answer = asyncio.Event()

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request.content)
        await self.may_answer.wait()
        return httpx.Response(200, content=request.content)


class Caller:
    """A client that makes one call and leaves when it is told to."""

    def __init__(self, body: bytes, leaves: asyncio.Event) -> None:
        self.events = [{"type": "http.request", "body": body}]
        self.leaves = leaves
        self.got: list[bytes] = []

    async def receive(self) -> MutableMapping[str, Any]:
        if self.events:
            return self.events.pop()
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, event: MutableMapping[str, Any]) -> None:
        self.got += [event["body"]] if "body" in event else []


def test_a_call_whose_client_left_before_its_turn_costs_the_superlink_nothing() -> None:
    """Nodes that get no answer in time ask again: if the first calls went on waiting, each would make it worse."""

    async def play() -> tuple[list[bytes], list[bytes]]:
        superlink, leaves, never = SlowSuperLink(), asyncio.Event(), asyncio.Event()
        backend = httpx.AsyncClient(transport=httpx.MockTransport(superlink), base_url="https://127.0.0.1:1")
        front = FrontProxy(backend, frozenset({public_key_to_bytes(KEY.public_key())}))
        headers = [(name.encode(), value.encode()) for name, value in signed().items()]
        scope = {"type": "http", "method": "POST", "path": "/v1/fleet/get-run", "headers": headers}
        first = [Caller(b"first", never) for _ in range(BACKEND_CONNECTIONS)]
        gone = [Caller(b"gone", leaves) for _ in range(5)]
        last = Caller(b"last", never)
        calls = [asyncio.ensure_future(front(scope, each.receive, each.send)) for each in (*first, *gone, last)]
        while len(superlink.asked) < len(first):
            await asyncio.sleep(0)
        leaves.set()
        await asyncio.wait_for(asyncio.gather(*calls[len(first) : -1]), timeout=20)
        superlink.may_answer.set()
        await asyncio.gather(*calls)
        return superlink.asked, [each for caller in (*first, *gone, last) for each in caller.got]

    asked, got = asyncio.run(play())
    assert asked == [b"first"] * BACKEND_CONNECTIONS + [b"last"]
    assert got == asked


def test_a_heartbeat_does_not_wait_behind_the_calls_of_a_round() -> None:
    """Else nodes count as gone as soon as many answer at once."""

    async def play() -> list[bytes]:
        superlink, never = SlowSuperLink(), asyncio.Event()
        backend = httpx.AsyncClient(transport=httpx.MockTransport(superlink), base_url="https://127.0.0.1:1")
        front = FrontProxy(backend, frozenset({public_key_to_bytes(KEY.public_key())}))
        headers = [(name.encode(), value.encode()) for name, value in signed().items()]
        scope = {"type": "http", "method": "POST", "path": "/v1/fleet/push-object", "headers": headers}
        pushes = [Caller(b"push", never) for _ in range(BACKEND_CONNECTIONS + 5)]
        calls = [asyncio.ensure_future(front(scope, each.receive, each.send)) for each in pushes]
        while len(superlink.asked) < BACKEND_CONNECTIONS:
            await asyncio.sleep(0)
        beat = Caller(b"beat", never)
        calls.append(asyncio.ensure_future(front({**scope, "path": HEARTBEAT_PATH}, beat.receive, beat.send)))
        async with asyncio.timeout(20):
            while b"beat" not in superlink.asked:
                await asyncio.sleep(0)
        superlink.may_answer.set()
        await asyncio.gather(*calls)
        return superlink.asked

    assert asyncio.run(play())[: BACKEND_CONNECTIONS + 1] == [b"push"] * BACKEND_CONNECTIONS + [b"beat"]


def test_many_nodes_send_few_heartbeats_together_and_wait_longer_for_their_last_process() -> None:
    few, many = (SuperLinkAddress("server:1", Path("ca.crt"), Path("node.key"), nodes=nodes) for nodes in (3, 200))
    assert (few.heartbeat, few.patience) == (10.0, 60.0)
    assert (many.heartbeat, many.patience) == (50.0, 180.0)


def test_a_port_that_is_taken_is_said_before_anything_starts() -> None:
    with bind_port("127.0.0.1", 0) as door:
        door.listen()
        port = door.getsockname()[1]
        with pytest.raises(InvalidInput, match=f"can't listen at 127.0.0.1:{port}: address already in use"):
            bind_port("127.0.0.1", port)


def test_nobody_is_heard_at_a_port_that_is_only_taken() -> None:
    with bind_port("127.0.0.1", 0) as door, pytest.raises(ConnectionRefusedError):
        socket.create_connection(door.getsockname(), timeout=5)


class Server:
    """A server that returns these results of PullMessages, one after the other."""

    def __init__(self, *answers: int) -> None:
        self.answers = list(answers)

    def PullMessages(self, request: fleet.PullMessagesRequest) -> fleet.PullMessagesResponse:
        status = self.answers.pop(0)
        if status == 0:
            raise httpx.ConnectError("nobody is there")
        asked = httpx.Request("POST", "https://server")
        httpx.Response(status, request=asked).raise_for_status()
        return fleet.PullMessagesResponse()


def link_messages(*answers: int) -> tuple[list[str], Callable[[], object]]:
    said: list[str] = []
    link, server = (
        ServerLink(SuperLinkAddress("server:1", Path("ca.crt"), Path("node.key")), said.append),
        Server(*answers),
    )
    return said, lambda: link.messages(server, Node(node_id=1))  # type: ignore[arg-type]


def test_a_node_says_once_that_the_server_is_away_and_once_that_it_is_back() -> None:
    said, ask = link_messages(200, 0, 502, 0, 200, 200, 503, 200)
    there = [ask() is not None for _ in range(8)]
    assert there == [True, False, False, False, True, True, False, True]
    assert said == ["server:1 is away; waiting for it.", "server:1 is back."] * 2


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_node_that_is_refused_ends_with_a_sentence(status: int) -> None:
    said, ask = link_messages(200, status)
    ask()
    with pytest.raises(InvalidInput, match=f"key node.key is not registered there.* It answered {status}") as refused:
        ask()
    remedies = ("Ask the server's operator whether it was revoked", "this machine's clock", "hand the node's card")
    assert sorted(map(refused.value.fix.index, remedies)) == [refused.value.fix.index(remedy) for remedy in remedies]
    assert not said


def create_site(folder: Path) -> DeploymentFolder:
    site = DeploymentFolder(folder)
    site.server.mkdir(parents=True)
    return site


def test_the_superlink_is_told_to_listen_on_loopback_alone(tmp_path: Path) -> None:
    site = create_site(tmp_path)
    superlink.write_connection(site)
    inner = flower_commands.loopback_address(site)
    command = flower_commands.superlink_command(site, inner)
    assert command[command.index("--host") + 1] == "127.0.0.1"
    assert inner == f"127.0.0.1:{command[command.index('--port') + 1]}"
    assert "--enable-supernode-auth" in command


def test_a_second_server_of_one_deployment_is_refused_and_the_first_stays_to_be_found(tmp_path: Path) -> None:
    site = create_site(tmp_path)
    superlink.write_connection(site)
    before = flower_commands.loopback_address(site)
    with (
        deployment_lock.lock_deployment(site),
        pytest.raises(InvalidInput, match=f"is already running as process {os.getpid()}") as refused,
    ):
        superlink.write_connection(site)
    assert refused.value.fix.startswith("Use that server, or end it first")
    assert flower_commands.loopback_address(site) == before
    superlink.write_connection(site)


def test_a_superlink_that_outlived_its_server_is_told_apart_from_a_server_that_is_up(tmp_path: Path) -> None:
    """A process that has inherited the lock represents the SuperLink."""
    site = create_site(tmp_path)
    with deployment_lock.lock_deployment(site) as held:
        process = subprocess.Popen(["sleep", "600"], pass_fds=(held.fd,))
        held.write_process_id(process.pid)
    try:
        with pytest.raises(InvalidInput, match=f"is still running as process {process.pid}") as refused:
            superlink.write_connection(site)
        assert refused.value.fix == f"End the SuperLink first: kill {process.pid}"
    finally:
        process.kill()
        process.wait()
    superlink.write_connection(site)


def test_status_names_who_is_online_and_who_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The node of a client that was registered before node numbers were stored is unknown."""
    site = copy_site(tmp_path, SECURE)
    cards = site.deployment.read_cards(site.app)
    for card, number in zip(cards, [17, 18, None], strict=True):
        monkeypatch.setattr(node_registry, "register_keys", lambda *_, card=card, number=number: [(card.name, number)])
        superlink.register_nodes(site, [card], lambda text: None)
    states = {"17": "online", "18": "offline", "19": "registered"}
    nodes = [{"node-id": number, "status": status} for number, status in states.items()]
    monkeypatch.setattr(superlink, "list_nodes", lambda site: nodes)
    assert cli.run(["deploy", "status", str(site.folder)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "The server at 127.0.0.1:1 is up; 1 of 3 clients are online.",
        "  online: client-0",
        "  away: client-1",
        "  unknown: client-2",
    ]
    assert cli.run(["deploy", "status", str(site.folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["nodes"]
    assert [each["client"] for each in told] == ["client-0", "client-1", None]


def test_the_last_words_of_flowers_are_said_without_the_box_around_them() -> None:
    said = "╭─ Error ─────╮\n│ No such key │\n╰─────────────╯\n"
    assert flower_commands.last_line(said) == "No such key"
    assert flower_commands.last_line("╭──╮\n╰──╯\n") == "it said nothing."


def test_a_node_waits_for_a_server_that_is_not_up_yet_and_ends_when_its_key_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supernode, "RETRY_SECONDS", 0.0)
    said: list[str] = []
    place, request = (
        SuperLinkAddress("server:1", Path("ca.crt"), Path("node.key"), wait=0.0),
        httpx.Request("POST", "https://server"),
    )
    answers = [502, 0, 503, 401]

    class Unready:
        def ActivateNode(self, asked: fleet.ActivateNodeRequest) -> fleet.ActivateNodeResponse:
            status = answers.pop(0)
            if status == 0:
                raise httpx.ConnectError("nobody is there")
            httpx.Response(status, request=request).raise_for_status()
            return fleet.ActivateNodeResponse(node_id=1)

    with pytest.raises(InvalidInput, match=r"refuses this node: its key node\.key is not registered there"):
        supernode._activate_node(Unready(), b"", place, said.append)  # type: ignore[arg-type]
    assert not answers
    assert said == ["Waiting for server:1: it is not ready yet."]


def test_a_heartbeat_that_did_not_come_through_is_sent_again_sooner() -> None:
    """Each call has a timeout of five seconds, and a node without a heartbeat for twenty counts as gone."""
    answers, waits = [200, 0, 503, 200], list[float]()
    request = httpx.Request("POST", "https://server")

    class Slow:
        def SendNodeHeartbeat(self, asked: object) -> None:
            status = answers.pop(0)
            if status == 0:
                raise httpx.ReadTimeout("no answer yet")
            httpx.Response(status, request=request).raise_for_status()

    class EndEvent(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            assert timeout is not None
            waits.append(timeout)
            if not answers:
                self.set()
            return self.is_set()

    supernode._send_heartbeats(Slow(), Node(node_id=1), 10.0, EndEvent())  # type: ignore[arg-type]
    assert waits == [7.0, 2.0, 2.0, 7.0]


def test_submitting_to_a_server_that_is_not_up_is_said_at_once(tmp_path: Path) -> None:
    site = copy_site(tmp_path, SECURE)
    with pytest.raises(InvalidInput, match="is not running on this machine"):
        flower_commands.run_command(site, "first", [])
    superlink.write_connection(site)  # as if it had been running before
    with pytest.raises(InvalidInput, match="is not running on this machine"):
        flower_commands.run_command(site, "first", [])


def test_a_command_that_gets_no_answer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = tmp_path / "flwr"
    silent.write_text("#!/bin/sh\nexec sleep 600\n")
    silent.chmod(0o700)
    monkeypatch.setattr(flower_commands, "ANSWER_SECONDS", 0.1)
    monkeypatch.setattr(flower_commands, "flower_program", lambda name: str(silent))
    site = create_site(tmp_path / "site")
    with pytest.raises(InvalidInput, match=r"did not answer within 0\.1 seconds"):
        flower_commands.call_flower(site)
    assert superlink.list_nodes(site) is None


@pytest.mark.parametrize("wait", ["-5", "nan", "soon"])
def test_a_node_waits_for_no_less_than_nothing(tmp_path: Path, wait: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["deploy", "client", str(tmp_path), "--wait", wait]) == InvalidInput.exit_code
    assert "Invalid value for '--wait': must be" in capsys.readouterr().err


def test_help_says_that_a_server_that_is_away_is_always_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["deploy", "client", "--help"]) == 0
    words = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "A server that is away is always awaited" in words
