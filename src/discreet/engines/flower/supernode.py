"""A client's own SuperNode: it takes messages from the SuperLink, answers them, and sends the answers back.

It uses flwr 1.41's Fleet API, with TLS, node keys and heartbeats. Unlike `flower-supernode` it never fetches the app
bundle that a server ships, so it can't run it; and it polls more often than every three seconds, which is most of a
stock round. This file, `announced_messages.py`, `mailbox.py`, `replies.py`, `grid_carrier.py`, `object_push.py`,
`patient_client.py`, `node_registry.py`, `task_executor.py` and `front_proxy.py` depend on flwr's internals.
"""

import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

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
from discreet.engines.flower.held_polls import HOLD_HEADER, MAX_HOLD_SECONDS, POLL_PATH
from discreet.engines.flower.mailbox import Mailbox
from discreet.engines.flower.patient_client import PatientClient
from discreet.errors import InvalidInput
from discreet.logs import get_log

log = get_log(__name__)

SHORTEST_PAUSE = 0.1
LONGEST_PAUSE = 2.0  # seconds between two polls; the longer nothing comes, the longer the pause
HEARTBEAT_SECONDS = 10.0  # at least; the SuperLink takes a node for gone after twice as long
HEARTBEATS_PER_SECOND = 4  # of all nodes together, at most: each costs the SuperLink some 10 ms of a processor
RETRY_SECONDS = 2.0  # before a SuperLink that is away is asked again
NOT_REGISTERED = 412  # or it died, and counts as alive until its heartbeats are missed
REFUSAL_REASONS = {
    401: "it does not know this node's key",
    403: "it forbids this node",
    404: "it is not a server of discreet's",
}
SERVER_ERROR = 500  # and above: errors of the server, which may pass


@dataclass(frozen=True)
class SuperLinkAddress:
    """How a node reaches its SuperLink.

    Attributes:
        address: Host and port.
        certificate: Certificate of the authority that signed the server's.
        key: The node's private key.
        wait: Seconds until a node of few gives up that the SuperLink does not know.
        nodes: Nodes of the deployment. The more there are, the rarer are the heartbeats of each.
    """

    address: str
    certificate: Path
    key: Path
    wait: float = 60.0
    nodes: int = 1

    @property
    def heartbeat(self) -> float:
        """Seconds between two heartbeats, as the node tells the SuperLink."""
        return max(HEARTBEAT_SECONDS, self.nodes / HEARTBEATS_PER_SECOND)

    @property
    def patience(self) -> float:
        """Seconds until the node gives up: rare heartbeats keep its last process alive for the SuperLink."""
        return self.wait + 3 * (self.heartbeat - HEARTBEAT_SECONDS)


def run_node(place: SuperLinkAddress, answer: Responder, say: Callable[[str], None]) -> None:
    """Answer messages until the process is told to end. Wait for a SuperLink that is away.

    Raises:
        InvalidInput: The server refuses this node or has another certificate.
    """
    hold = HoldRequest()
    with _connect(place, hold) as (client, public):
        node = Node(node_id=_activate_node(client, public, place, say))
        log.info("node connected", address=place.address, node=node.node_id)
        say(f"Connected to {place.address} as node {node.node_id}.")
        stop = threading.Event()
        threading.Thread(target=_send_heartbeats, args=(client, node, place.heartbeat, stop), daemon=True).start()
        try:
            patient = cast("FleetHttpClient", PatientClient(client))
            last_message, link, box = time.monotonic(), ServerLink(place, say), Mailbox(patient, node, answer, say)
            while True:
                asked = time.monotonic()
                response = link.messages(client, node)
                if response is None:
                    time.sleep(RETRY_SECONDS)
                    continue
                box.announce(response)
                if box.answer_pending() or response.messages_list:
                    last_message = time.monotonic()
                hold.is_wanted = not response.messages_list and not box.has_pending()
                if not response.messages_list:
                    now = time.monotonic()
                    pause = min(LONGEST_PAUSE, max(SHORTEST_PAUSE, (now - last_message) / 10))
                    time.sleep(max(0.0, pause - (now - asked)))  # the server may have held the poll for longer
        finally:
            stop.set()
            with suppress(httpx.HTTPError):
                client.DeactivateNode(fleet.DeactivateNodeRequest(node_id=node.node_id))


@dataclass
class HoldRequest:
    """Adds to polls, while that is wanted, that the server may hold them until it has a message.

    Attributes:
        is_wanted: Whether nothing here waits for the end of the poll: no message whose bytes have not arrived, and
            none that may follow the last one, since a poll brings only one.
    """

    is_wanted: bool = False

    def intercept(self, context: Any, call_next: Callable[[Any], httpx.Response]) -> httpx.Response:
        """Add the header, as flwr's client asks for it."""
        if self.is_wanted and context.request.url.path == POLL_PATH:
            context.request.headers[HOLD_HEADER] = f"{MAX_HOLD_SECONDS:g}"
        return call_next(context)


@dataclass
class ServerLink:
    """Polls for messages, and prints once that the server is away, and once that it is back."""

    place: SuperLinkAddress
    say: Callable[[str], None]
    away: bool = False

    def messages(self, client: FleetHttpClient, node: Node) -> Any:
        """Poll for messages, None while the server is away. Raise InvalidInput if it refuses this node."""
        try:
            response = client.PullMessages(fleet.PullMessagesRequest(node=node))
        except httpx.HTTPError as error:
            _end_if_refused(error, self.place)
            if not self.away:
                log.warning("server is away", address=self.place.address)
                outdated = _outdated_certificate_error(error, self.place)
                self.say(str(outdated) if outdated else f"{self.place.address} is away; waiting for it.")
            self.away = True
            return None
        if self.away:
            log.info("server is back", address=self.place.address)
            self.say(f"{self.place.address} is back.")
        self.away = False
        return response


def _end_if_refused(error: httpx.HTTPError, place: SuperLinkAddress) -> None:
    status = error.response.status_code if isinstance(error, httpx.HTTPStatusError) else 0
    if status in REFUSAL_REASONS:
        raise InvalidInput(
            f"The server at {place.address} refuses this node: its key {place.key} is not registered there or was "
            f"revoked, or the clocks of the two differ. It answered {status}: {REFUSAL_REASONS[status]}.",
            fix="Ask the server's operator whether it was revoked; if not, check this machine's clock; if that is "
            "right, hand the node's card to the operator, who registers it and starts the server again.",
        )


def _outdated_certificate_error(error: httpx.HTTPError, place: SuperLinkAddress) -> InvalidInput | None:
    """Return what to tell the owner if the server's certificate is not valid on this day, None for another error."""
    words, day = str(error).lower(), datetime.now(UTC).date()
    if "certificate has expired" in words:
        return InvalidInput(
            f"The certificate of the server at {place.address} has expired, by this machine's clock, which says {day}.",
            fix="If the clock is right, tell the server's operator, who renews it with: discreet deploy renew",
        )
    if "certificate is not yet valid" in words:
        return InvalidInput(
            f"The certificate of the server at {place.address} is not valid yet, by this machine's clock, which says "
            f"{day}.",
            fix="Set the clock.",
        )
    return None


@contextmanager
def _connect(place: SuperLinkAddress, hold: HoldRequest) -> Iterator[tuple[FleetHttpClient, bytes]]:
    private = _read_private_key(place.key)
    public = private.public_key()
    proofs = [RuntimeVersionHttpInterceptor(component_name="SuperNode"), NodeAuthHttpInterceptor(private, public), hold]
    try:
        connection = FleetHttpClient.from_server_address(
            place.address, False, str(place.certificate), interceptors=proofs
        )
    except (ssl.SSLError, OSError):
        raise InvalidInput(
            f"{place.certificate} is not a readable certificate.",
            fix="Get the app folder from the server's operator again.",
        ) from None
    with connection as client:
        yield client, public_key_to_bytes(public)


def _read_private_key(path: Path) -> EllipticCurvePrivateKey:
    try:
        key = load_ssh_private_key(path.read_bytes(), password=None)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, EllipticCurvePrivateKey):
        raise InvalidInput(f"{path} is not an elliptic-curve key.", fix="Create one with: discreet deploy enroll")
    return key


def _activate_node(client: FleetHttpClient, public: bytes, place: SuperLinkAddress, say: Callable[[str], None]) -> int:
    """Activate the node at the SuperLink. Returns its number.

    A SuperLink answers alike for an unknown node and for one that died and still counts as alive, so wait a while.

    Raises:
        InvalidInput: The SuperLink does not know the node, or has another certificate.
    """
    until, is_announced = time.monotonic() + place.patience, False
    while True:
        try:
            request = fleet.ActivateNodeRequest(public_key=public, heartbeat_interval=place.heartbeat)
            return int(client.ActivateNode(request).node_id)
        except httpx.HTTPStatusError as error:
            _end_if_refused(error, place)
            status = error.response.status_code
            if status < SERVER_ERROR and (status != NOT_REGISTERED or time.monotonic() >= until):
                raise InvalidInput(
                    f"The server at {place.address} refuses this node: its key {place.key} is not registered there, or "
                    "another process uses it.",
                    fix="Hand the node's card to the server's operator, who registers it.",
                ) from None
            reason = "it does not accept this node yet" if status < SERVER_ERROR else "it is not ready yet"
        except httpx.TransportError as error:
            if outdated := _outdated_certificate_error(error, place):
                raise outdated from None
            if "certificate" in str(error).lower():
                raise InvalidInput(
                    f"The certificate of the server at {place.address} is not signed by {place.certificate}.",
                    fix="Get the right ca.crt from the server's operator, and not over this network.",
                ) from None
            reason, until = "it does not answer", time.monotonic() + place.patience
        if not is_announced:
            say(f"Waiting for {place.address}: {reason}.")
            is_announced = True
        time.sleep(RETRY_SECONDS)


def _send_heartbeats(client: FleetHttpClient, node: Node, seconds: float, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            client.SendNodeHeartbeat(SendNodeHeartbeatRequest(node=node, heartbeat_interval=seconds))
            stop.wait(seconds * 0.7)
        except httpx.HTTPError:  # the next one may arrive before the node is taken for gone
            stop.wait(RETRY_SECONDS)
