"""A client that lies in a session: what each lie achieves, and who is named for it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from discreet.secure_sums.secagg.session_errors import SecaggError, WrongSender
from discreet.secure_sums.secagg.session_messages import (
    Agreed,
    ClientMessage,
    Keys,
    Masked,
    Revealed,
    Shares,
)
from discreet.secure_sums.secagg.session_server import Server
from discreet.secure_sums.secagg.session_terms import Terms
from discreet.secure_sums.secagg.unmasking import Total
from tests.secure_sums.secagg.cohorts import is_exact, read, rehearsal, sign, terms, vectors

LIAR, VICTIM = 0, 1
KINDS: tuple[type[ClientMessage], ...] = (Keys, Shares, Masked, Agreed, Revealed)
Lie = Callable[[bytes, Terms], bytes]


class LyingClient:
    """Changes what client 0 sends in a session, and keeps what the server says to it."""

    def __init__(self, kind: type[ClientMessage], lie: Lie) -> None:
        self.kind, self.lie, self.refusals = kind, lie, list[SecaggError]()

    def sum(self, agreed: Terms, monkeypatch: pytest.MonkeyPatch) -> Total:
        """Run one sum in which every message of the liar of this kind is replaced."""
        receive = Server.receive

        def receive_lie(server: Server, message: bytes, sender: int) -> None:
            is_lie = sender == LIAR and type(parse_any(message, agreed)) is self.kind
            try:
                receive(server, self.lie(message, agreed) if is_lie else message, sender)
            except SecaggError as refusal:
                if not is_lie:
                    raise
                self.refusals.append(refusal)

        monkeypatch.setattr(Server, "receive", receive_lie)
        return rehearsal(agreed).sum(0, vectors(agreed))


def parse_any(message: bytes, agreed: Terms) -> ClientMessage:
    for kind in KINDS:
        try:
            return read(message, kind, agreed)
        except AssertionError:
            continue
    raise AssertionError(message)


def name_another(message: bytes, agreed: Terms) -> bytes:
    """Write the victim's number into the message, and sign it with the liar's own key."""
    honest = replace(parse_any(message, agreed), client=VICTIM)
    if isinstance(honest, Shares | Masked):
        honest = replace(honest, sealed={LIAR if peer == VICTIM else peer: row for peer, row in honest.sealed.items()})
    return sign(honest, agreed, signer=LIAR)


def leave_unsigned(message: bytes, agreed: Terms) -> bytes:
    return message[:-64] + bytes(64)


@pytest.mark.parametrize(
    ("kind", "signed"),
    [(kind, signed) for signed in (True, False) for kind in KINDS if signed or kind is not Agreed],
)
def test_a_client_that_answers_in_anothers_name_is_named_and_the_other_is_heard(
    kind: type[ClientMessage], signed: bool, monkeypatch: pytest.MonkeyPatch
):
    """Its message comes before the victim's own. The liar is as one that dropped out, and the sum is exact."""
    agreed = terms(5, signed=signed)
    lying = LyingClient(kind, name_another)
    total = lying.sum(agreed, monkeypatch)
    (refusal,) = lying.refusals
    assert isinstance(refusal, WrongSender)
    assert refusal.problem == "Client 0 sent a message in the name of client 1."
    assert VICTIM in total.survivors
    assert is_exact(total, agreed, vectors(agreed))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_message_that_its_client_did_not_sign_is_not_taken(
    kind: type[ClientMessage], monkeypatch: pytest.MonkeyPatch
):
    agreed = terms(5)
    lying = LyingClient(kind, leave_unsigned)
    assert is_exact(lying.sum(agreed, monkeypatch), agreed, vectors(agreed))
    (refusal,) = lying.refusals
    assert isinstance(refusal, WrongSender)
    assert refusal.problem == "Client 0 sent a message that it did not sign."


def test_a_message_that_was_signed_for_another_stage_round_or_session_is_not_taken():
    """The signature covers kind, client, round and terms: it can't be moved under another content."""
    agreed = terms(4, rounds=2)
    session, given = rehearsal(agreed), vectors(agreed)
    session.server.open_round(0)
    first = session.clients[0].mask(0, given[0])
    moved = replace(read(first, Masked, agreed), round=1)
    session.server.open_round(1)
    with pytest.raises(WrongSender, match="did not sign"):
        session.server.receive(sign(moved, agreed)[:-64] + first[-64:], 0)
