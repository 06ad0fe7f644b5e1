"""The proxy on the server's one open port: it forwards signed calls of clients' nodes to the SuperLink, and no others.

flwr 1.41 serves three APIs on one port. Node keys protect only the Fleet API; anyone who reaches the Control API can
run code on the server. So the SuperLink listens on loopback, behind this proxy. It forwards the calls that a client's
node needs if a key on a card has signed them, and answers 404 or 401 to everything else.
"""

import asyncio
import socket
import ssl
import threading
from base64 import b64decode
from collections.abc import Awaitable, Callable, Collection, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

import httpx
import uvicorn
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.serialization import load_ssh_public_key
from flwr.common.constant import SYSTEM_TIME_TOLERANCE, TIMESTAMP_HEADER, TIMESTAMP_TOLERANCE
from flwr.proto.fleet_pb2 import PullMessagesResponse
from flwr.supercore.constant import FLEET_HTTP_PUBLIC_KEY_HEADER, FLEET_HTTP_SIGNATURE_HEADER
from flwr.supercore.date import now
from flwr.supercore.primitives.asymmetric import bytes_to_public_key, public_key_to_bytes, verify_signature
from flwr.supercore.protobuf.constants import PROTOBUF_MEDIA_TYPE

from discreet.engines.flower.announced_messages import announces_one_reply
from discreet.engines.flower.connection_gate import ConnectionGate, GatedServer
from discreet.engines.flower.held_polls import HOLD_HEADER, POLL_PATH, HeldPolls, Outcome, SentMark
from discreet.engines.flower.message_content import MAX_OBJECTS
from discreet.errors import InvalidInput
from discreet.logs import get_log

log = get_log(__name__)

FLEET_CALLS = (  # not (un)register: the server's operator does that
    *("activate-node", "deactivate-node", "send-node-heartbeat", "pull-messages", "push-messages"),
    *("pull-object", "push-object", "confirm-message-received", "get-run", "get-fab"),
)
ALLOWED_PATHS = frozenset(f"/v1/fleet/{call}" for call in FLEET_CALLS)
PUSH_PATH = "/v1/fleet/push-messages"
MAX_REQUEST_BYTES = 2**23  # where no smaller limit is known; a large message is sent in pieces of half as many
BACKEND_CONNECTIONS = 12  # to the SuperLink, whose database answers 15 calls at once; further calls wait here
HEARTBEAT_CONNECTIONS = 2  # beside them: a node whose heartbeat waits behind the calls of a round counts as gone
HEARTBEAT_PATH = "/v1/fleet/send-node-heartbeat"
SILENCE_SECONDS = 30.0  # at most, between two pieces of a request
# headers about one connection, which must not be forwarded to the other
CONNECTION_HEADERS = frozenset(
    b"host connection keep-alive content-length content-encoding accept-encoding transfer-encoding te trailer "
    b"upgrade expect".split()
)

Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]


@dataclass(frozen=True)
class FrontProxy:
    """The proxy as an ASGI app. It forwards only its own fixed paths and method.

    Attributes:
        backend: Client of the SuperLink.
        keys: Public keys of the clients' nodes, asked anew for each request.
        max_bytes: Most bytes of a request.
        max_objects: Most objects of a reply.
        polls: Holds polls for messages; None forwards each at once.
        turns: Calls that the SuperLink answers at once; others wait, in their order.
        heartbeat_turns: The same for heartbeats.
    """

    backend: httpx.AsyncClient
    keys: Collection[bytes]
    max_bytes: int = MAX_REQUEST_BYTES
    max_objects: int = MAX_OBJECTS
    polls: HeldPolls | None = None
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(BACKEND_CONNECTIONS))
    heartbeat_turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(HEARTBEAT_CONNECTIONS))

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        admitted = await self._admit(scope, receive)
        if isinstance(admitted, int):
            log.debug("call refused", status=admitted)
            reply: Reply | None = _empty_reply(admitted)
        elif scope["path"] == POLL_PATH and self.polls is not None:
            reply = await self._answer_poll(scope, admitted, receive, self.polls)
        else:
            reply = await self._forward(scope, admitted, receive)
        if reply is not None:
            with suppress(OSError):  # the client may have disconnected
                await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers})
                await send({"type": "http.response.body", "body": reply.body})

    async def _admit(self, scope: Event, receive: Receive) -> bytes | int:
        """Return the body of a request that may be forwarded, else the status of the refusal."""
        if scope["method"] != "POST" or scope["path"] not in ALLOWED_PATHS:
            return 404
        headers = dict(scope["headers"])
        if not self._is_signed(headers):
            return 401
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 15 or int(length) > self.max_bytes:
            return 413
        try:
            body = await self._read_body(receive)
        except (TimeoutError, ConnectionError):
            return 408
        if body is None:
            return 413
        if scope["path"] == PUSH_PATH and not announces_one_reply(body, self.max_objects):
            return 400
        return body

    def _is_signed(self, headers: dict[bytes, bytes]) -> bool:
        """Whether a client's key has signed the request recently. The SuperLink checks it again, against the node."""
        try:
            key = b64decode(headers[FLEET_HTTP_PUBLIC_KEY_HEADER.encode()], validate=True)
            signature = b64decode(headers[FLEET_HTTP_SIGNATURE_HEADER.encode()], validate=True)
            timestamp = headers[TIMESTAMP_HEADER.encode()]
            age = (now() - datetime.fromisoformat(timestamp.decode("ascii"))).total_seconds()
        except (KeyError, ValueError, TypeError):
            return False
        recent = -SYSTEM_TIME_TOLERANCE < age < TIMESTAMP_TOLERANCE + SYSTEM_TIME_TOLERANCE
        return recent and key in self.keys and verify_signature(bytes_to_public_key(key), timestamp, signature)

    async def _answer_poll(self, scope: Event, body: bytes, receive: Receive, polls: HeldPolls) -> "Reply | None":
        """Hold a poll while the server has nothing to say. Returns its answer, None if the node has left."""
        headers = dict(scope["headers"])
        node = b64decode(headers[FLEET_HTTP_PUBLIC_KEY_HEADER.encode()])
        if (kept := polls.take_kept(node)) is not None:
            return cast("Reply", kept)
        outcome = await polls.wait(node, headers.get(HOLD_HEADER.encode(), b""), receive)
        if outcome is Outcome.GONE:
            return None
        if node not in self.keys:  # revoked while the poll was held
            return _empty_reply(401)
        if outcome is Outcome.EMPTY:
            return NO_MESSAGES
        reply = await self._forward(scope, body, receive)
        if reply is None:
            polls.forget(node)
            return None
        brings = reply.status == 200 and bool(PullMessagesResponse.FromString(reply.body).messages_list)
        return NO_MESSAGES if brings and polls.keep_while_sending(node, reply) else reply

    async def _read_body(self, receive: Receive) -> bytes | None:
        """Read the whole body, None if it is too long."""
        body, more = bytearray(), True
        while more:
            event = await asyncio.wait_for(receive(), SILENCE_SECONDS)
            if event["type"] == "http.disconnect":
                raise ConnectionError
            body += event.get("body", b"")
            if len(body) > self.max_bytes:
                return None
            more = event.get("more_body", False)
        return bytes(body)

    async def _forward(self, scope: Event, body: bytes, receive: Receive) -> "Reply | None":
        """Forward a call when it is its turn. Returns None if the client has left before, which then costs no call.

        A call that the SuperLink has is not cut off: it may hold a message, which would be lost.
        """
        turns = self.heartbeat_turns if scope["path"] == HEARTBEAT_PATH else self.turns
        if not await _wait_for_turn(turns, receive):
            return None
        try:
            return await self._ask_superlink(scope, body)
        finally:
            turns.release()

    async def _ask_superlink(self, scope: Event, body: bytes) -> "Reply":
        headers = [(name, value) for name, value in scope["headers"] if name not in CONNECTION_HEADERS]
        try:
            answer = await self.backend.post(scope["path"], headers=headers, content=body)
        except httpx.HTTPError:
            return _empty_reply(502)
        reply_headers = [
            (name.lower(), value) for name, value in answer.headers.raw if name.lower() not in CONNECTION_HEADERS
        ]
        return Reply(
            answer.status_code, [*reply_headers, (b"content-length", b"%d" % len(answer.content))], answer.content
        )


async def _wait_for_turn(turns: asyncio.Semaphore, receive: Receive) -> bool:
    """Wait until the SuperLink takes another call. Returns whether the client is still there."""
    if not turns.locked():
        return await turns.acquire()
    turn, left = asyncio.ensure_future(turns.acquire()), asyncio.ensure_future(receive())
    await asyncio.wait({turn, left}, return_when=asyncio.FIRST_COMPLETED)
    has_left = left.done()
    left.cancel()
    if has_left and not turn.cancel():
        turns.release()
    return not has_left


class Reply(NamedTuple):
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


def _empty_reply(status: int) -> Reply:
    return Reply(status, [(b"content-length", b"0")], b"")


NO_MESSAGES = Reply(200, [(b"content-type", PROTOBUF_MEDIA_TYPE.encode()), (b"content-length", b"0")], b"")


def bind_port(host: str, port: int) -> socket.socket:
    """Bind the open port before anything is started. It takes connections once `run_proxy` runs."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
        door = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _listen_error(host, port, error) from None
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(place)
    except OSError as error:
        door.close()
        raise _listen_error(host, port, error) from None
    return door


def _listen_error(host: str, port: int, error: OSError) -> InvalidInput:
    return InvalidInput(
        f"The server can't listen at {host}:{port}: {(error.strerror or 'no such address').lower()}.",
        fix="Is the server already running? If this machine has no such address, use --listen 0.0.0.0.",
    )


@dataclass(frozen=True)
class TlsFiles:
    """Paths of the authority's certificate, the server's certificate and its key."""

    authority: Path
    own: Path
    key: Path


@contextmanager
def run_proxy(
    door: socket.socket,
    superlink: str,
    certificates: TlsFiles,
    keys: Collection[bytes],
    max_bytes: int = MAX_REQUEST_BYTES,
    max_objects: int = MAX_OBJECTS,
    mark: SentMark | None = None,
) -> Iterator[Callable[[], bool]]:
    """Run the proxy while the block lasts. It takes requests of at most `max_bytes` that one of `keys` has signed,
    and replies of at most `max_objects` objects.

    Nodes' polls are held until `mark` shows that the server has sent messages; without it, they are forwarded at once.

    Yields:
        A function that says whether the proxy is still running.
    """
    most = BACKEND_CONNECTIONS + HEARTBEAT_CONNECTIONS
    backend = httpx.AsyncClient(
        base_url=f"https://{superlink}",
        verify=ssl.create_default_context(cafile=str(certificates.authority)),
        timeout=httpx.Timeout(2 * SILENCE_SECONDS, pool=None),
        limits=httpx.Limits(max_connections=most, max_keepalive_connections=most),
        trust_env=False,
    )
    server = GatedServer(
        uvicorn.Config(
            FrontProxy(backend, keys, max_bytes, max_objects, None if mark is None else HeldPolls(mark)),
            ssl_certfile=str(certificates.own),
            ssl_keyfile=str(certificates.key),
            loop="asyncio",
            lifespan="off",
            ws="none",
            interface="asgi3",
            proxy_headers=False,
            server_header=False,
            access_log=False,
            log_config=None,
            timeout_graceful_shutdown=2,
        ),
        ConnectionGate.for_clients(len(keys)),
    )
    thread = threading.Thread(target=server.run, args=([door],), daemon=True)
    thread.start()
    try:
        yield thread.is_alive
    finally:
        server.should_exit = True
        if mark is not None:
            mark.advance()  # no poll is held any longer: uvicorn would cancel it, with a traceback in the log
        thread.join(timeout=10)


def public_key_bytes(node_key: str) -> bytes:
    """Convert a public key to the form in which nodes send it with each request."""
    key = load_ssh_public_key(node_key.encode())
    if not isinstance(key, EllipticCurvePublicKey):
        raise InvalidInput(f"A node's key must be an elliptic-curve key, and got {node_key[:40]!r}.")
    spoken: bytes = public_key_to_bytes(key)
    return spoken
