"""Networks in one process on which clients lie, or the server."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from discreet.deploy.client_node import ClientNode
from discreet.engines.flower import signed_messages
from discreet.secure_sums.secagg.message_codec import parse
from discreet.secure_sums.secagg.session_client import Client
from discreet.secure_sums.secagg.session_errors import SecaggError
from discreet.secure_sums.secagg.session_messages import ServerMessage
from discreet.secure_sums.secagg.session_terms import Terms
from tests.deploy.example_sites import Replies, Wire, add_shared
from tests.lies.moment import ClientTurn, Lie, ServerLie, ServerTurn
from tests.lies.node_disk import TAMPERINGS

FIRST_NODE = 100  # the node of client 0


@dataclass
class LyingClientsWire(Wire):
    """A network on which some clients lie. Their replies come first, so that a lie is heard before the truth.

    Attributes:
        lies: By client and by what it would answer: its lie.
        told: The lies that were told, by client, with the honest message that each replaced.
    """

    lies: Mapping[int, Mapping[str, Lie]] = field(default_factory=dict)
    told: list[int] = field(default_factory=list)
    _earlier: dict[tuple[int, str], list[bytes]] = field(default_factory=dict)

    def exchange(
        self, requests: Mapping[int, bytes], enough: int, limit: float = math.inf, shared: bytes = b""
    ) -> Replies:
        requests = add_shared(requests, shared)
        honest = dict(super().exchange(requests, enough))
        liars = [node for node in honest if node - FIRST_NODE in self.lies]
        sent = {node: self._lie(node, requests[node], honest.pop(node)) for node in liars}
        return iter([(node, reply) for node, reply in {**sent, **honest}.items() if reply is not None])

    def _lie(self, node: int, request: bytes, honest: bytes) -> bytes | None:
        client = node - FIRST_NODE
        answered = ClientTurn.read(self.nodes_at[node], request, honest)
        earlier = self._earlier.setdefault((client, answered.what), [])
        lie = self.lies[client].get(answered.what)
        reply = honest if lie is None else lie(answered._replace(earlier=list(earlier)))
        earlier.append(honest)
        # how often a greeting is repeated depends on the clock, so a lie about it counts once
        if reply != honest and not (earlier[:-1] and answered.what == "hello"):
            self.told.append(client)
        return reply


@dataclass
class LyingServerWire(Wire):
    """A network on which the server lies to some clients, and signs what it says.

    Attributes:
        key: The server's signing key.
        lies: By client and by what the honest server would ask: the lie.
        answers: What the lies got: the client, the lie, and its reply.
        updates: All requests that were delivered: the node, the request, and its reply.
    """

    key: bytes = b""
    lies: Mapping[int, Mapping[str, ServerLie]] = field(default_factory=dict)
    answers: list[tuple[int, bytes, bytes]] = field(default_factory=list)
    updates: list[tuple[int, bytes, bytes]] = field(default_factory=list)
    _earlier: dict[tuple[int, str], list[bytes]] = field(default_factory=dict)

    def exchange(
        self, requests: Mapping[int, bytes], enough: int, limit: float = math.inf, shared: bytes = b""
    ) -> Replies:
        requests = add_shared(requests, shared)
        sent = {node: self._lie(node, request, requests) for node, request in requests.items()}
        self.passed.append({node: self._answer(node, requests[node], *asked) for node, asked in sent.items()})
        return iter([(node, reply) for node, (_, reply) in self.passed[-1].items()])

    def _lie(self, node: int, request: bytes, requests: Mapping[int, bytes]) -> tuple[list[bytes], bool]:
        """Return what is sent instead of a request, and whether something was done at the node itself."""
        client = node - FIRST_NODE
        if client not in self.lies:
            return [request], False
        others = {other - FIRST_NODE: each for other, each in requests.items() if other != node}
        asked = read_request(self.nodes_at[node], request, self.key, others)
        earlier = self._earlier.setdefault((client, asked.what), [])
        lie = self.lies[client].get(asked.what)
        sent = [request] if lie is None else lie(asked._replace(earlier=list(earlier)))
        earlier.append(request)
        return sent, lie in TAMPERINGS

    def _answer(self, node: int, honest: bytes, sent: list[bytes], is_tampered: bool) -> tuple[bytes, bytes]:
        """Deliver the requests in their order. The server goes on with the reply to the last one."""
        last = (b"", b"")
        for place, request in enumerate(sent):
            last = request, self.nodes_at[node].answer(request)
            self.updates.append((node, request, last[1]))
            if request != honest or is_tampered or request in sent[:place]:
                self.answers.append((node - FIRST_NODE, *last))
        return last


def read_request(node: ClientNode, request: bytes, key: bytes, others: dict[int, bytes]) -> ServerTurn:
    about, body = signed_messages.read_request(request, bytes.fromhex(node.policy.server_key))
    if about.kind == "session":
        return ServerTurn("session", about, body, request, node, key, Terms.from_bytes(body), None, [], others)
    session = node.journal.load_session(about.run)
    if about.kind in ("hello", "train") or session is None:
        return ServerTurn(about.kind, about, body, request, node, key, None, None, [], others)
    terms = Client.from_bytes(session.state, identity=node.identity).terms
    message = _session_message(about.kind, body, terms)
    what = about.kind if message is None else type(message).__name__
    return ServerTurn(what, about, body, request, node, key, terms, message, [], others)


def _session_message(kind: str, body: bytes, terms: Terms) -> ServerMessage | None:
    data = signed_messages.decode_mask_request(body)[1] if kind == "mask" else body
    try:
        return parse(data, terms) if data else None  # type: ignore[return-value]
    except SecaggError:
        return None
