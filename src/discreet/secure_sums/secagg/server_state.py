"""The state of a session's server: the cohort, which survives a restart, and the round, which does not."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from discreet.secure_sums.secagg import graph, key_agreement
from discreet.secure_sums.secagg.derivations import NO_SUBJECT, RoundBinding, roster_digest, survivors_statement
from discreet.secure_sums.secagg.message_fields import keys_bytes, split_row
from discreet.secure_sums.secagg.ring_vectors import Vector
from discreet.secure_sums.secagg.session_messages import Masked, Revealed
from discreet.secure_sums.secagg.session_terms import Terms
from discreet.secure_sums.secagg.wire import Reader, Writer

MARK = b"discreet secagg server 2"


@dataclass(frozen=True)
class Cohort:
    """The clients that sent keys, what they published, and which of them are members. Nothing here is secret.

    `dealt` has, by dealer and then by holder, the commitments to the shares of all rounds' mask keys.
    """

    terms: Terms
    published: Mapping[int, bytes]
    members: frozenset[int] = frozenset()
    dealt: Mapping[int, Mapping[int, bytes]] = field(default_factory=dict)

    @cached_property
    def digests(self) -> dict[int, bytes]:
        """The digest of each client's published keys."""
        return {client: key_agreement.digest(keys) for client, keys in self.published.items()}

    @cached_property
    def roster(self) -> bytes:
        """One digest of everybody's keys."""
        return roster_digest(self.digests)

    @cached_property
    def neighbours(self) -> dict[int, tuple[int, ...]]:
        """Each client's neighbours on the graph."""
        return graph.neighbourhoods(graph.place_on_circle(self.published, self.roster), self.terms.neighbours)

    def partners(self, client: int) -> frozenset[int]:
        """Return the client's neighbours that are members."""
        return self.members.intersection(self.neighbours[client])

    @cached_property
    def positions(self) -> dict[int, dict[int, int]]:
        """By owner and holder: the position on the polynomial of the holder's share of the owner's secrets."""
        holders = {owner: sorted((owner, *neighbours)) for owner, neighbours in self.neighbours.items()}
        return {owner: {holder: place for place, holder in enumerate(ids, 1)} for owner, ids in holders.items()}

    def mask_public(self, client: int, number: int) -> bytes:
        """Return the public key of the client's masks in round `number`."""
        start = key_agreement.KEY_BYTES * (1 + number)
        return self.published[client][start : start + key_agreement.KEY_BYTES]

    def key_commitment(self, dealer: int, holder: int, number: int) -> bytes:
        """Return the commitment to the holder's share of the dealer's mask key of round `number`."""
        start = key_agreement.KEY_BYTES * number
        return self.dealt[dealer][holder][start : start + key_agreement.KEY_BYTES]

    def binding(self, current: "Round") -> RoundBinding:
        """Return what the masks and the agreement of a round are bound to."""
        return RoundBinding(self.roster, current.number, current.subject)

    def statement(self, current: "Round") -> bytes:
        """Return the bytes that clients sign to confirm the subject and the survivors of a round."""
        return survivors_statement(self.terms, self.binding(current), self.members, current.survivors)

    def to_bytes(self, next_round: int) -> bytes:
        """Return the cohort and the next round that may be opened as bytes."""
        writer = Writer().raw(MARK).blob(self.terms.to_bytes()).number(next_round, 4)
        writer.table(self.published).clients(self.members, self.terms.clients)
        for dealer in sorted(self.members):
            writer.table(self.dealt[dealer])
        return writer.to_saved_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> "tuple[Cohort, int]":
        """Restore the cohort, and the next round that may be opened."""
        reader = Reader.open_saved(data, MARK, "server")
        terms, number = Terms.from_bytes(reader.blob()), reader.number(4)
        published, members = reader.table(keys_bytes(terms), terms.clients), reader.clients(terms.clients)
        size = key_agreement.KEY_BYTES * terms.rounds
        dealt = {dealer: reader.table(size, terms.clients) for dealer in sorted(members)}
        reader.check_end()
        return cls(terms, published, members, dealt), number


@dataclass
class Round:
    """A round in progress. Vectors are added as they arrive, so that one vector is in memory for any cohort size."""

    number: int
    total: Vector
    subject: bytes = NO_SUBJECT
    commitments: dict[int, bytes] = field(default_factory=dict)
    sealed: dict[int, dict[int, bytes]] = field(default_factory=dict)  # by receiver, then by sender
    dealt: dict[int, dict[int, bytes]] = field(default_factory=dict)  # commitments to shares, by dealer and holder
    survivors: frozenset[int] = frozenset()
    signatures: dict[int, bytes] = field(default_factory=dict)
    revealed: dict[int, Revealed] = field(default_factory=dict)

    @classmethod
    def none(cls) -> "Round":
        """Return the placeholder for "no round is open": no message has its number."""
        return cls(-1, np.zeros(0))

    def add(self, message: Masked, vector: Vector) -> None:
        """Add a client's masked vector to the sum, and store its commitment and sealed shares."""
        self.total += vector
        self.commitments[message.client] = message.commitment
        self.dealt[message.client] = {holder: split_row(row)[0] for holder, row in message.sealed.items()}
        for receiver, share in message.sealed.items():
            self.sealed.setdefault(receiver, {})[message.client] = share
