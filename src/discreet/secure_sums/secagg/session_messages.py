"""The messages of a secure session, and the table of stages that says in which order they are exchanged.

Each message is a record that has exactly one encoding in bytes (message_codec.py), by the kinds of its fields
(message_fields.py). `SETUP` and `ROUND`, at the end of this file, are the only place that holds the order of the
stages: client, server, local session and network session all read it from there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from discreet.secure_sums.secagg import message_fields as fields
from discreet.secure_sums.secagg import shamir
from discreet.secure_sums.secagg.wire import Bytes

Table: TypeAlias = Mapping[int, bytes]


@dataclass(frozen=True)
class WireMessage:
    """A message as a record whose fields are written one after the other.

    Attributes:
        KIND: The number that marks the message.
        FIELDS: The kind of each field, in their order.
    """

    KIND: ClassVar[int]
    FIELDS: ClassVar[tuple[fields.MessageField, ...]]

    def problem(self) -> str:
        """Return what is wrong with a message whose fields could all be read; empty if nothing is."""
        return ""


@dataclass(frozen=True)
class Keys(WireMessage):
    """A client's public keys.

    `published` holds the sealing key, one mask key for each round and, in a signed session, the signature over them.
    """

    KIND = 1
    FIELDS = (fields.CLIENT, fields.PUBLISHED_KEYS)
    client: int
    published: bytes


@dataclass(frozen=True)
class Roster(WireMessage):
    """The digest of every client's public keys, and the keys of the receiver's neighbours in full."""

    KIND = 2
    FIELDS = (fields.DIGESTS, fields.KEYS_OF_CLIENTS)
    digests: Table
    published: Table


@dataclass(frozen=True)
class Shares(WireMessage):
    """Shares of a client's mask keys of all rounds, committed to and sealed for each of its neighbours."""

    KIND = 3
    FIELDS = (fields.CLIENT, fields.SEALED_SHARES_OF_ALL_ROUNDS)
    client: int
    sealed: Table


@dataclass(frozen=True)
class Members(WireMessage):
    """The clients that shared their keys and so belong to the session, and the shares sealed for the receiver."""

    KIND = 4
    FIELDS = (fields.CLIENTS, fields.SEALED_SHARES_OF_ALL_ROUNDS)
    members: frozenset[int]
    sealed: Table


@dataclass(frozen=True)
class Masked(WireMessage):
    """A masked vector, packed, with a commitment to the seed of its self-mask and sealed shares of that seed."""

    KIND = 5
    FIELDS = (fields.CLIENT, fields.ROUND_NUMBER, fields.DIGEST, fields.VECTOR, fields.SEALED_SHARES)
    client: int
    round: int
    commitment: bytes
    vector: Bytes
    sealed: Table


@dataclass(frozen=True)
class Survivors(WireMessage):
    """The clients whose vectors are in the sum, and the self-mask shares that were sealed for the receiver."""

    KIND = 6
    FIELDS = (fields.ROUND_NUMBER, fields.CLIENTS, fields.SEALED_SHARES)
    round: int
    survivors: frozenset[int]
    sealed: Table


@dataclass(frozen=True)
class Agreed(WireMessage):
    """A client's signature of the survivor list that it received."""

    KIND = 7
    FIELDS = (fields.CLIENT, fields.ROUND_NUMBER, fields.SIGNATURE)
    client: int
    round: int
    signature: bytes


@dataclass(frozen=True)
class Agreement(WireMessage):
    """The signatures of the survivor list by the receiver's neighbours."""

    KIND = 8
    FIELDS = (fields.ROUND_NUMBER, fields.SIGNATURES)
    round: int
    signatures: Table


@dataclass(frozen=True)
class Revealed(WireMessage):
    """The seed of the client's own self-mask, and one share for each neighbour: of a survivor's self-mask or of a lost
    client's mask key.

    A neighbour is missing if the client could not use what it had dealt.
    """

    KIND = 9
    FIELDS = (fields.CLIENT, fields.ROUND_NUMBER, fields.SEED, fields.SHARES, fields.SHARES)
    client: int
    round: int
    seed: bytes
    self_masks: Table
    mask_keys: Table

    def problem(self) -> str:
        shares = [*self.self_masks.values(), *self.mask_keys.values()]
        if not all(map(shamir.is_share, shares)):
            return "holds a share outside the field"
        return "holds both shares of one client" if self.self_masks.keys() & self.mask_keys.keys() else ""


ClientMessage: TypeAlias = Keys | Shares | Masked | Agreed | Revealed
ServerMessage: TypeAlias = Roster | Members | Survivors | Agreement
Message: TypeAlias = ClientMessage | ServerMessage

StageName: TypeAlias = Literal["keys", "shares", "masked", "agreed", "revealed"]
ServerStage: TypeAlias = StageName | Literal["ready", "over"]
ClientStage: TypeAlias = Literal["new", "advertised", "shared", "ready", "masked", "agreed", "revealed", "over"]


class Stage(NamedTuple):
    """One exchange of a session: every client sends `reply`, then the server ends the stage with `closed_by`.

    The client answers `closed_by` by the function in `ANSWERS` of client_setup.py or client_round.py. The server takes
    `reply` and ends the stage in session_server.py. After a release, a new stage or message needs a new `wire.VERSION`.

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


def round_number(message: Message) -> int | None:
    """Return the round that a message belongs to; None for a message of the set-up."""
    number: int | None = getattr(message, "round", None)
    return number


def next_stage(name: ServerStage, *, signed: bool) -> ServerStage:
    """Return the server's stage after `name`: "ready" after the set-up and after a round."""
    for stages in (SETUP, round_stages(signed=signed)):
        names: list[ServerStage] = [stage.name for stage in stages]
        if name in names:
            return (*names, "ready")[names.index(name) + 1]
    raise AssertionError(f"no stage follows {name!r}")
