"""What a client remembers between two messages, and how it survives a restart."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from discreet.secure_sums.secagg import key_agreement, shamir
from discreet.secure_sums.secagg.session_errors import BadMessage
from discreet.secure_sums.secagg.session_terms import Terms
from discreet.secure_sums.secagg.wire import Reader, Writer

Stage: TypeAlias = Literal["new", "advertised", "shared", "ready", "masked", "agreed", "revealed", "over"]
STAGES: tuple[Stage, ...] = get_args(Stage)
MARK = b"discreet secagg client 1"


@dataclass
class ClientState:
    """Everything but the identity key, which outlives sessions and is kept elsewhere.

    What serves one round is erased with the round: its mask key when the vector is masked, the shares of others when
    they are revealed or the round is given up.
    """

    terms: Terms
    client: int
    stage: Stage = "new"
    round: int = 0  # the current one, or the next that may be masked
    sealing_key: bytes = field(default=b"", repr=False)
    mask_keys: dict[int, bytes] = field(default_factory=dict, repr=False)  # by round, from the current one on
    published: bytes = b""
    roster: bytes = b""  # the digest of everybody's keys
    present: frozenset[int] = frozenset()
    neighbours: tuple[int, ...] = ()
    mask_publics: dict[int, bytes] = field(default_factory=dict)  # of each neighbour, for all rounds
    channels: dict[int, bytes] = field(default_factory=dict, repr=False)  # the secret agreed with each neighbour
    members: frozenset[int] = frozenset()
    held: dict[int, bytes] = field(default_factory=dict, repr=False)  # shares of neighbours' mask keys, from `round` on
    self_shares: dict[int, bytes] = field(default_factory=dict, repr=False)  # of this round's self-masks
    survivors: frozenset[int] = frozenset()
    heard: bytes = b""  # the digest of the last message that was answered
    said: bytes = field(default=b"", repr=False)  # the last answer, sent again when asked again

    @property
    def partners(self) -> tuple[int, ...]:
        """The neighbours that are in the session: those with whom masks are shared."""
        return tuple(each for each in self.neighbours if each in self.members)

    @property
    def around(self) -> frozenset[int]:
        """The client and its partners: who may hold shares that it deals with."""
        return frozenset((self.client, *self.partners))

    def next_round(self, number: int) -> None:
        """Erase everything that served rounds before `number`."""
        passed = number - self.round
        self.held = {each: shares[passed * shamir.SHARE_BYTES :] for each, shares in self.held.items()}
        self.mask_keys = {each: key for each, key in self.mask_keys.items() if each >= number}
        self.self_shares, self.survivors, self.heard, self.said = {}, frozenset(), b"", b""
        self.stage, self.round = "ready", number

    def erased(self) -> "ClientState":
        return ClientState(self.terms, self.client, stage="over")

    def to_bytes(self) -> bytes:
        """The state as bytes. They are secret. Save them before the answer that they remember is sent."""
        total = self.terms.clients
        writer = Writer().raw(MARK).blob(self.terms.to_bytes()).number(self.client, 4)
        writer.number(STAGES.index(self.stage), 1).number(self.round, 4).blob(self.sealing_key).table(self.mask_keys)
        writer.blob(self.published).blob(self.roster).clients(self.present, total)
        writer.clients(self.neighbours, total).table(self.mask_publics).table(self.channels)
        writer.clients(self.members, total).table(self.held).table(self.self_shares)
        content = writer.clients(self.survivors, total).blob(self.heard).blob(self.said).done()
        return content + key_agreement.digest(content)

    @classmethod
    def from_bytes(cls, data: bytes) -> "ClientState":
        content, checksum = data[: -key_agreement.KEY_BYTES], data[-key_agreement.KEY_BYTES :]
        if not content.startswith(MARK) or key_agreement.digest(content) != checksum:
            raise BadMessage(
                "These bytes are not the saved state of a client of this version, or were changed since.",
                fix="Restore the newest whole copy, or begin a new session.",
            )
        reader = Reader(content)
        reader.raw(len(MARK))
        terms = Terms.from_bytes(reader.blob())
        total, rounds, key = terms.clients, terms.rounds, key_agreement.KEY_BYTES
        client, stage, number = reader.client(total), reader.number(1), reader.number(4)
        if stage >= len(STAGES) or number > rounds:
            reader.refuse(f"is at stage {stage} of round {number}, which don't exist")
        state = cls(
            terms=terms,
            client=client,
            stage=STAGES[stage],
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
            held=reader.table(shamir.SHARE_BYTES * (rounds - number), total),
            self_shares=reader.table(shamir.SHARE_BYTES, total),
            survivors=reader.clients(total),
            heard=reader.blob(),
            said=reader.blob(),
        )
        reader.done()
        return state
