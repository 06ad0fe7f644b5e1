"""The server: each message in its stage, from its members, once; and no sum that is wrong."""

from dataclasses import replace

import pytest

from discreet.secure_sums.secagg.session_client import Client
from discreet.secure_sums.secagg.session_errors import (
    BadMessage,
    NotAMember,
    OutOfTurn,
    SessionOver,
    TooFewClients,
    WrongRound,
)
from discreet.secure_sums.secagg.session_messages import Agreed, Keys, Masked, Revealed, StageName
from discreet.secure_sums.secagg.session_server import Server
from discreet.secure_sums.secagg.unmasking import unmask
from tests.secure_sums.secagg.cohorts import (
    after_masking,
    identity_keys,
    is_exact,
    read,
    rehearsal,
    sign,
    terms,
    vectors,
)


def test_the_server_takes_each_message_in_its_stage_from_its_members_once():
    agreed = terms(5)
    session = rehearsal(agreed, {4: "shares"})
    with pytest.raises(OutOfTurn, match="at 'ready'"):
        session.server.receive(session.clients[0].mask(0, vectors(agreed)[0]), 0)
    session.server.open_round(0)
    first = session.clients[0].mask(0, vectors(agreed)[0])
    session.server.receive(first, 0)
    masked = read(first, Masked, agreed)
    with pytest.raises(OutOfTurn, match="two different messages"):
        session.server.receive(sign(replace(masked, vector=bytes(len(masked.vector))), agreed), 0)
    with pytest.raises(NotAMember, match="Client 4"):
        session.server.receive(sign(replace(masked, client=4), agreed), 4)
    with pytest.raises(WrongRound):
        session.server.receive(sign(replace(masked, client=1, round=1), agreed), 1)
    with pytest.raises(BadMessage, match="one share for each of 3 clients"):
        session.server.receive(sign(replace(masked, client=1, sealed={}), agreed), 1)
    assert session.server.responders == {0}


def test_a_vector_that_comes_after_its_owner_was_given_up_is_not_taken():
    agreed = terms(5)
    session = rehearsal(agreed)
    session.server.open_round(0)
    late = session.clients[4].mask(0, vectors(agreed)[4])
    for each in range(4):
        session.server.receive(session.clients[each].mask(0, vectors(agreed)[each]), each)
    session.server.close_stage()
    with pytest.raises(OutOfTurn):
        session.server.receive(late, 4)
    session.server.open_round(1)
    with pytest.raises(WrongRound):
        session.server.receive(late, 4)


@pytest.mark.parametrize(
    ("signed", "stage", "revealed"),
    [(False, "masked", False), (False, "revealed", True), (True, "agreed", False), (True, "revealed", True)],
)
def test_a_round_that_too_few_finish_says_whether_shares_were_revealed(signed: bool, stage: StageName, revealed: bool):
    agreed = terms(10, signed=signed)
    session, given = rehearsal(agreed), vectors(agreed)
    with pytest.raises(TooFewClients, match=r"6 .* and 7 are needed") as lost:
        session.sum(0, given, leaving=dict.fromkeys(range(4), stage))
    assert lost.value.revealed == revealed


def test_a_late_share_opens_the_sum_of_a_round_that_was_given_up():
    """Six of seven shares came in time. A server that kept them needs one more, so the sum counts as released."""
    agreed, given = terms(10, signed=False), vectors(terms(10))
    session, lists = after_masking(agreed)
    answers = {each: session.clients[each].receive(message) for each, message in lists.items()}
    for each in range(6):
        session.server.receive(answers[each] or b"", each)
    kept = session.server._round
    with pytest.raises(TooFewClients) as lost:
        session.server.unmask()
    assert lost.value.revealed
    kept.revealed[6] = read(answers[6], Revealed, agreed)
    assert is_exact(unmask(session.server._cohort, kept), agreed, given)


def test_a_server_is_saved_between_rounds_and_never_opens_one_twice():
    agreed = terms(4, rounds=3)
    session = rehearsal(agreed)
    session.sum(0, vectors(agreed))
    session.server.open_round(1)
    session.server = Server.from_bytes(session.server.to_bytes())
    with pytest.raises(WrongRound, match="rounds 2 to 2 left, and got 1"):
        session.server.open_round(1)
    given = vectors(agreed)
    total = session.sum(2, given, leaving={3: "masked"})  # its mask key comes from shares that the server compares
    assert total.survivors == {0, 1, 2}
    assert is_exact(total, agreed, given)
    with pytest.raises(OutOfTurn):
        Server(agreed).to_bytes()


def test_a_call_that_is_not_due_in_a_stage_is_refused():
    server = rehearsal(terms(4)).server
    with pytest.raises(OutOfTurn, match="nothing to close: the server is at 'ready'"):
        server.close_stage()
    with pytest.raises(OutOfTurn, match="from revealed shares, and the server is at 'ready'"):
        server.unmask()
    with pytest.raises(OutOfTurn, match="when the set-up is done, and the server is at 'keys'"):
        Server(terms(4)).open_round(0)


def test_a_session_whose_set_up_had_too_few_is_over_for_good():
    server = Server(terms(4))
    with pytest.raises(TooFewClients, match="are needed"):
        server.close_stage()
    with pytest.raises(SessionOver, match="ended with too few clients"):
        server.close_stage()
    with pytest.raises(OutOfTurn, match="the server is at 'over'"):
        server.open_round(0)


def test_keys_and_lists_that_their_client_did_not_sign_are_not_taken():
    """What client 0 signed is not signed by client 1; neither is a list with a signature of zeros."""
    agreed = terms(4)
    published = read(Client(agreed, 0, identity=identity_keys(4)[0]).start(), Keys, agreed)
    with pytest.raises(BadMessage, match="claim to be client 1's are not signed by it"):
        Server(agreed).receive(sign(replace(published, client=1), agreed), 1)
    session, messages = after_masking(agreed)
    reply = read(session.clients[0].receive(messages[0]), Agreed, agreed)
    with pytest.raises(BadMessage, match="Client 0 did not sign this round's survivor list"):
        session.server.receive(sign(replace(reply, signature=bytes(len(reply.signature))), agreed), 0)
    session.server.receive(sign(reply, agreed), 0)
    assert session.server.responders == {0}
