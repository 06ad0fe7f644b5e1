"""A client as a SuperNode of its own: takes messages from the SuperLink, answers them here, and sends the answers back.

It speaks flwr 1.41's own Fleet API, with TLS, node keys and heartbeats. Unlike `flower-supernode` it never fetches the
app bundle that a server ships, so there is nothing of it to run; and it asks for messages more often than every three
seconds, which is most of a stock round. This file, `announced.py`, `mailbox.py`, `replies.py`, `executor.py` and
`front.py` know flwr's internals.
"""

import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_ssh_private_key
from flwr.proto import fleet_pb2 as fleet
from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatRequest
from flwr.proto.node_pb2 import Node
from flwr.supercore.interceptors.http.runtime_version import RuntimeVersionHttpInterceptor
from flwr.supercore.primitives.asymmetric import public_key_to_bytes
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

from discreet.engines.flower.carrier import Responder
from discreet.engines.flower.mailbox import Mailbox
from discreet.errors import InvalidInput

SHORTEST_PAUSE = 0.1
LONGEST_PAUSE = 2.0  # seconds between two questions for messages; the longer nothing came, the more
HEARTBEAT_SECONDS = 10.0  # the SuperLink takes a node for gone that was silent for twice as long
RETRY_SECONDS = 2.0  # seconds before a SuperLink that is away is asked again
NOT_REGISTERED = 412  # it is not registered; or it died, and is taken for alive until its heartbeats are missed
REFUSAL_REASONS = {
    401: "it does not know this node's key",
    403: "it forbids this node",
    404: "it is no server of discreet's",
}
SERVER_ERROR = 500  # and above: the server's own troubles, which pass


@dataclass(frozen=True)
class SuperLinkAddress:
    """Where the SuperLink is, whose certificate vouches for it, and the key that it knows this node by."""

    address: str
    certificate: Path
    key: Path
    wait: float = 60.0  # seconds until a node that is not taken in gives up


def run_node(place: SuperLinkAddress, answer: Responder, say: Callable[[str], None]) -> None:
    """Answer messages until the process is told to end; a SuperLink that is away is waited for."""
    with _connect(place) as (client, public):
        node = Node(node_id=_activate_node(client, public, place, say))
        say(f"In touch with {place.address} as node {node.node_id}.")
        stop = threading.Event()
        threading.Thread(target=_send_heartbeats, args=(client, node, stop), daemon=True).start()
        try:
            heard, link, box = time.monotonic(), ServerLink(place, say), Mailbox(client, node, answer, say)
            while True:
                came = link.messages(client, node)
                if came is None:
                    time.sleep(RETRY_SECONDS)
                    continue
                box.announce(came)
                if box.answer_pending() or came.messages_list:
                    heard = time.monotonic()
                if not came.messages_list:
                    time.sleep(min(LONGEST_PAUSE, max(SHORTEST_PAUSE, (time.monotonic() - heard) / 10)))
        finally:
            stop.set()
            with suppress(httpx.HTTPError):
                client.DeactivateNode(fleet.DeactivateNodeRequest(node_id=node.node_id))


@dataclass
class ServerLink:
    """Asks for messages, and says once that nobody answers, and once that somebody does again."""

    place: SuperLinkAddress
    say: Callable[[str], None]
    away: bool = False

    def messages(self, client: FleetHttpClient, node: Node) -> Any:
        """What came; None while the server is away. One that refuses this node ends it, in words."""
        try:
            came = client.PullMessages(fleet.PullMessagesRequest(node=node))
        except httpx.HTTPError as error:
            _end_if_refused(error, self.place)
            if not self.away:
                self.say(f"{self.place.address} is away; waiting for it.")
            self.away = True
            return None
        if self.away:
            self.say(f"{self.place.address} is back.")
        self.away = False
        return came


def _end_if_refused(error: httpx.HTTPError, place: SuperLinkAddress) -> None:
    status = error.response.status_code if isinstance(error, httpx.HTTPStatusError) else 0
    if status in REFUSAL_REASONS:
        raise InvalidInput(
            f"The server at {place.address} does not take this node in: its key {place.key} is not registered there, "
            f"or the clocks of the two differ. It answered {status}: {REFUSAL_REASONS[status]}.",
            fix="Hand the node's card to whoever runs the server, who registers it and starts the server again.",
        )


@contextmanager
def _connect(place: SuperLinkAddress) -> Iterator[tuple[FleetHttpClient, bytes]]:
    private = _read_private_key(place.key)
    public = private.public_key()
    proofs = [RuntimeVersionHttpInterceptor(component_name="SuperNode"), NodeAuthHttpInterceptor(private, public)]
    try:
        made = FleetHttpClient.from_server_address(place.address, False, str(place.certificate), interceptors=proofs)
    except (ssl.SSLError, OSError):
        raise InvalidInput(
            f"{place.certificate} is no certificate that can be read.",
            fix="Get the app folder from whoever runs the server once more.",
        ) from None
    with made as client:
        yield client, public_key_to_bytes(public)


def _read_private_key(path: Path) -> EllipticCurvePrivateKey:
    try:
        found = load_ssh_private_key(path.read_bytes(), password=None)
    except (ValueError, UnsupportedAlgorithm):
        found = None
    if not isinstance(found, EllipticCurvePrivateKey):
        raise InvalidInput(f"{path} is no elliptic-curve key.", fix="Make one with: discreet deploy enroll")
    return found


def _activate_node(client: FleetHttpClient, public: bytes, place: SuperLinkAddress, say: Callable[[str], None]) -> int:
    """The node's number; one that is not known there is refused in words.

    The SuperLink does not say whether it never heard of a node or takes one that died for alive; so we wait a while.
    """
    until, told = time.monotonic() + place.wait, False
    while True:
        try:
            asked = fleet.ActivateNodeRequest(public_key=public, heartbeat_interval=HEARTBEAT_SECONDS)
            return int(client.ActivateNode(asked).node_id)
        except httpx.HTTPStatusError as error:
            _end_if_refused(error, place)
            status = error.response.status_code
            if status < SERVER_ERROR and (status != NOT_REGISTERED or time.monotonic() >= until):
                raise InvalidInput(
                    f"The server at {place.address} does not take this node in: its key {place.key} is not registered "
                    "there, or another process uses it.",
                    fix="Hand the node's card to whoever runs the server, to be registered.",
                ) from None
            reason = "it does not take this node in yet" if status < SERVER_ERROR else "it is not up yet"
        except httpx.TransportError as error:
            if "certificate" in str(error).lower():
                raise InvalidInput(
                    f"The server at {place.address} has no certificate that {place.certificate} vouches for.",
                    fix="Get the right ca.crt from whoever runs the server, and not over this network.",
                ) from None
            reason, until = "it does not answer", time.monotonic() + place.wait
        if not told:
            say(f"Waiting for {place.address}: {reason}.")
            told = True
        time.sleep(RETRY_SECONDS)


def _send_heartbeats(client: FleetHttpClient, node: Node, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            client.SendNodeHeartbeat(SendNodeHeartbeatRequest(node=node, heartbeat_interval=HEARTBEAT_SECONDS))
            stop.wait(HEARTBEAT_SECONDS * 0.7)
        except httpx.HTTPError:  # on a slow machine the next one may come through before the node is taken for gone
            stop.wait(RETRY_SECONDS)
