"""One client of a session: messages in, messages out, and what it refuses.

`start` → `receive` (roster) → `receive` (members), once a session; then, each round, `mask` → `receive` until it has
revealed its shares. No step touches a network or a clock.
"""

from discreet.errors import InvalidInput
from discreet.secure_sums.secagg import client_round, client_setup, key_agreement
from discreet.secure_sums.secagg.client_state import ClientState
from discreet.secure_sums.secagg.ring_vectors import Vector
from discreet.secure_sums.secagg.session_errors import (
    Abort,
    BothShares,
    OutOfTurn,
    SessionOver,
    TooFewClients,
    WrongRound,
)
from discreet.secure_sums.secagg.session_messages import Agreement, Members, Message, Roster, Survivors, encode, parse
from discreet.secure_sums.secagg.session_terms import Terms

IN_A_ROUND = ("masked", "agreed", "revealed")


class Client:
    """A client's half of the protocol (Bonawitz et al., 2017; Bell et al., 2020).

    Guarantee: for each peer and round it reveals a share of the self-mask or of the mask key, never both. It masks one
    vector a round, under keys that serve this round alone. In a signed session (`terms.has_signatures`) it reveals
    nothing before `threshold` of its neighbourhood, itself included, have signed the survivor list that it was shown.
    What a session without signatures leaves open is said by `Terms`.

    Save `to_bytes()` before each answer is sent. A client that is restored answers the same message with the same
    bytes, and never masks twice in one round.
    """

    def __init__(self, terms: Terms, client: int, *, identity: bytes | None = None) -> None:
        if not 0 <= client < terms.clients:
            raise InvalidInput(f"A client's number must be between 0 and {terms.clients - 1}, and got {client}.")
        _check_identity(identity, terms, client)
        self._identity = identity
        self._state = ClientState(terms, client)

    @classmethod
    def from_bytes(cls, data: bytes, *, identity: bytes | None = None) -> "Client":
        """The client that `to_bytes` saved; its identity key is given anew."""
        state = ClientState.from_bytes(data)
        restored = cls(state.terms, state.client, identity=identity)
        restored._state = state
        return restored

    def to_bytes(self) -> bytes:
        """All that the client remembers. It is secret: keep it as you keep the data."""
        return self._state.to_bytes()

    @property
    def terms(self) -> Terms:
        return self._state.terms

    @property
    def over(self) -> bool:
        """Whether the session ended for this client before its time."""
        return self._state.stage == "over"

    @property
    def survivors(self) -> frozenset[int]:
        """Whose vectors are in this round's sum, once this client has accepted the list; else nobody."""
        return self._state.survivors

    def start(self) -> bytes:
        """The first message: fresh public keys."""
        state = self._open()
        if state.stage == "new":
            state.said = encode(client_setup.publish(state, self._identity), state.terms)
        elif state.stage != "advertised":
            raise OutOfTurn(f"A session starts once, and this client is at {state.stage!r}.")
        return state.said

    def mask(self, number: int, vector: Vector) -> bytes:
        """This round's message: the vector under its masks. Asked again, the same bytes, whatever the vector."""
        if (said := self.masked(number)) is not None:
            return said
        self.check_turn(number)
        state = self._open()
        total = state.terms.ring.enter(vector)
        state.next_round(number)
        state.said = encode(client_round.mask(state, total), state.terms)
        return state.said

    def masked(self, number: int) -> bytes | None:
        """This round's message, if it is the last that was said."""
        state = self._open()
        return state.said if state.stage == "masked" and number == state.round else None

    def check_turn(self, number: int) -> None:
        """Refuse what `mask` would refuse whatever the vector, for those who pay before they make one."""
        state = self._open()
        if state.stage not in ("ready", *IN_A_ROUND):
            raise OutOfTurn(f"A vector is masked when the set-up is done, and this client is at {state.stage!r}.")
        least = state.round + (state.stage in IN_A_ROUND)
        if not least <= number < state.terms.rounds:
            raise WrongRound(
                f"This session has the rounds {least} to {state.terms.rounds - 1} left, and got {number}: "
                "a round's keys serve once.",
                fix="Go on with a later round, or begin a new session.",
            )

    def receive(self, message: bytes) -> bytes | None:
        """The answer to a message of the server, if it needs one; or an error that says why there is none."""
        state = self._open()
        parsed, heard = parse(message, state.terms), key_agreement.digest(message)
        if heard == state.heard:
            return state.said or None
        try:
            said = self._answer(state, parsed)
        except Abort:
            self._state = state.erased()
            raise
        except TooFewClients:
            if state.stage in IN_A_ROUND:
                state.next_round(state.round + 1)
            else:
                self._state = state.erased()
            raise
        state.heard, state.said = heard, said
        return said or None

    def _answer(self, state: ClientState, message: Message) -> bytes:
        if isinstance(message, Survivors | Agreement) and (message.round != state.round or state.stage == "ready"):
            raise WrongRound(f"The message is of round {message.round}, and this client is not in that round.")
        match message, state.stage:
            case Roster(), "advertised":
                return encode(client_setup.on_roster(state, message), state.terms)
            case Members(), "shared":
                client_setup.on_members(state, message)
                return b""
            case Survivors(), "masked":
                return encode(client_round.on_survivors(state, message, self._identity), state.terms)
            case Agreement(), "agreed":
                return encode(client_round.on_agreement(state, message), state.terms)
            case Survivors(), "agreed" | "revealed" if message.survivors != state.survivors:
                disputed = ", ".join(map(str, sorted(message.survivors ^ state.survivors)))
                raise BothShares(
                    f"The server sent a second survivor list for round {state.round}; to answer it as well would "
                    f"reveal both shares of the clients on which the lists differ: {disputed}.",
                    fix="Do not go on with this server before it is clear why.",
                )
        raise OutOfTurn(f"{type(message).__name__} is not expected here: this client is at {state.stage!r}.")

    def _open(self) -> ClientState:
        if self.over:
            raise SessionOver("This session was aborted, and its secrets are erased.", fix="Begin a new session.")
        return self._state


def _check_identity(identity: bytes | None, terms: Terms, client: int) -> None:
    if (identity is not None) != terms.has_signatures:
        raise InvalidInput(
            f"The terms {'name' if terms.has_signatures else 'do not name'} the clients' identities, so an identity "
            f"key must {'' if terms.has_signatures else 'not '}be given."
        )
    if identity is not None and key_agreement.identity_key(identity) != terms.identities[client]:
        raise InvalidInput(f"The identity key is not the one that the terms name for client {client}.")
