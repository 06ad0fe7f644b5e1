"""A node's poll for messages is held at the server until a message was sent, and no longer than the node will wait."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
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
from discreet.engines.flower.held_polls import HOLD_HEADER, POLL_PATH, HeldPolls, SentMark
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
    assert run_with(lambda: polls.wait(b"north", LONG, never))


def test_a_poll_is_held_until_a_message_is_sent(polls: HeldPolls) -> None:
    async def scene() -> list[bool]:
        await polls.wait(b"north", LONG, never)
        held = [asyncio.ensure_future(polls.wait(b"north", LONG, never)) for _ in range(2)]
        await asyncio.sleep(3 * held_polls.CHECK_SECONDS)
        seen = [any(each.done() for each in held)]
        polls.mark.advance()
        return [*seen, *(await asyncio.gather(*held))]

    assert run_with(scene) == [False, True, True]


def test_a_poll_after_a_message_that_its_node_has_not_asked_for_is_not_held(polls: HeldPolls) -> None:
    async def scene() -> bool:
        await polls.wait(b"north", LONG, never)
        await polls.wait(b"south", LONG, never)
        polls.mark.advance()
        return await polls.wait(b"south", LONG, never) and await polls.wait(b"north", LONG, never)

    assert run_with(scene)


def test_a_poll_is_held_no_longer_than_its_node_will_wait(polls: HeldPolls) -> None:
    async def scene() -> bool:
        await polls.wait(b"north", SHORT, never)
        return await polls.wait(b"north", SHORT, never)

    assert run_with(scene)


@pytest.mark.parametrize("header", [b"", b"0", b"-5", b"nan", b"1e9", b".", b"soon", b"9" * 400])
def test_a_poll_that_asks_for_no_wait_is_not_held(polls: HeldPolls, header: bytes) -> None:
    async def scene() -> bool:
        await polls.wait(b"north", header, never)
        return await polls.wait(b"north", header, never)

    assert run_with(scene)


def test_nobody_is_held_for_longer_than_the_server_allows() -> None:
    assert held_polls._read_seconds(b"999999") == held_polls.MAX_HOLD_SECONDS


def test_the_poll_of_a_node_that_has_left_is_not_forwarded(tmp_path: Path) -> None:
    """The SuperLink hands out each message once: one that is pulled for a killed node never reaches its next start."""
    asked: list[httpx.Request] = []

    def record(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200)

    async def scene() -> None:
        backend = httpx.AsyncClient(transport=httpx.MockTransport(record), base_url="https://127.0.0.1:1")
        keys = frozenset({public_key_to_bytes(KEY.public_key())})
        front = FrontProxy(backend, keys, polls=HeldPolls(SentMark(tmp_path / "sent")))
        headers = [(name.encode(), value.encode()) for name, value in {**signed(), HOLD_HEADER: "10"}.items()]
        scope = {"type": "http", "method": "POST", "path": POLL_PATH, "headers": headers}
        for _ in range(2):
            await front(scope, LeavingNode().receive, ignore)
        await backend.aclose()

    run_with(scene)
    assert len(asked) == 1  # the first poll, which was not held


def test_a_server_that_ends_releases_the_polls_it_holds_without_an_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_certificates(tmp_path, ["127.0.0.1"])
    tls = TlsFiles(tmp_path / "ca.crt", tmp_path / "server.crt", tmp_path / "server.tls.key")
    keys, held, answers = [public_key_to_bytes(KEY.public_key())], threading.Event(), list[int]()
    hold = HeldPolls._next_change

    def note_hold(polls: HeldPolls) -> "asyncio.Task[None]":
        held.set()
        return hold(polls)

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


async def ignore(event: Any) -> None:
    pass


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
