"""A whole secure session in one process: every client, the server, and the messages between them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from discreet.errors import InvalidInput
from discreet.logs import get_log
from discreet.secure_sums.secagg.ring_vectors import Vector
from discreet.secure_sums.secagg.session_client import Client
from discreet.secure_sums.secagg.session_errors import TooFewClients
from discreet.secure_sums.secagg.session_messages import ROUND, SETUP, Stage, StageName, round_stages
from discreet.secure_sums.secagg.session_server import Server
from discreet.secure_sums.secagg.session_terms import Terms
from discreet.secure_sums.secagg.unmasking import Total

log = get_log(__name__)

Dropouts: TypeAlias = Mapping[int, StageName]  # by client: the stage in which it no longer replies
ORDER = [stage.name for stage in (*SETUP, *ROUND)]


class LocalSession:
    """Clients and their server after the set-up.

    Args:
        terms: What all clients and the server agreed on.
        identities: The private identity keys, in a signed session.
        leaving: The clients that drop out of the set-up, and the stage in which they no longer reply.
    """

    def __init__(self, terms: Terms, *, identities: Sequence[bytes] = (), leaving: Dropouts | None = None) -> None:
        dropouts = leaving or {}
        keys: Sequence[bytes | None] = identities or [None] * terms.clients
        self.terms = terms
        self.server = Server(terms)
        self.clients = [Client(terms, client, identity=key) for client, key in enumerate(keys)]
        present = _remaining_clients(range(terms.clients), dropouts, SETUP[0])
        self._exchange(SETUP, ((client, self.clients[client].start()) for client in present), dropouts)
        self._replies(self.server.close_stage())

    def sum(self, number: int, vectors: Mapping[int, Vector], *, leaving: Dropouts | None = None) -> Total:
        """Sum the members' vectors in round `number`.

        Args:
            vectors: A vector for each member.
            leaving: The clients that drop out of this round, and the stage in which they no longer reply.
        """
        dropouts, members = leaving or {}, self.server.members
        if not members <= vectors.keys():
            raise InvalidInput(f"Each member needs a vector, and {sorted(members - vectors.keys())} have none.")
        self.server.open_round(number)
        stages = round_stages(signed=self.terms.has_signatures)
        active = (client for client in members if not self.clients[client].is_over)
        present = _remaining_clients(active, dropouts, stages[0])
        masked = ((client, self.clients[client].mask(number, vectors[client])) for client in present)
        self._exchange(stages, masked, dropouts)
        return self.server.unmask()

    def _exchange(self, stages: Sequence[Stage], messages: Iterable[tuple[int, bytes]], dropouts: Dropouts) -> None:
        """Run these stages up to the replies of the last one; `messages` are the replies of the first, by client."""
        for stage in stages:
            if stage is not stages[0]:
                replies = self._replies(self.server.close_stage())
                messages = [(client, replies[client]) for client in _remaining_clients(replies, dropouts, stage)]
            for client, message in messages:
                self.server.receive(message, client)
            log.debug("stage completed", stage=stage.name)

    def _replies(self, messages: Mapping[int, bytes]) -> dict[int, bytes]:
        """Return what the clients reply to the server. A client with too few neighbours left does not reply."""
        replies = {}
        for client, message in messages.items():
            try:
                reply = self.clients[client].receive(message)
            except TooFewClients:
                continue
            if reply is not None:
                replies[client] = reply
        return replies


def _remaining_clients(clients: Iterable[int], dropouts: Dropouts, stage: Stage) -> list[int]:
    """Return the clients that have not dropped out before or in this stage."""
    missed = ORDER[: ORDER.index(stage.name) + 1]
    return [client for client in clients if dropouts.get(client) not in missed]
