"""One client of a secure session: messages in, messages out, and the requests that it refuses.

The set-up is `start`, then `receive` for the roster and for the members. A round is `mask`, then `receive` until the
client has revealed its shares. Nothing here uses a network or a clock.
"""

from discreet.errors import InvalidInput
from discreet.secure_sums.secagg import client_round, client_setup, key_agreement
from discreet.secure_sums.secagg import session_errors as errors
from discreet.secure_sums.secagg import session_messages as messages
from discreet.secure_sums.secagg.client_state import ClientState
from discreet.secure_sums.secagg.derivations import NO_SUBJECT, check_subject
from discreet.secure_sums.secagg.message_codec import encode, parse
from discreet.secure_sums.secagg.message_signatures import sign_message
from discreet.secure_sums.secagg.ring_vectors import Vector
from discreet.secure_sums.secagg.session_terms import Terms

STAGES = (*messages.SETUP, *messages.ROUND)
AWAITED = {stage.client_stage: stage.closed_by for stage in STAGES if stage.closed_by is not None}
AFTER_REPLY = {stage.reply: stage.client_stage for stage in STAGES}
IN_A_ROUND = tuple(stage.client_stage for stage in messages.ROUND)
ANSWERS = {**client_setup.ANSWERS, **client_round.ANSWERS}


class Client:
    """A client's half of the protocol (Bonawitz et al., 2017; Bell et al., 2020).

    Guarantee: for each peer and round the client reveals a share of the self-mask or of the mask key, never both. It
    masks one vector in each round, under keys that serve this round alone. In a signed session
    (`terms.has_signatures`) it reveals nothing before `threshold` clients of its neighbourhood, itself included, have
    signed the survivor list that it received and the digest of what its vector answers. `Terms` says what a session
    without signatures leaves open.

    Save `to_bytes()` before each reply is sent. A restored client answers the same message with the same bytes, and
    never masks twice in one round.
    """

    def __init__(self, terms: Terms, client: int, *, identity: bytes | None = None) -> None:
        if not 0 <= client < terms.clients:
            raise InvalidInput(f"A client's number must be between 0 and {terms.clients - 1}, and got {client}.")
        _check_identity(identity, terms, client)
        self._identity = identity
        self._state = ClientState(terms, client)

    @classmethod
    def from_bytes(cls, data: bytes, *, identity: bytes | None = None) -> "Client":
        """Restore the client that `to_bytes` saved. Its identity key is not saved, so pass it again."""
        state = ClientState.from_bytes(data)
        restored = cls(state.terms, state.client, identity=identity)
        restored._state = state
        return restored

    def to_bytes(self) -> bytes:
        """Return everything the client remembers. It is secret: protect it like the data."""
        return self._state.to_bytes()

    @property
    def terms(self) -> Terms:
        """The terms of the session."""
        return self._state.terms

    @property
    def is_over(self) -> bool:
        """Whether this client left the session early and erased its secrets."""
        return self._state.stage == "over"

    @property
    def is_set_up(self) -> bool:
        """Whether this client has accepted the members of the session."""
        return bool(self._state.members)

    @property
    def survivors(self) -> frozenset[int]:
        """The clients whose vectors are in this round's sum. Empty until this client has accepted the list."""
        return self._state.survivors

    @property
    def complaints(self) -> dict[int, str]:
        """The clients that dealt shares which this one can't use in the last message that it opened, and why."""
        return self._state.complaints

    def start(self) -> bytes:
        """Return the first message, which holds fresh public keys."""
        state = self._open_state()
        if state.stage == "new":
            state.last_reply = self._send(state, client_setup.publish(state, self._identity))
        elif state.stage != "advertised":
            raise errors.OutOfTurn(f"A session starts once, and this client is at {state.stage!r}.")
        return state.last_reply

    def mask(self, number: int, vector: Vector, subject: bytes = NO_SUBJECT) -> bytes:
        """Return round `number`'s message: the vector under its masks.

        Called again in the same round, it returns the same bytes, whatever the vector.

        Args:
            number: The round of the session.
            vector: What is summed.
            subject: A digest of what the vector answers. Only vectors with the same subject can be summed.
        """
        check_subject(subject)
        if (sent := self.masked_message(number)) is not None:
            return sent
        self.check_turn(number)
        state = self._open_state()
        total = state.terms.ring.to_ring(vector)
        state.next_round(number)
        state.subject = subject
        state.last_reply = self._send(state, client_round.mask(state, total))
        return state.last_reply

    def masked_message(self, number: int) -> bytes | None:
        """Return round `number`'s masked vector if it is the last message this client sent, else None."""
        state = self._open_state()
        return state.last_reply if state.stage == "masked" and number == state.round else None

    def check_turn(self, number: int) -> None:
        """Raise what `mask` would raise for any vector. Call it before paying for the vector."""
        state = self._open_state()
        if state.stage not in ("ready", *IN_A_ROUND):
            raise errors.OutOfTurn(
                f"A vector is masked when the set-up is done, and this client is at {state.stage!r}."
            )
        least = state.round + (state.stage in IN_A_ROUND)
        if not least <= number < state.terms.rounds:
            raise errors.WrongRound(
                f"This session has the rounds {least} to {state.terms.rounds - 1} left, and got {number}: "
                "a round's keys serve once.",
                fix="Go on with a later round, or begin a new session.",
            )

    def receive(self, message: bytes) -> bytes | None:
        """Return the reply to a message of the server, or None if it needs none.

        The same message again gets the same reply.

        Raises:
            Abort: The server broke the protocol. The session is over for this client, and its secrets are erased.
            TooFewClients: Too few are left. In a round, only the round is given up; in the set-up, the session.
            OutOfTurn: The message belongs to another stage or round. Nothing changes.
        """
        state = self._open_state()
        parsed, digest = parse(message, state.terms), key_agreement.digest(message)
        if digest == state.last_digest:
            return state.last_reply or None
        try:
            reply = self._answer(state, parsed)
        except errors.Abort:
            self._state = state.erase()
            raise
        except errors.TooFewClients:
            if state.stage in IN_A_ROUND:
                state.next_round(state.round + 1)
            else:
                self._state = state.erase()
            raise
        state.last_digest, state.last_reply = digest, reply
        return reply or None

    def _answer(self, state: ClientState, message: messages.Message) -> bytes:
        number = messages.round_number(message)
        if number is not None and (number != state.round or state.stage == "ready"):
            raise errors.WrongRound(f"The message is of round {number}, and this client is not in that round.")
        awaited = AWAITED.get(state.stage)
        if awaited is None or not isinstance(message, awaited):
            self._refuse_second_list(state, message)
            raise errors.OutOfTurn(f"{type(message).__name__} is not expected here: this client is at {state.stage!r}.")
        reply = ANSWERS[awaited](state, message, self._identity)
        if reply is None:
            assert awaited is messages.SETUP[-1].closed_by  # every other message of a server is answered
            state.stage = "ready"
            return b""
        return self._send(state, reply)

    def _send(self, state: ClientState, reply: messages.ClientMessage) -> bytes:
        state.stage = AFTER_REPLY[type(reply)]
        return sign_message(encode(reply, state.terms), state.terms, self._identity)

    def _refuse_second_list(self, state: ClientState, message: messages.Message) -> None:
        """Abort on a second survivor list after the first one was signed or answered."""
        if (
            isinstance(message, messages.Survivors)
            and state.stage in IN_A_ROUND
            and message.survivors != state.survivors
        ):
            disputed = ", ".join(map(str, sorted(message.survivors ^ state.survivors)))
            raise errors.BothShares(
                f"The server sent a second survivor list for round {state.round}; to answer it as well would "
                f"reveal both shares of the clients on which the lists differ: {disputed}.",
                fix="Do not go on with this server before it is clear why.",
            )

    def _open_state(self) -> ClientState:
        if self.is_over:
            raise errors.SessionOver(
                "This session was aborted, and its secrets are erased.", fix="Begin a new session."
            )
        return self._state


def _check_identity(identity: bytes | None, terms: Terms, client: int) -> None:
    if (identity is not None) != terms.has_signatures:
        raise InvalidInput(
            f"The terms {'name' if terms.has_signatures else 'do not name'} the clients' identities, so an identity "
            f"key must {'' if terms.has_signatures else 'not '}be given."
        )
    if identity is not None and key_agreement.identity_key(identity) != terms.identities[client]:
        raise InvalidInput(f"The identity key is not the one that the terms name for client {client}.")
