"""What client and server send each other, as records with one spelling in bytes.

In the set-up of a session: `Keys` → `Roster` → `Shares` → `Members`. In a round: `Masked` → `Survivors` → `Agreed` →
`Agreement` → `Revealed`, where the two in the middle exist only in signed sessions. Arrows point from client to server
and back in turn. All sizes follow from the terms, so a parser knows each length before it reads.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from discreet.secure_sums.secagg import key_agreement, shamir
from discreet.secure_sums.secagg.session_terms import Terms
from discreet.secure_sums.secagg.wire import VERSION, Bytes, Reader, Writer

ROUND_BYTES = 4
Table: TypeAlias = Mapping[int, bytes]


def sealed_bytes(shares: int) -> int:
    return key_agreement.SEAL_BYTES + shares * shamir.SHARE_BYTES


def keys_bytes(terms: Terms) -> int:
    """A client's public keys (one to seal with, one a round for masks), and its signature if the session has any."""
    return key_agreement.KEY_BYTES * (1 + terms.rounds) + (key_agreement.SIGNATURE_BYTES if terms.has_signatures else 0)


@dataclass(frozen=True)
class Keys:
    """A client's public keys. `published` is: the sealing key, a mask key for each round, the signature over them."""

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
    """Who is there, by the digest of what each published; and what the receiver's neighbours published."""

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
    """Shares of a client's mask keys, one for each round, sealed for each neighbour."""

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
    """Who shared its keys, and so is in the session; and what was sealed for the receiver."""

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
    """A masked vector, packed; the seed of its self-mask, committed to, and shares of it sealed for each neighbour."""

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
    """Whose vectors are in the sum; and the shares of self-masks that were sealed for the receiver."""

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
    """A client's signature under the survivor list that it was shown."""

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
    """The signatures of the receiver's neighbours."""

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
    """One share for each neighbour and for oneself: of a survivor's self-mask, or of a lost client's mask key."""

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


Message: TypeAlias = Keys | Roster | Shares | Members | Masked | Survivors | Agreed | Agreement | Revealed
KINDS: dict[int, type[Message]] = {
    kind.KIND: kind for kind in (Keys, Roster, Shares, Members, Masked, Survivors, Agreed, Agreement, Revealed)
}


def encode(message: Message, terms: Terms) -> bytes:
    writer = Writer().number(VERSION, 1).number(message.KIND, 1).raw(terms.context)
    message.body(writer, terms)
    return writer.done()


def parse(data: bytes, terms: Terms) -> Message:
    """The message in these bytes, or `BadMessage`. What is accepted encodes to the very same bytes."""
    reader = Reader(data)
    version, kind, context = reader.number(1), reader.number(1), reader.raw(len(terms.context))
    if version != VERSION:
        reader.refuse(f"has version {version}, and this is version {VERSION}")
    if kind not in KINDS:
        reader.refuse(f"is of kind {kind}, which is not known")
    if context != terms.context:
        reader.refuse("belongs to another session, or to other terms")
    message = KINDS[kind].read(reader, terms)
    reader.done()
    return message


def _round(reader: Reader, terms: Terms) -> int:
    number = reader.number(ROUND_BYTES)
    if number >= terms.rounds:
        reader.refuse(f"is of round {number}, and the last of this session is {terms.rounds - 1}")
    return number
