"""What a liar has before it when it lies: the exchange that it is in, and the honest message that it may change."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from discreet.deploy.client_node import ClientNode
from discreet.engines.flower import signed_messages
from discreet.engines.flower.signed_messages import RequestHeader
from discreet.secure_sums.secagg.message_codec import encode, parse
from discreet.secure_sums.secagg.message_signatures import SignedMessage, sign_message
from discreet.secure_sums.secagg.session_client import Client
from discreet.secure_sums.secagg.session_errors import SecaggError
from discreet.secure_sums.secagg.session_messages import ClientMessage, ServerMessage
from discreet.secure_sums.secagg.session_terms import Terms


class ClientTurn(NamedTuple):
    """A client that is about to answer a request.

    Attributes:
        what: The kind of request, or the name of the session's message with which an honest client answers.
        about: The header of the request.
        honest: The reply of an honest client.
        node: The client's node.
        client: The client's half of the open session; None if there is none.
        message: The message of the session in the reply; None in other replies.
        earlier: Replies to the same kind of request before this one.
    """

    what: str
    about: RequestHeader
    honest: bytes
    node: ClientNode
    client: Client | None
    message: ClientMessage | None
    earlier: list[bytes]

    @classmethod
    def read(cls, node: ClientNode, request: bytes, honest: bytes) -> "ClientTurn":
        about, _ = signed_messages.read_request(request, bytes.fromhex(node.policy.server_key))
        answer = signed_messages.read_reply(honest)
        session = node.journal.load_session(about.run)
        if about.kind in ("hello", "train") or session is None or not isinstance(answer, bytes):
            return cls(about.kind, about, honest, node, None, None, [])
        client = Client.from_bytes(session.state, identity=node.identity)
        try:
            message = parse(SignedMessage.read(answer, client.terms).content, client.terms)
        except SecaggError:
            return cls(about.kind, about, honest, node, client, None, [])
        return cls(type(message).__name__, about, honest, node, client, message, [])  # type: ignore[arg-type]

    def reply(self, message: ClientMessage) -> bytes:
        """Return this message as the client's reply, signed with its own key."""
        assert self.client is not None
        terms = self.client.terms
        return signed_messages.encode_answer(sign_message(encode(message, terms), terms, self.node.identity))


Lie: TypeAlias = Callable[[ClientTurn], bytes | None]  # a client's lie: what it sends instead; None for nothing


class ServerTurn(NamedTuple):
    """A server that is about to ask a node.

    Attributes:
        what: The kind of request, or the name of the session's message in it.
        about: The header of the honest request.
        body: Its body.
        honest: The honest request as it is sent.
        node: The node that is asked.
        key: The server's signing key.
        terms: The terms of the open session; None if there is none.
        message: The session's message in the request; None in other requests.
        earlier: Requests of the same kind to this node before this one.
        others: The honest requests to the other nodes in this exchange.
    """

    what: str
    about: RequestHeader
    body: bytes
    honest: bytes
    node: ClientNode
    key: bytes
    terms: Terms | None
    message: ServerMessage | None
    earlier: list[bytes]
    others: dict[int, bytes]

    def request(self, body: bytes | None = None, **about: object) -> bytes:
        """Return the request with another body or other fields of its header, signed by the server."""
        header = replace(self.about, **about)  # type: ignore[arg-type]
        return signed_messages.sign_request(header, self.body if body is None else body, self.key)

    def relay(self, message: ServerMessage) -> bytes:
        """Return a request with another message of the session in the place of the honest one."""
        assert self.terms is not None
        data = encode(message, self.terms)
        if self.about.kind != "mask":
            return self.request(data)
        number, _, spread = signed_messages.decode_mask_request(self.body)
        return self.request(signed_messages.encode_mask_request(number, data) + spread)


ServerLie: TypeAlias = Callable[[ServerTurn], list[bytes]]  # the requests that are sent instead, in their order
