"""What all clients and the server agree on before the first message of a session."""

import struct
from functools import cached_property
from typing import Annotated

from pydantic import Strict

from discreet.errors import InvalidInput, UnsoundCombination
from discreet.part import Count, part
from discreet.secure_sums.ring_bits import LEAST_BITS
from discreet.secure_sums.secagg import key_agreement
from discreet.secure_sums.secagg.degree import (
    MOST_NEIGHBOURS,
    Assumptions,
    all_pairs,
    fewest_survivors,
    insecurity_probability,
    plan_degree,
)
from discreet.secure_sums.secagg.ring_vectors import MOST_BITS, Ring
from discreet.secure_sums.secagg.wire import VERSION, Reader, Writer

SESSION_BYTES, PURPOSE_BYTES = 16, 32
MOST_CLIENTS, MOST_ROUNDS, MOST_NUMBERS = 10**5, 10**5, 2**32
SECURITY_BITS = 30  # a graph must not fail more often than once in 2^30
NUMBERS = ("clients", "length", "bits", "rounds", "neighbours", "threshold", "minimum")
SHARES, ASSUMED = ("colluding", "leaving", "security_bits", "correctness_bits"), "<4d"
Octets = Annotated[bytes, Strict()]


@part
class Terms:
    """The terms of a session: who sums which vectors, in how many rounds, and how many shares open a secret.

    Guarantee: an honest-but-curious server, with fewer than `threshold` colluding clients in any neighbourhood, learns
    nothing from a round but the sum over the survivors. On a graph this fails with a probability of at most
    2^−security_bits, for the shares of colluding and leaving clients that `assumptions` names. Terms whose graph fails
    more often can't be built or read.

    A lying server can forge keys, show clients different lists, and name any client as a leaver. With `identities` and
    all pairs it learns no more than a curious one, as long as at most `tolerated_colluders` clients side with it. On a
    graph nothing is promised against it: it can cut the circle by naming the right leavers. Without identities nobody
    knows whose keys it hands on: it can put itself in a client's place.

    Attributes:
        session: Random bytes that name the session.
        purpose: A digest of what is summed, the same for all clients.
        clients: The number of clients, which are numbered from 0.
        length: Numbers in a vector.
        bits: The vectors are summed modulo 2^bits.
        rounds: Rounds of the session.
        neighbours: Neighbours of each client, with whom it shares masks; all others for all pairs.
        threshold: Shares that open a secret, of those that a client and its neighbours hold.
        minimum: The fewest clients in a sum.
        identities: One Ed25519 public key for each client, in a signed session.
        assumptions: What a graph withstands; None for all pairs.
    """

    session: Octets
    purpose: Octets = bytes(PURPOSE_BYTES)
    clients: Count
    length: Count
    bits: Count = 32
    rounds: Count = 1
    neighbours: Count
    threshold: Count
    minimum: Count
    identities: tuple[Octets, ...] = ()
    assumptions: Assumptions | None = None

    @classmethod
    def choose(
        cls,
        *,
        clients: int,
        length: int,
        bits: int = 32,
        rounds: int = 1,
        threshold: int | None = None,
        identities: tuple[bytes, ...] = (),
        assumptions: Assumptions | None = None,
        colluding: int = 0,
        leaving: int = 0,
        needed: int = 0,
        purpose: bytes = bytes(PURPOSE_BYTES),
    ) -> "Terms":
        """Return terms for a new session: all pairs in small cohorts, a random graph in large ones.

        Args:
            clients: The number of clients.
            length: Numbers in the vector that is summed.
            bits: Bits of each number.
            rounds: Rounds for which keys are exchanged.
            threshold: A number of clients, for all pairs; None chooses it.
            identities: The clients' public identity keys, in a signed session.
            assumptions: The shares of clients that a graph must withstand at least.
            colluding: Clients that may side with the server.
            leaving: Clients that may drop out.
            needed: The fewest clients whose sum may be opened, if more than the threshold asks for.
            purpose: A digest of what is summed.
        """
        if threshold is not None and (colluding or leaving):
            raise InvalidInput("Terms: give a threshold, or how many may collude and leave, and not both.")
        if threshold is None:
            degree = plan_degree(
                clients, colluding=colluding, leaving=leaving, signed=bool(identities), assumptions=assumptions
            )
        else:
            degree = all_pairs(clients, threshold)
        return cls(
            session=key_agreement.random_bytes(SESSION_BYTES),
            purpose=purpose,
            clients=clients,
            length=length,
            bits=bits,
            rounds=rounds,
            neighbours=degree.neighbours,
            threshold=degree.threshold,
            minimum=max(degree.minimum, needed),
            identities=identities,
            assumptions=degree.assumptions,
        )

    def __post_init__(self) -> None:
        _check_range("clients", self.clients, 3, MOST_CLIENTS)
        _check_range("bits", self.bits, LEAST_BITS, MOST_BITS)
        _check_range("rounds", self.rounds, 1, MOST_ROUNDS)
        _check_range("length", self.length, 1, MOST_NUMBERS)
        _check_range("neighbours", self.neighbours, 2, self.clients - 1)
        if len(self.session) != SESSION_BYTES:
            raise InvalidInput(f"Terms: session must have {SESSION_BYTES} bytes, and got {len(self.session)}.")
        if len(self.purpose) != PURPOSE_BYTES:
            raise InvalidInput(f"Terms: purpose must have {PURPOSE_BYTES} bytes, and got {len(self.purpose)}.")
        if self.neighbours % 2 and self.neighbours != self.clients - 1:
            raise InvalidInput(f"Terms: neighbours must be even or all {self.clients - 1}, and got {self.neighbours}.")
        self._check_thresholds()
        self._check_identities()
        if self.is_on_graph:
            self._check_graph()

    def _check_thresholds(self) -> None:
        holders = self.neighbours + 1
        if not holders / 2 < self.threshold <= holders:
            raise UnsoundCombination(
                f"Terms: threshold must be more than half of the {holders} holders of a share, and at most all, "
                f"and got {self.threshold}: with half, two halves could be asked for the two shares of one client.",
                fix="Leave the threshold out, or raise it.",
            )
        if not max(self.clients / 2, self.threshold - 1) < self.minimum <= self.clients:
            raise UnsoundCombination(
                f"Terms: minimum must be more than half of the {self.clients} clients, and at least the threshold "
                f"{self.threshold}, and got {self.minimum}."
            )

    def _check_identities(self) -> None:
        if not self.identities:
            return
        if len(self.identities) != self.clients or any(len(key) != key_agreement.KEY_BYTES for key in self.identities):
            raise InvalidInput(
                f"Terms: identities must be one Ed25519 public key of {key_agreement.KEY_BYTES} bytes for each of "
                f"{self.clients} clients, and got {len(self.identities)}."
            )
        if len(set(self.identities)) != self.clients:
            raise UnsoundCombination("Terms: identities must differ, or one client could speak for two.")

    def _check_graph(self) -> None:
        """Refuse a graph that fails more often than its assumptions state, or states none."""
        _check_range("neighbours, on a graph,", self.neighbours, 2, MOST_NEIGHBOURS)
        use = "Let Terms.choose find the neighbours, or use all pairs."
        if self.assumptions is None:
            raise UnsoundCombination("Terms: a graph must say what is assumed, and got nothing.", fix=use)
        if self.assumptions.security_bits < SECURITY_BITS:
            raise UnsoundCombination(
                f"Terms: security_bits of a graph must be at least {SECURITY_BITS}, and got "
                f"{self.assumptions.security_bits:g}.",
                fix=use,
            )
        least = fewest_survivors(self.clients, self.assumptions)
        if self.minimum < least:
            raise UnsoundCombination(
                f"Terms: minimum must be at least {least} of {self.clients} clients, since no more are assumed to "
                f"leave, and got {self.minimum}.",
                fix=use,
            )
        allowed = self.assumptions.chance
        chance = insecurity_probability(self.clients, self.neighbours, self.threshold, self.assumptions)
        if chance > allowed:
            raise UnsoundCombination(
                f"Terms: with {self.neighbours} neighbours and a threshold of {self.threshold} the chance that a mask "
                f"can be opened, or a part of the sum seen, must be at most {allowed:.2g}, and is up to {chance:.2g}.",
                fix=use,
            )

    @property
    def is_on_graph(self) -> bool:
        """Whether clients have fewer neighbours than there are others."""
        return self.neighbours < self.clients - 1

    @property
    def has_signatures(self) -> bool:
        """Whether keys and survivor lists are signed, so that the server can't forge them."""
        return bool(self.identities)

    @property
    def tolerated_colluders(self) -> int | None:
        """The number of clients that may side with a lying server while no two survivor lists can both be answered.

        None if nothing is promised against a lying server, even without colluding clients.
        """
        return 2 * self.threshold - self.clients - 1 if self.has_signatures and not self.is_on_graph else None

    @cached_property
    def ring(self) -> Ring:
        return Ring(self.bits, self.length)

    @cached_property
    def context(self) -> bytes:
        """The digest of all terms, which is part of every message and of every derived key."""
        return key_agreement.digest(self.to_bytes())

    def to_bytes(self) -> bytes:
        writer = Writer().number(VERSION, 1).raw(self.session).raw(self.purpose)
        for name in NUMBERS:
            writer.number(getattr(self, name), 8)
        writer.number(len(self.identities), 4).raw(b"".join(self.identities))
        if self.assumptions is None:
            return writer.number(0, 1).to_bytes()
        assumed = struct.pack(ASSUMED, *(getattr(self.assumptions, name) for name in SHARES))
        return writer.number(1, 1).raw(assumed).to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Terms":
        reader = Reader(data)
        if (version := reader.number(1)) != VERSION:
            reader.refuse(f"has version {version}, and this is version {VERSION}")
        session, purpose = reader.raw(SESSION_BYTES), reader.raw(PURPOSE_BYTES)
        numbers = {name: reader.number(8) for name in NUMBERS}
        identities = tuple(reader.raw(key_agreement.KEY_BYTES) for _ in range(min(reader.number(4), MOST_CLIENTS)))
        assumptions, graph = None, reader.number(1)
        if graph == 1:
            shares = struct.unpack(ASSUMED, reader.raw(struct.calcsize(ASSUMED)))
            assumptions = Assumptions(**dict(zip(SHARES, shares, strict=True)))
        elif graph:
            reader.refuse(f"has a {graph} where only 0 or 1 may stand")
        reader.check_end()
        return cls(session=session, purpose=purpose, identities=identities, assumptions=assumptions, **numbers)


def _check_range(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidInput(f"Terms: {name} must be between {least} and {most}, and got {value}.")
