"""The state of a client between two messages, and how it is saved and restored."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, get_args

from discreet.secure_sums.secagg import key_agreement, shamir
from discreet.secure_sums.secagg.derivations import RoundBinding
from discreet.secure_sums.secagg.session_messages import ClientMessage, ClientStage, ServerMessage
from discreet.secure_sums.secagg.session_terms import Terms
from discreet.secure_sums.secagg.wire import Reader, Writer

STAGES: dict[bytes, ClientStage] = {stage.encode(): stage for stage in get_args(ClientStage)}
MARK = b"discreet secagg client 4"


@dataclass
class ClientState:
    """Everything a client remembers of a session except its identity key, which outlives sessions.

    Secrets of a round are erased with the round: its mask key when the vector is masked, the shares of other clients
    and the seed of its self-mask when they are revealed or the round is given up.
    """

    terms: Terms
    client: int
    stage: ClientStage = "new"
    round: int = 0  # the current round, or the next one that may be masked
    sealing_key: bytes = field(default=b"", repr=False)
    mask_keys: dict[int, bytes] = field(default_factory=dict, repr=False)  # by round, from the current one on
    published: bytes = b""
    roster: bytes = b""  # the digest of everybody's keys
    present: frozenset[int] = frozenset()
    neighbours: tuple[int, ...] = ()
    mask_publics: dict[int, bytes] = field(default_factory=dict)  # of each neighbour, for all rounds
    channels: dict[int, bytes] = field(default_factory=dict, repr=False)  # the secret agreed with each neighbour
    members: frozenset[int] = frozenset()
    key_shares: dict[int, bytes] = field(default_factory=dict, repr=False)  # of neighbours' mask keys, from `round` on
    subject: bytes = b""  # a digest of what this round's vector answers
    seed: bytes = field(default=b"", repr=False)  # of this round's self-mask, until it is revealed
    self_shares: dict[int, bytes] = field(default_factory=dict, repr=False)  # of the neighbours' self-masks
    survivors: frozenset[int] = frozenset()
    last_digest: bytes = b""  # of the last message that was answered
    last_reply: bytes = field(default=b"", repr=False)  # sent again if that message comes again
    complaints: dict[int, str] = field(default_factory=dict)  # what the last message dealt and is no use; not saved

    @property
    def binding(self) -> RoundBinding:
        """What the masks and the agreement of this round are bound to."""
        return RoundBinding(self.roster, self.round, self.subject)

    @property
    def partners(self) -> tuple[int, ...]:
        """The neighbours that belong to the session: those with whom this client shares masks."""
        return tuple(peer for peer in self.neighbours if peer in self.members)

    @property
    def neighbourhood(self) -> frozenset[int]:
        """The client and its partners: the clients that hold shares of its secrets."""
        return frozenset((self.client, *self.partners))

    def next_round(self, number: int) -> None:
        """Erase the secrets of all rounds before `number`, and get ready for that round."""
        passed = number - self.round
        self.key_shares = {peer: shares[passed * shamir.SHARE_BYTES :] for peer, shares in self.key_shares.items()}
        self.mask_keys = {later: key for later, key in self.mask_keys.items() if later >= number}
        self.subject, self.seed, self.self_shares, self.survivors = b"", b"", {}, frozenset()
        self.last_digest, self.last_reply = b"", b""
        self.stage, self.round = "ready", number

    def erase(self) -> "ClientState":
        """Return a state without secrets, for a session that is over."""
        return ClientState(self.terms, self.client, stage="over")

    def to_bytes(self) -> bytes:
        """Return the state as bytes. They are secret. Save them before sending the reply that they hold."""
        total = self.terms.clients
        writer = Writer().raw(MARK).blob(self.terms.to_bytes()).number(self.client, 4)
        writer.blob(self.stage.encode()).number(self.round, 4).blob(self.sealing_key).table(self.mask_keys)
        writer.blob(self.published).blob(self.roster).clients(self.present, total)
        writer.clients(self.neighbours, total).table(self.mask_publics).table(self.channels)
        writer.clients(self.members, total).table(self.key_shares).blob(self.subject).blob(self.seed)
        writer.table(self.self_shares)
        return writer.clients(self.survivors, total).blob(self.last_digest).blob(self.last_reply).to_saved_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> "ClientState":
        """Restore the state that `to_bytes` returned; raise BadMessage if a byte differs."""
        reader = Reader.open_saved(data, MARK, "client")
        terms = Terms.from_bytes(reader.blob())
        total, rounds, key = terms.clients, terms.rounds, key_agreement.KEY_BYTES
        client, stage, number = reader.client(total), STAGES.get(reader.blob()), reader.number(4)
        if stage is None or number > rounds:
            reader.refuse(f"is at stage {stage} of round {number}, which don't exist")
        state = cls(
            terms=terms,
            client=client,
            stage=stage,
            round=number,
            sealing_key=reader.blob(),
            mask_keys=reader.table(key, rounds),
            published=reader.blob(),
            roster=reader.blob(),
            present=reader.clients(total),
            neighbours=tuple(sorted(reader.clients(total))),
            mask_publics=reader.table(key * rounds, total),
            channels=reader.table(key, total),
            members=reader.clients(total),
            key_shares=reader.table(shamir.SHARE_BYTES * (rounds - number), total),
            subject=reader.blob(),
            seed=reader.blob(),
            self_shares=reader.table(shamir.SHARE_BYTES, total),
            survivors=reader.clients(total),
            last_digest=reader.blob(),
            last_reply=reader.blob(),
        )
        reader.check_end()
        return state


Answer: TypeAlias = Callable[[ClientState, Any, bytes | None], ClientMessage | None]
"""From a client's state, a message of the server and the client's identity key to the reply; None if it needs none."""
AnswerTable: TypeAlias = Mapping[type[ServerMessage], Answer]
