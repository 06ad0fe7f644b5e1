"""What the server knows: of the session, which outlives a restart, and of the round, which does not."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from discreet.secure_sums.secagg import graph, key_agreement
from discreet.secure_sums.secagg.derivations import roster_digest, survivors_statement
from discreet.secure_sums.secagg.ring_vectors import Vector
from discreet.secure_sums.secagg.session_errors import BadMessage
from discreet.secure_sums.secagg.session_messages import Masked, Revealed, keys_bytes
from discreet.secure_sums.secagg.session_terms import Terms
from discreet.secure_sums.secagg.wire import Reader, Writer

MARK = b"discreet secagg server 1"


@dataclass(frozen=True)
class Cohort:
    """The clients that sent keys, what they published, and who of them is a member. Nothing here is secret."""

    terms: Terms
    published: Mapping[int, bytes]
    members: frozenset[int] = frozenset()

    @cached_property
    def digests(self) -> dict[int, bytes]:
        return {client: key_agreement.digest(each) for client, each in self.published.items()}

    @cached_property
    def roster(self) -> bytes:
        return roster_digest(self.digests)

    @cached_property
    def neighbours(self) -> dict[int, tuple[int, ...]]:
        return graph.neighbourhoods(graph.circle(self.published, self.roster), self.terms.neighbours)

    def partners(self, client: int) -> frozenset[int]:
        return self.members.intersection(self.neighbours[client])

    def around(self, client: int) -> frozenset[int]:
        return self.partners(client) | {client}

    @cached_property
    def positions(self) -> dict[int, dict[int, int]]:
        """By owner and holder: where the holder's share of the owner's secrets lies on the polynomial."""
        holders = {owner: sorted((owner, *around)) for owner, around in self.neighbours.items()}
        return {owner: {holder: place for place, holder in enumerate(each, 1)} for owner, each in holders.items()}

    def mask_public(self, client: int, number: int) -> bytes:
        start = key_agreement.KEY_BYTES * (1 + number)
        return self.published[client][start : start + key_agreement.KEY_BYTES]

    def statement(self, number: int, survivors: frozenset[int]) -> bytes:
        return survivors_statement(self.terms, self.roster, self.members, number, survivors)

    def to_bytes(self, next_round: int) -> bytes:
        writer = Writer().raw(MARK).blob(self.terms.to_bytes()).number(next_round, 4)
        content = writer.table(self.published).clients(self.members, self.terms.clients).done()
        return content + key_agreement.digest(content)

    @classmethod
    def from_bytes(cls, data: bytes) -> "tuple[Cohort, int]":
        """The cohort, and the next round that may be opened."""
        content, checksum = data[: -key_agreement.KEY_BYTES], data[-key_agreement.KEY_BYTES :]
        if not content.startswith(MARK) or key_agreement.digest(content) != checksum:
            raise BadMessage("These bytes are not the saved state of a server of this version, or were changed since.")
        reader = Reader(content)
        reader.raw(len(MARK))
        terms, number = Terms.from_bytes(reader.blob()), reader.number(4)
        published, members = reader.table(keys_bytes(terms), terms.clients), reader.clients(terms.clients)
        reader.done()
        return cls(terms, published, members), number


@dataclass
class Round:
    """One round in progress. Vectors are added up as they come, so one vector is held, whatever the cohort."""

    number: int
    total: Vector
    commitments: dict[int, bytes] = field(default_factory=dict)
    sealed: dict[int, dict[int, bytes]] = field(default_factory=dict)  # by receiver, then by sender
    survivors: frozenset[int] = frozenset()
    signatures: dict[int, bytes] = field(default_factory=dict)
    revealed: dict[int, Revealed] = field(default_factory=dict)

    @classmethod
    def none(cls) -> "Round":
        """No round is open: no message has its number."""
        return cls(-1, np.zeros(0))

    def add(self, message: Masked, vector: Vector) -> None:
        self.total += vector
        self.commitments[message.client] = message.commitment
        for receiver, each in message.sealed.items():
            self.sealed.setdefault(receiver, {})[message.client] = each
