"""The server of a secure session: collect the replies of each stage, close the stage, and end with a sum.

`receive` takes one client's message. `close_stage` ends a stage with the clients that replied and returns the next
message for each of them. The caller decides how long to wait: nothing here uses a network or a clock.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from discreet.secure_sums.secagg import reply_checks
from discreet.secure_sums.secagg import session_errors as errors
from discreet.secure_sums.secagg import session_messages as messages
from discreet.secure_sums.secagg.derivations import NO_SUBJECT, check_subject
from discreet.secure_sums.secagg.message_codec import encode, parse
from discreet.secure_sums.secagg.message_fields import split_row
from discreet.secure_sums.secagg.message_signatures import SignedMessage
from discreet.secure_sums.secagg.server_state import Cohort, Round
from discreet.secure_sums.secagg.session_terms import Terms
from discreet.secure_sums.secagg.unmasking import Total, unmask

STAGES = (*messages.SETUP, *messages.ROUND)
AWAITED: dict[messages.ServerStage, type[messages.ClientMessage]] = {stage.name: stage.reply for stage in STAGES}
IN_SETUP = tuple(stage.name for stage in messages.SETUP)


class Server:
    """The server's half of the protocol. It holds public keys, sealed shares and one masked sum, but no update.

    Call `close_stage` at the end of each stage of the set-up. For a round call `open_round`, then `close_stage` at the
    end of each stage but the last, then `unmask`. A refused message changes nothing, and a failed round leaves the
    session ready for the next round.
    """

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.stage: messages.ServerStage = messages.SETUP[0].name
        self._published: dict[int, bytes] = {}
        self._cohort = Cohort(terms, self._published)
        self._sealed: dict[int, messages.Table] = {}  # what each client dealt in the set-up
        self._received: dict[int, bytes] = {}  # the digest of each client's message in this stage
        self._next = 0
        self._round = Round.none()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Server":
        """Restore the server that `to_bytes` saved. A round that was open is lost; the next one can be opened."""
        cohort, number = Cohort.from_bytes(data)
        server = cls(cohort.terms)
        server._cohort, server._next, server.stage = cohort, number, "ready"
        return server

    def to_bytes(self) -> bytes:
        """Return the session without the open round, which can't be finished after a restart."""
        if self.stage in (*IN_SETUP, "over"):
            raise errors.OutOfTurn(f"A server is saved once its set-up is done, and this one is at {self.stage!r}.")
        return self._cohort.to_bytes(self._next)

    @property
    def members(self) -> frozenset[int]:
        """The clients that completed the set-up."""
        return self._cohort.members

    @property
    def responders(self) -> frozenset[int]:
        """The clients that have replied in this stage."""
        return frozenset(self._received)

    def receive(self, message: bytes, sender: int) -> None:
        """Take a client's message. A repeated message counts once.

        Args:
            message: The message.
            sender: The client that sent it, as the network has authenticated it. It answers for the message.

        Raises:
            WrongSender: The message is in another client's name, or is not signed by the client that it names.
            OutOfTurn: The message belongs to another stage, or the client sent two different ones.
            NotAMember: The client was not in the stage before this one.
            BadMessage: The message is malformed.
        """
        signed = SignedMessage.read(message, self.terms)
        parsed = parse(signed.content, self.terms)
        awaited = AWAITED.get(self.stage)
        if awaited is None or not isinstance(parsed, awaited):
            raise errors.OutOfTurn(f"{type(parsed).__name__} is not expected here: the server is at {self.stage!r}.")
        reply_checks.check_sender(parsed.client, signed, sender, self.terms)
        number = messages.round_number(parsed)
        if number is not None and number != self._round.number:
            raise errors.WrongRound(f"The message is of round {number}, and round {self._round.number} is open.")
        if self._received.get(sender) == signed.digest:
            return
        if sender in self._received:
            raise errors.OutOfTurn(f"Client {sender} sent two different messages in one stage; the first one counts.")
        self._take(parsed)
        self._received[sender] = signed.digest

    def close_stage(self) -> dict[int, bytes]:
        """End this stage, and return the next message for each client that replied.

        Raises:
            TooFewClients: The round is lost, or in the set-up the session.
        """
        closers: dict[messages.ServerStage, Callable[[], Mapping[int, messages.ServerMessage]]] = {
            "keys": self._close_keys,
            "shares": self._close_shares,
            "masked": self._close_masked,
            "agreed": self._close_agreed,
        }
        if self.stage == "over":
            raise errors.SessionOver("This session ended with too few clients.", fix="Begin a new session.")
        if self.stage not in closers:
            raise errors.OutOfTurn(f"There is nothing to close: the server is at {self.stage!r}.")
        try:
            opening = closers[self.stage]()
        except errors.TooFewClients:
            self.stage = "over" if self.stage in IN_SETUP else "ready"
            raise
        self._advance()
        return {client: encode(message, self.terms) for client, message in opening.items()}

    def open_round(self, number: int, subject: bytes = NO_SUBJECT) -> None:
        """Begin round `number`. A round that is still open is given up, and its messages are no longer taken.

        Args:
            number: The round of the session.
            subject: A digest of what the clients' vectors answer. A vector with another one gives no sum.
        """
        check_subject(subject)
        if self.stage in (*IN_SETUP, "over"):
            raise errors.OutOfTurn(f"A round is opened when the set-up is done, and the server is at {self.stage!r}.")
        if not self._next <= number < self.terms.rounds:
            raise errors.WrongRound(
                f"This session has the rounds {self._next} to {self.terms.rounds - 1} left, and got {number}."
            )
        self._round, self._next, self._received = Round(number, self.terms.ring.zeros(), subject), number + 1, {}
        self.stage = messages.ROUND[0].name

    def unmask(self) -> Total:
        """End the round with the revealed shares, and return the sum over the survivors."""
        if self.stage != messages.ROUND[-1].name:
            raise errors.OutOfTurn(f"A sum is unmasked from revealed shares, and the server is at {self.stage!r}.")
        self._advance()
        current, self._round = self._round, Round.none()
        return unmask(self._cohort, current)

    def _advance(self) -> None:
        self.stage = messages.next_stage(self.stage, signed=self.terms.has_signatures)
        self._received = {}

    def _take(self, message: messages.ClientMessage) -> None:
        client, cohort = message.client, self._cohort
        if not isinstance(message, messages.Keys):
            self._check_stage_before(client)
        match message:
            case messages.Keys():
                reply_checks.check_keys(self.terms, message)
                self._published[client] = message.published
            case messages.Shares():
                reply_checks.check_holders(message.sealed, cohort.neighbours[client])
                self._sealed[client] = message.sealed
            case messages.Masked():
                reply_checks.check_holders(message.sealed, cohort.partners(client))
                self._round.add(message, self.terms.ring.unpack(message.vector))
            case messages.Agreed():
                reply_checks.check_agreed(cohort, self._round, message)
                self._round.signatures[client] = message.signature
            case messages.Revealed():
                reply_checks.check_revealed(cohort, self._round, message)
                self._round.revealed[client] = message

    def _check_stage_before(self, client: int) -> None:
        """Refuse a client that was not in the stage before this one."""
        current = self._round
        allowed = {
            "shares": self._cohort.published.keys(),
            "masked": self._cohort.members,
            "agreed": current.survivors,
            "revealed": current.signatures.keys() if self.terms.has_signatures else current.survivors,
        }
        if client not in allowed.get(self.stage, ()):
            raise errors.NotAMember(
                f"Client {client} was not in the stage before this one, so it can't be in this one."
            )

    def _close_keys(self) -> Mapping[int, messages.ServerMessage]:
        errors.require_clients(len(self._published), self.terms.minimum, "sent their keys")
        self._cohort = cohort = Cohort(self.terms, self._published)
        return {
            client: messages.Roster(
                cohort.digests, {peer: cohort.published[peer] for peer in cohort.neighbours[client]}
            )
            for client in cohort.published
        }

    def _close_shares(self) -> Mapping[int, messages.ServerMessage]:
        members = self.responders
        errors.require_clients(len(members), self.terms.minimum, "shared their keys")
        sealed, self._sealed = self._sealed, {}
        dealt = {dealer: {peer: split_row(row)[0] for peer, row in rows.items()} for dealer, rows in sealed.items()}
        self._cohort = replace(self._cohort, members=members, dealt=dealt)
        return {
            client: messages.Members(members, {peer: sealed[peer][client] for peer in self._cohort.partners(client)})
            for client in members
        }

    def _close_masked(self) -> Mapping[int, messages.ServerMessage]:
        current, survivors = self._round, self.responders
        errors.require_clients(len(survivors), self.terms.minimum, "sent a masked vector")
        current.survivors = survivors
        return {
            client: messages.Survivors(
                current.number,
                survivors,
                {peer: current.sealed[client][peer] for peer in self._cohort.partners(client) & survivors},
            )
            for client in survivors
        }

    def _close_agreed(self) -> Mapping[int, messages.ServerMessage]:
        signatures, number = self._round.signatures, self._round.number
        errors.require_clients(len(signatures), self.terms.threshold, "signed the survivor list")
        return {
            client: messages.Agreement(
                number, {peer: signatures[peer] for peer in self._cohort.partners(client) if peer in signatures}
            )
            for client in signatures
        }
