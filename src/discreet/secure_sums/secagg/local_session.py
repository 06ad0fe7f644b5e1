"""A whole session in one process: what would the server learn from these vectors, if these clients left?

The machines are those that a network would carry messages between; here a loop does. An engine that simulates clients
sums through it, and so do the tests.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from discreet.errors import InvalidInput
from discreet.secure_sums.secagg.ring_vectors import Vector
from discreet.secure_sums.secagg.session_client import Client
from discreet.secure_sums.secagg.session_errors import TooFewClients
from discreet.secure_sums.secagg.session_server import Server
from discreet.secure_sums.secagg.session_terms import Terms
from discreet.secure_sums.secagg.unmasking import Total

LeavingStage: TypeAlias = Literal["keys", "shares", "masked", "agreed", "revealed"]  # before it sends this


class LocalSession:
    """Clients and their server after the set-up; `leaving` names who leaves in it, and before which message."""

    def __init__(
        self,
        terms: Terms,
        *,
        identities: Sequence[bytes] = (),
        leaving: Mapping[int, LeavingStage] | None = None,
    ) -> None:
        gone = leaving or {}
        own: Sequence[bytes | None] = identities or [None] * terms.clients
        self.terms = terms
        self.server = Server(terms)
        self.clients = [Client(terms, each, identity=key) for each, key in enumerate(own)]
        for client in self._still(range(terms.clients), gone, "keys"):
            self.server.receive(self.clients[client].start())
        answers = self._answers(self.server.close())
        for client in self._still(answers, gone, "shares"):
            self.server.receive(answers[client])
        self._answers(self.server.close())

    def sum(
        self, number: int, vectors: Mapping[int, Vector], *, leaving: Mapping[int, LeavingStage] | None = None
    ) -> Total:
        """One round over the members' vectors; `leaving` names who leaves in it, and before which message."""
        gone, members = leaving or {}, self.server.members
        if not members <= vectors.keys():
            raise InvalidInput(f"Each member needs a vector, and {sorted(members - vectors.keys())} have none.")
        self.server.open(number)
        here = [client for client in members if not self.clients[client].over]
        for client in self._still(here, gone, "masked"):
            self.server.receive(self.clients[client].mask(number, vectors[client]))
        answers = self._answers(self.server.close())
        if self.terms.has_signatures:
            for client in self._still(answers, gone, "agreed"):
                self.server.receive(answers[client])
            answers = self._answers(self.server.close())
        for client in self._still(answers, gone, "agreed", "revealed"):
            self.server.receive(answers[client])
        return self.server.unmask()

    def _answers(self, messages: Mapping[int, bytes]) -> dict[int, bytes]:
        """What the clients say to the server; one that has too few neighbours left says nothing."""
        answers = {}
        for client, message in messages.items():
            try:
                answer = self.clients[client].receive(message)
            except TooFewClients:
                continue
            if answer is not None:
                answers[client] = answer
        return answers

    @staticmethod
    def _still(clients: Iterable[int], gone: Mapping[int, LeavingStage], *stages: LeavingStage) -> list[int]:
        return [client for client in clients if gone.get(client) not in stages]
