"""The server of a session: collects each stage's messages, closes the stage, and ends with a sum.

`receive` takes one client's message; `close` ends a stage with those who came and gives the next message for each of
them. How long to wait is the caller's business: there is no network and no clock here.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeAlias

from discreet.secure_sums.secagg import key_agreement
from discreet.secure_sums.secagg.derivations import keys_statement
from discreet.secure_sums.secagg.server_state import Cohort, Round
from discreet.secure_sums.secagg.session_errors import (
    BadMessage,
    NotAMember,
    OutOfTurn,
    SessionOver,
    TooFewClients,
    WrongRound,
)
from discreet.secure_sums.secagg.session_messages import (
    Agreed,
    Agreement,
    Keys,
    Masked,
    Members,
    Message,
    Revealed,
    Roster,
    Shares,
    Survivors,
    encode,
    parse,
)
from discreet.secure_sums.secagg.session_terms import Terms
from discreet.secure_sums.secagg.unmasking import Total, unmask

Stage: TypeAlias = Literal["keys", "shares", "ready", "masked", "agreed", "revealed", "over"]
EXPECTED: dict[Stage, type[Message]] = {
    "keys": Keys,
    "shares": Shares,
    "masked": Masked,
    "agreed": Agreed,
    "revealed": Revealed,
}


class Server:
    """The server's half of the protocol; it holds public keys, sealed shares, one masked sum, and no update.

    Set-up: `close` twice, for keys and shares. A round: `open`, `close` after the masked vectors and, in a signed
    session, after the signatures; then `unmask`. A message that is refused leaves everything as it was, and a round
    that fails leaves the session fit for the next round.
    """

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.stage: Stage = "keys"
        self._published: dict[int, bytes] = {}
        self._cohort = Cohort(terms, self._published)
        self._sealed: dict[int, dict[int, bytes]] = {}  # of the set-up: by receiver, then by sender
        self._heard: dict[int, bytes] = {}  # the digest of each client's message in this stage
        self._next = 0
        self._round = Round.none()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Server":
        """The server that `to_bytes` saved. A round that was open then is lost; the next one is not."""
        cohort, number = Cohort.from_bytes(data)
        server = cls(cohort.terms)
        server._cohort, server._next, server.stage = cohort, number, "ready"
        return server

    def to_bytes(self) -> bytes:
        """The session without the round that is open, which after a restart can't be finished."""
        if self.stage in ("keys", "shares", "over"):
            raise OutOfTurn(f"A server is saved once its set-up is done, and this one is at {self.stage!r}.")
        return self._cohort.to_bytes(self._next)

    @property
    def members(self) -> frozenset[int]:
        return self._cohort.members

    @property
    def heard(self) -> frozenset[int]:
        """Who has answered in this stage."""
        return frozenset(self._heard)

    def receive(self, message: bytes) -> int:
        """Take a client's message, and say whose it was. The same bytes again are taken as the same message."""
        parsed = parse(message, self.terms)
        kind = EXPECTED.get(self.stage)
        if kind is None or not isinstance(parsed, kind):
            raise OutOfTurn(f"{type(parsed).__name__} is not expected here: the server is at {self.stage!r}.")
        assert isinstance(parsed, Keys | Shares | Masked | Agreed | Revealed)
        if isinstance(parsed, Masked | Agreed | Revealed) and parsed.round != self._round.number:
            raise WrongRound(f"The message is of round {parsed.round}, and round {self._round.number} is open.")
        mark = key_agreement.digest(message)
        if self._heard.get(parsed.client) == mark:
            return parsed.client
        if parsed.client in self._heard:
            raise OutOfTurn(f"Client {parsed.client} sent two different messages in one stage; the first one counts.")
        self._take(parsed)
        self._heard[parsed.client] = mark
        return parsed.client

    def close(self) -> dict[int, bytes]:
        """End this stage with those who came; the next message for each of them."""
        steps: dict[Stage, Callable[[], tuple[dict[int, Message], Stage]]] = {
            "keys": self._close_keys,
            "shares": self._close_shares,
            "masked": self._close_masked,
            "agreed": self._close_agreed,
        }
        if self.stage == "over":
            raise SessionOver("This session ended with too few clients.", fix="Begin a new session.")
        if self.stage not in steps:
            raise OutOfTurn(f"There is nothing to close: the server is at {self.stage!r}.")
        try:
            messages, self.stage = steps[self.stage]()
        except TooFewClients:
            self.stage = "over" if self.stage in ("keys", "shares") else "ready"
            raise
        self._heard = {}
        return {client: encode(message, self.terms) for client, message in messages.items()}

    def open(self, number: int) -> None:
        """Begin a round. One that is still open is given up: no more of its messages are taken."""
        if self.stage in ("keys", "shares", "over"):
            raise OutOfTurn(f"A round is opened when the set-up is done, and the server is at {self.stage!r}.")
        if not self._next <= number < self.terms.rounds:
            raise WrongRound(
                f"This session has the rounds {self._next} to {self.terms.rounds - 1} left, and got {number}."
            )
        self._round, self._next, self._heard = Round(number, self.terms.ring.zeros()), number + 1, {}
        self.stage = "masked"

    def unmask(self) -> Total:
        """End the round with the shares that came: the sum over the survivors."""
        if self.stage != "revealed":
            raise OutOfTurn(f"A sum is unmasked from revealed shares, and the server is at {self.stage!r}.")
        self.stage = "ready"
        current, self._round = self._round, Round.none()
        return unmask(self._cohort, current)

    def _take(self, message: Keys | Shares | Masked | Agreed | Revealed) -> None:
        client, cohort = message.client, self._cohort
        if self.stage != "keys":
            self._check_sender(client)
        match message:
            case Keys():
                self._check_keys(message)
                self._published[client] = message.published
            case Shares():
                _same(set(message.sealed), set(cohort.neighbours[client]))
                for receiver, each in message.sealed.items():
                    self._sealed.setdefault(receiver, {})[client] = each
            case Masked():
                _same(set(message.sealed), set(cohort.partners(client)))
                self._round.add(message, self.terms.ring.unpack(message.vector))
            case Agreed():
                said = cohort.statement(message.round, self._round.survivors)
                if not self.terms.has_signatures or not key_agreement.is_signature_valid(
                    self.terms.identities[client], said, message.signature
                ):
                    raise BadMessage(f"Client {client} did not sign this round's survivor list.")
                self._round.signatures[client] = message.signature
            case Revealed():
                around = cohort.around(client)
                _same(set(message.self_masks), set(around & self._round.survivors))
                _same(set(message.mask_keys), set(around - self._round.survivors))
                self._round.revealed[client] = message

    def _check_sender(self, client: int) -> None:
        """Each stage takes those who were in the one before."""
        current = self._round
        allowed = {
            "shares": self._cohort.published.keys(),
            "masked": self._cohort.members,
            "agreed": current.survivors,
            "revealed": current.signatures.keys() if self.terms.has_signatures else current.survivors,
        }
        if client not in allowed.get(self.stage, ()):
            raise NotAMember(f"Client {client} was not in the stage before this one, so it can't be in this one.")

    def _check_keys(self, message: Keys) -> None:
        if self.terms.has_signatures:
            public, signature = (
                message.published[: -key_agreement.SIGNATURE_BYTES],
                message.published[-key_agreement.SIGNATURE_BYTES :],
            )
            said = keys_statement(self.terms, message.client, public)
            if not key_agreement.is_signature_valid(self.terms.identities[message.client], said, signature):
                raise BadMessage(f"The keys that are said to be of client {message.client} are not signed by it.")

    def _close_keys(self) -> tuple[dict[int, Message], Stage]:
        self._require(len(self._published), "sent their keys")
        self._cohort = cohort = Cohort(self.terms, self._published)
        return {
            client: Roster(cohort.digests, {each: cohort.published[each] for each in cohort.neighbours[client]})
            for client in cohort.published
        }, "shares"

    def _close_shares(self) -> tuple[dict[int, Message], Stage]:
        members = self.heard
        self._require(len(members), "shared their keys")
        self._cohort = replace(self._cohort, members=members)
        messages: dict[int, Message] = {}
        for client in members:
            sealed = {each: self._sealed[client][each] for each in self._cohort.partners(client)}
            messages[client] = Members(members, sealed)
        self._sealed = {}
        return messages, "ready"

    def _close_masked(self) -> tuple[dict[int, Message], Stage]:
        current, survivors = self._round, self.heard
        self._require(len(survivors), "sent a masked vector")
        current.survivors = survivors
        messages: dict[int, Message] = {
            client: Survivors(
                current.number,
                survivors,
                {each: current.sealed[client][each] for each in self._cohort.partners(client) & survivors},
            )
            for client in survivors
        }
        return messages, "agreed" if self.terms.has_signatures else "revealed"

    def _close_agreed(self) -> tuple[dict[int, Message], Stage]:
        signatures, number = self._round.signatures, self._round.number
        self._require(len(signatures), "signed the survivor list", self.terms.threshold)
        messages: dict[int, Message] = {
            client: Agreement(
                number, {each: signatures[each] for each in self._cohort.partners(client) if each in signatures}
            )
            for client in signatures
        }
        return messages, "revealed"

    def _require(self, found: int, what: str, needed: int | None = None) -> None:
        """Each client checks its neighbourhood itself; the server, that there are enough in all."""
        needed = needed or self.terms.minimum
        if found < needed:
            raise TooFewClients(
                f"{found} clients {what}, and {needed} are needed.",
                fix="Wait for more clients, or begin a session with a lower threshold.",
            )


def _same(found: set[int], expected: set[int]) -> None:
    if found != expected:
        raise BadMessage(
            f"A message must hold one share for each of {len(expected)} clients, and is about {len(found)} or others."
        )
