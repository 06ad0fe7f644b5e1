"""A node's poll for messages is held at the server until a message was sent, and no longer than the node will wait."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr")

import httpx
from flwr.proto import fleet_pb2 as fleet
from flwr.supercore.primitives.asymmetric import public_key_to_bytes

from discreet.deploy.certificates import write_certificates
from discreet.engines.flower import held_polls
from discreet.engines.flower.front_proxy import FrontProxy, TlsFiles, bind_port, run_proxy
from discreet.engines.flower.held_polls import HOLD_HEADER, POLL_PATH, HeldPolls, Outcome, SentMark, SentState
from discreet.engines.flower.supernode import HoldRequest
from tests.deploy.test_front_proxy import KEY, signed

LONG, SHORT = b"10", b"0.05"


async def never() -> None:
    await asyncio.Event().wait()


@pytest.fixture
def polls(tmp_path: Path) -> HeldPolls:
    return HeldPolls(SentMark(tmp_path / "sent"))


def run_with(scene: Callable[[], Awaitable[Any]]) -> Any:
    async def play() -> Any:
        return await asyncio.wait_for(scene(), 9.0)  # less than any poll is held for that waits for nothing

    return asyncio.run(play())


def test_the_first_poll_of_a_node_is_not_held(polls: HeldPolls) -> None:
    assert run_with(lambda: polls.wait(b"north", LONG, never)) is Outcome.FORWARD


def test_a_poll_is_held_until_a_message_is_sent(polls: HeldPolls) -> None:
    async def scene() -> list[Outcome]:
        await polls.wait(b"north", LONG, never)
        held = [asyncio.ensure_future(polls.wait(b"north", LONG, never)) for _ in range(2)]
        await asyncio.sleep(3 * held_polls.CHECK_SECONDS)
        assert not any(each.done() for each in held)
        polls.mark.advance()
        return await asyncio.gather(*held)

    assert run_with(scene) == [Outcome.FORWARD] * 2


def test_a_poll_after_a_message_that_its_node_has_not_asked_for_is_not_held(polls: HeldPolls) -> None:
    async def scene() -> list[Outcome]:
        for node in (b"north", b"south"):
            await polls.wait(node, LONG, never)
        polls.mark.advance()
        return [await polls.wait(node, LONG, never) for node in (b"south", b"north")]

    assert run_with(scene) == [Outcome.FORWARD] * 2


def test_a_poll_is_held_no_longer_than_its_node_will_wait(polls: HeldPolls) -> None:
    async def scene() -> Outcome:
        await polls.wait(b"north", SHORT, never)
        return await polls.wait(b"north", SHORT, never)

    assert run_with(scene) is Outcome.FORWARD


@pytest.mark.parametrize("header", [b"", b"0", b"-5", b"nan", b"1e9", b".", b"soon", b"9" * 400])
def test_a_poll_that_asks_for_no_wait_is_not_held(polls: HeldPolls, header: bytes) -> None:
    async def scene() -> Outcome:
        await polls.wait(b"north", header, never)
        return await polls.wait(b"north", header, never)

    assert run_with(scene) is Outcome.FORWARD


@pytest.mark.parametrize("header", [b"", LONG])
def test_no_node_learns_of_a_message_before_all_of_it_is_stored(polls: HeldPolls, header: bytes) -> None:
    """It could delete the message's objects, or register them anew, and the server's next object would be refused."""

    async def scene() -> Outcome:
        with polls.mark.mark_sending():
            held = asyncio.ensure_future(polls.wait(b"north", header, never))
            await asyncio.sleep(3 * held_polls.CHECK_SECONDS)
            assert not held.done()
        return await held

    assert run_with(scene) is Outcome.FORWARD


@pytest.mark.parametrize("header", [b"", SHORT, LONG])
def test_a_node_gets_no_message_if_sending_takes_longer_than_a_poll_is_held(
    polls: HeldPolls, header: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the run was killed while it sent: the next message that a run sends ends this."""
    monkeypatch.setattr(held_polls, "MAX_HOLD_SECONDS", 0.05)

    async def scene() -> list[Outcome]:
        with polls.mark.mark_sending():
            first = await polls.wait(b"north", header, never)
        return [first, await polls.wait(b"north", header, never)]

    assert run_with(scene) == [Outcome.EMPTY, Outcome.FORWARD]


def test_nobody_is_held_for_longer_than_the_server_allows() -> None:
    assert held_polls._read_seconds(b"999999") == held_polls.MAX_HOLD_SECONDS


class AskingNode:
    """A node that asks a proxy, in whose SuperLink is a message for it."""

    def __init__(self, folder: Path) -> None:
        self.mark, self.keys = SentMark(folder / "sent"), {public_key_to_bytes(KEY.public_key())}
        self.asked: list[httpx.Request] = []
        self.before_answer: Callable[[], object] = lambda: None
        backend = httpx.AsyncClient(transport=httpx.MockTransport(self._answer), base_url="https://127.0.0.1:1")
        self.proxy = FrontProxy(backend, self.keys, polls=HeldPolls(self.mark))
        self.got: list[dict[str, Any]] = []

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        self.before_answer()
        found = fleet.PullMessagesResponse()
        found.messages_list.add()
        return httpx.Response(200, content=found.SerializeToString() if len(self.asked) == 1 else b"")

    async def poll(self, hold: str = "10", receive: Callable[[], Awaitable[dict[str, Any]]] | None = None) -> None:
        headers = [(name.encode(), value.encode()) for name, value in {**signed(), HOLD_HEADER: hold}.items()]
        scope = {"type": "http", "method": "POST", "path": POLL_PATH, "headers": headers}
        await self.proxy(scope, receive or WaitingNode().receive, self._note)

    async def _note(self, event: Any) -> None:
        self.got.append(event)

    @property
    def answers(self) -> list[tuple[int, int]]:
        """The status of each answer, and how many messages it brought."""
        return [
            (start["status"], len(fleet.PullMessagesResponse.FromString(body["body"]).messages_list))
            for start, body in zip(self.got[::2], self.got[1::2], strict=True)
        ]


def test_the_poll_of_a_node_that_has_left_is_not_forwarded(tmp_path: Path) -> None:
    """The SuperLink hands out each message once: one that is pulled for a killed node never reaches its next start."""
    node = AskingNode(tmp_path)

    async def scene() -> None:
        for _ in range(2):
            await node.poll(receive=LeavingNode().receive)

    run_with(scene)
    assert len(node.asked) == 1  # the first poll, which was not held


def test_a_message_that_came_while_messages_were_being_sent_reaches_its_node_afterwards(tmp_path: Path) -> None:
    """The poll was on its way to the SuperLink when the server began to send."""
    node = AskingNode(tmp_path)

    async def scene() -> None:
        with ExitStack() as sending:
            node.before_answer = lambda: len(node.asked) == 1 and sending.enter_context(node.mark.mark_sending())
            await node.poll()
        await node.poll()
        await node.poll(hold="0")

    run_with(scene)
    assert node.answers == [(200, 0), (200, 1), (200, 0)]
    assert len(node.asked) == 2


def test_a_node_whose_key_was_revoked_while_its_poll_was_held_is_refused(tmp_path: Path) -> None:
    node = AskingNode(tmp_path)

    async def scene() -> None:
        await node.poll()
        held = asyncio.ensure_future(node.poll())
        await asyncio.sleep(3 * held_polls.CHECK_SECONDS)
        node.keys.clear()
        node.mark.advance()
        await held

    run_with(scene)
    assert node.answers == [(200, 1), (401, 0)]
    assert len(node.asked) == 1


def test_a_server_that_ends_releases_the_polls_it_holds_without_an_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_certificates(tmp_path, ["127.0.0.1"])
    tls = TlsFiles(tmp_path / "ca.crt", tmp_path / "server.crt", tmp_path / "server.tls.key")
    keys, held, answers = [public_key_to_bytes(KEY.public_key())], threading.Event(), list[int]()
    hold = HeldPolls._next_change

    def note_hold(polls: HeldPolls, since: SentState) -> "asyncio.Task[None]":
        held.set()
        return hold(polls, since)

    monkeypatch.setattr(HeldPolls, "_next_change", note_hold)

    def poll_twice(port: int) -> None:
        with httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=False, trust_env=False, timeout=30) as node:
            for _ in range(2):
                answers.append(node.post(POLL_PATH, headers={**signed(), HOLD_HEADER: "10"}).status_code)

    with caplog.at_level(logging.ERROR), bind_port("127.0.0.1", 0) as door:
        with run_proxy(door, "127.0.0.1:1", tls, keys, mark=SentMark(tmp_path / "sent")):
            door.listen()
            node = threading.Thread(target=poll_twice, args=(door.getsockname()[1],))
            node.start()
            assert held.wait(20)
        node.join(20)
    assert answers == [502, 502]  # the SuperLink is away
    assert caplog.text == ""


class LeavingNode:
    """A node that asks and leaves."""

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = [{"type": "http.request", "body": b""}, {"type": "http.disconnect"}]

    async def receive(self) -> dict[str, Any]:
        return self._events.pop(0)


class WaitingNode:
    """A node that asks and waits for the answer."""

    def __init__(self) -> None:
        self._has_asked = False

    async def receive(self) -> dict[str, Any]:
        if self._has_asked:
            await never()
        self._has_asked = True
        return {"type": "http.request", "body": b""}


@pytest.mark.parametrize("wanted", [True, False])
def test_a_node_lets_the_server_hold_its_polls_and_nothing_else(wanted: bool) -> None:
    hold = HoldRequest(wanted)
    for path, expected in ((POLL_PATH, wanted), ("/v1/fleet/push-object", False)):
        request = httpx.Request("POST", f"https://server{path}")

        class Context:
            message = fleet.PullMessagesRequest()

        Context.request = request  # type: ignore[attr-defined]
        hold.intercept(Context, lambda context: httpx.Response(200))
        assert (HOLD_HEADER in request.headers) is expected
