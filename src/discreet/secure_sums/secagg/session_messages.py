"""The messages of a secure session, and the table of stages that says in which order they are exchanged.

Each message is a record that has exactly one encoding in bytes (message_codec.py). All sizes follow from the terms, so
a reader knows each length in advance. `SETUP` and `ROUND`, at the end of this file, are the only place that holds the
order of the stages: client, server, local session and network session all read it from there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from discreet.secure_sums.secagg import key_agreement, shamir
from discreet.secure_sums.secagg.session_terms import Terms
from discreet.secure_sums.secagg.wire import Bytes, Reader, Writer

ROUND_BYTES = 4
Table: TypeAlias = Mapping[int, bytes]


def sealed_bytes(shares: int) -> int:
    """Return the length of `shares` Shamir shares under one seal."""
    return key_agreement.SEAL_BYTES + shares * shamir.SHARE_BYTES


def keys_bytes(terms: Terms) -> int:
    """Return the length of a client's public keys: a sealing key, a mask key for each round, and any signature."""
    return key_agreement.KEY_BYTES * (1 + terms.rounds) + (key_agreement.SIGNATURE_BYTES if terms.has_signatures else 0)


@dataclass(frozen=True)
class Keys:
    """A client's public keys.

    `published` holds the sealing key, one mask key for each round and, in a signed session, the signature over them.
    """

    KIND: ClassVar[int] = 1
    client: int
    published: bytes

    def body(self, writer: Writer, terms: Terms) -> None:
        writer.number(self.client, 4).raw(self.published)

    @classmethod
    def read(cls, reader: Reader, terms: Terms) -> "Keys":
        return cls(reader.client(terms.clients), reader.raw(keys_bytes(terms)))


@dataclass(frozen=True)
class Roster:
    """The digest of every client's public keys, and the keys of the receiver's neighbours in full."""

    KIND: ClassVar[int] = 2
    digests: Table
    published: Table

    def body(self, writer: Writer, terms: Terms) -> None:
        writer.table(self.digests).table(self.published)

    @classmethod
    def read(cls, reader: Reader, terms: Terms) -> "Roster":
        return cls(reader.table(key_agreement.KEY_BYTES, terms.clients), reader.table(keys_bytes(terms), terms.clients))


@dataclass(frozen=True)
class Shares:
    """Shares of a client's mask keys of all rounds, sealed for each of its neighbours."""

    KIND: ClassVar[int] = 3
    client: int
    sealed: Table

    def body(self, writer: Writer, terms: Terms) -> None:
        writer.number(self.client, 4).table(self.sealed)

    @classmethod
    def read(cls, reader: Reader, terms: Terms) -> "Shares":
        return cls(reader.client(terms.clients), reader.table(sealed_bytes(terms.rounds), terms.clients))


@dataclass(frozen=True)
class Members:
    """The clients that shared their keys and so belong to the session, and the shares sealed for the receiver."""

    KIND: ClassVar[int] = 4
    members: frozenset[int]
    sealed: Table

    def body(self, writer: Writer, terms: Terms) -> None:
        writer.clients(self.members, terms.clients).table(self.sealed)

    @classmethod
    def read(cls, reader: Reader, terms: Terms) -> "Members":
        return cls(reader.clients(terms.clients), reader.table(sealed_bytes(terms.rounds), terms.clients))


@dataclass(frozen=True)
class Masked:
    """A masked vector, packed, with a commitment to the seed of its self-mask and sealed shares of that seed."""

    KIND: ClassVar[int] = 5
    client: int
    round: int
    commitment: bytes
    vector: Bytes
    sealed: Table

    def body(self, writer: Writer, terms: Terms) -> None:
        writer.number(self.client, 4).number(self.round, ROUND_BYTES).raw(self.commitment)
        writer.raw(self.vector).table(self.sealed)

    @classmethod
    def read(cls, reader: Reader, terms: Terms) -> "Masked":
        return cls(
            reader.client(terms.clients),
            _round(reader, terms),
            reader.raw(key_agreement.KEY_BYTES),
            reader.view(terms.ring.packed_bytes),
            reader.table(sealed_bytes(1), terms.clients),
        )


@dataclass(frozen=True)
class Survivors:
    """The clients whose vectors are in the sum, and the self-mask shares that were sealed for the receiver."""

    KIND: ClassVar[int] = 6
    round: int
    survivors: frozenset[int]
    sealed: Table

    def body(self, writer: Writer, terms: Terms) -> None:
        writer.number(self.round, ROUND_BYTES).clients(self.survivors, terms.clients).table(self.sealed)

    @classmethod
    def read(cls, reader: Reader, terms: Terms) -> "Survivors":
        round_ = _round(reader, terms)
        return cls(round_, reader.clients(terms.clients), reader.table(sealed_bytes(1), terms.clients))


@dataclass(frozen=True)
class Agreed:
    """A client's signature of the survivor list that it received."""

    KIND: ClassVar[int] = 7
    client: int
    round: int
    signature: bytes

    def body(self, writer: Writer, terms: Terms) -> None:
        writer.number(self.client, 4).number(self.round, ROUND_BYTES).raw(self.signature)

    @classmethod
    def read(cls, reader: Reader, terms: Terms) -> "Agreed":
        return cls(reader.client(terms.clients), _round(reader, terms), reader.raw(key_agreement.SIGNATURE_BYTES))


@dataclass(frozen=True)
class Agreement:
    """The signatures of the survivor list by the receiver's neighbours."""

    KIND: ClassVar[int] = 8
    round: int
    signatures: Table

    def body(self, writer: Writer, terms: Terms) -> None:
        writer.number(self.round, ROUND_BYTES).table(self.signatures)

    @classmethod
    def read(cls, reader: Reader, terms: Terms) -> "Agreement":
        return cls(_round(reader, terms), reader.table(key_agreement.SIGNATURE_BYTES, terms.clients))


@dataclass(frozen=True)
class Revealed:
    """One share for the client itself and each neighbour: of a survivor's self-mask or of a lost client's mask key."""

    KIND: ClassVar[int] = 9
    client: int
    round: int
    self_masks: Table
    mask_keys: Table

    def body(self, writer: Writer, terms: Terms) -> None:
        writer.number(self.client, 4).number(self.round, ROUND_BYTES).table(self.self_masks).table(self.mask_keys)

    @classmethod
    def read(cls, reader: Reader, terms: Terms) -> "Revealed":
        client, round_ = reader.client(terms.clients), _round(reader, terms)
        tables = [reader.table(shamir.SHARE_BYTES, terms.clients) for _ in range(2)]
        if any(not shamir.is_share(share) for table in tables for share in table.values()):
            reader.refuse("holds a share outside the field")
        if set(tables[0]) & set(tables[1]):
            reader.refuse("holds both shares of one client")
        return cls(client, round_, *tables)


ClientMessage: TypeAlias = Keys | Shares | Masked | Agreed | Revealed
ServerMessage: TypeAlias = Roster | Members | Survivors | Agreement
Message: TypeAlias = ClientMessage | ServerMessage

StageName: TypeAlias = Literal["keys", "shares", "masked", "agreed", "revealed"]
ServerStage: TypeAlias = StageName | Literal["ready", "over"]
ClientStage: TypeAlias = Literal["new", "advertised", "shared", "ready", "masked", "agreed", "revealed", "over"]


class Stage(NamedTuple):
    """One exchange of a session: every client sends `reply`, then the server ends the stage with `closed_by`.

    A stage is opened by the message that closed the one before it. The first stage of the set-up is opened by the
    terms, and the first stage of a round by the vectors to sum.

    Attributes:
        name: The server's stage while it waits for replies.
        reply: The message that each client sends.
        client_stage: The client's stage once it has sent its reply.
        closed_by: The message that the server sends to end the stage; None where it ends with the sum.
        needs_signatures: Whether only signed sessions have this stage.
        reveals_shares: Whether the replies hold shares that open masks.
    """

    name: StageName
    reply: type[ClientMessage]
    client_stage: ClientStage
    closed_by: type[ServerMessage] | None
    needs_signatures: bool = False
    reveals_shares: bool = False


SETUP = (  # once in a session
    Stage("keys", Keys, "advertised", Roster),
    Stage("shares", Shares, "shared", Members),
)
ROUND = (  # once for each sum
    Stage("masked", Masked, "masked", Survivors),
    Stage("agreed", Agreed, "agreed", Agreement, needs_signatures=True),
    Stage("revealed", Revealed, "revealed", closed_by=None, reveals_shares=True),
)


def round_stages(*, signed: bool) -> tuple[Stage, ...]:
    """Return the stages of a round in order."""
    return tuple(stage for stage in ROUND if signed or not stage.needs_signatures)


def next_stage(name: ServerStage, *, signed: bool) -> ServerStage:
    """Return the server's stage after `name`: "ready" after the set-up and after a round."""
    for stages in (SETUP, round_stages(signed=signed)):
        names: list[ServerStage] = [stage.name for stage in stages]
        if name in names:
            return (*names, "ready")[names.index(name) + 1]
    raise AssertionError(f"no stage follows {name!r}")


def _round(reader: Reader, terms: Terms) -> int:
    number = reader.number(ROUND_BYTES)
    if number >= terms.rounds:
        reader.refuse(f"is of round {number}, and the last of this session is {terms.rounds - 1}")
    return number
