"""A client whose server breaks the rules raises a named error, ends the session, and reveals nothing."""

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from discreet.errors import InvalidInput
from discreet.secure_sums.secagg import key_agreement
from discreet.secure_sums.secagg.degree import Assumptions
from discreet.secure_sums.secagg.message_codec import encode
from discreet.secure_sums.secagg.session_client import Client
from discreet.secure_sums.secagg.session_errors import (
    BadMessage,
    BadShares,
    BadSignature,
    BothShares,
    ListsDiffer,
    OutOfTurn,
    SessionOver,
    TooFewClients,
    WrongKeys,
    WrongList,
    WrongRound,
)
from discreet.secure_sums.secagg.session_messages import Agreed, Agreement, Keys, Members, Revealed, Roster, Survivors
from discreet.secure_sums.secagg.session_server import Server
from discreet.secure_sums.secagg.session_terms import Terms
from tests.secure_sums.secagg.cohorts import (
    after_masking,
    identity_keys,
    read,
    rehearsal,
    sign_keys,
    terms,
    vectors,
    with_weak_key,
)


def is_over(client: Client) -> bool:
    """Whether the session has no secrets and gives no answers."""
    with pytest.raises(SessionOver):
        client.mask(0, np.zeros(client.terms.length, int))
    with pytest.raises(SessionOver):
        client.receive(b"")
    assert len(client.to_bytes()) < 600
    return client.is_over


# The list of survivors.


def test_different_lists_for_different_clients_get_nothing():
    """The server tells 0 and 1 that client 4 survived, and 2 and 3 that it did not: nobody reveals a share."""
    agreed = terms(5)
    session, messages = after_masking(agreed)
    without = session.server._round.survivors - {4}
    told = {}
    for client, message in messages.items():
        shown = read(message, Survivors, agreed)
        if client in (2, 3):
            shown = replace(shown, survivors=without, sealed={k: v for k, v in shown.sealed.items() if k != 4})
        told[client] = read(session.clients[client].receive(encode(shown, agreed)), Agreed, agreed).signature
    for client in (0, 1, 2, 3):
        others = {each: told[each] for each in range(4) if each != client}
        with pytest.raises(ListsDiffer, match=r"did not sign the survivor list that this client was shown for round 0"):
            session.clients[client].receive(encode(Agreement(0, others), agreed))
        assert is_over(session.clients[client])


def test_signatures_of_too_few_reveal_nothing():
    """Those who were shown the same list are fewer than the threshold."""
    agreed = terms(5)
    session, messages = after_masking(agreed)
    signed = {each: read(session.clients[each].receive(messages[each]), Agreed, agreed).signature for each in range(3)}
    with pytest.raises(
        TooFewClients, match="3 clients of this neighbourhood signed the survivor list, and 4 are needed"
    ):
        session.clients[0].receive(encode(Agreement(0, {each: signed[each] for each in (1, 2)}), agreed))
    with pytest.raises(WrongRound):  # it ended the round, so even the right signatures come too late
        session.clients[0].receive(encode(Agreement(0, {each: signed[each] for each in (1, 2)}), agreed))
    assert not session.clients[0].is_over


def test_a_signature_of_another_round_or_of_a_stranger_is_refused():
    agreed = terms(4)
    session, messages = after_masking(agreed)
    old = {each: read(session.clients[each].receive(messages[each]), Agreed, agreed).signature for each in range(4)}
    _, messages = after_masking(agreed, number=1, session=session)
    for each in range(2):
        session.clients[each].receive(messages[each])
    with pytest.raises(ListsDiffer):
        session.clients[0].receive(encode(Agreement(1, {each: old[each] for each in (1, 2, 3)}), agreed))
    shown = read(messages[2], Survivors, agreed)
    less = replace(shown, survivors=frozenset({0, 1, 2}), sealed={each: shown.sealed[each] for each in (0, 1)})
    session.clients[2].receive(encode(less, agreed))
    with pytest.raises(WrongList, match="not of a neighbour that is in the survivor list"):
        session.clients[2].receive(encode(Agreement(1, {3: old[3]}), agreed))


@pytest.mark.parametrize("signed", [False, True])
def test_a_server_that_asks_for_both_shares_of_a_peer_gets_one_at_most(signed: bool):
    agreed = terms(5, signed=signed)
    session, messages = after_masking(agreed)
    client, shown = session.clients[0], read(messages[0], Survivors, agreed)
    client.receive(messages[0])
    less = replace(shown, survivors=shown.survivors - {4}, sealed={k: v for k, v in shown.sealed.items() if k != 4})
    with pytest.raises(BothShares, match=r"both shares of the clients on which the lists differ: 4\."):
        client.receive(encode(less, agreed))
    assert is_over(client)


@pytest.mark.parametrize("signed", [False, True])
def test_what_a_client_reveals_is_one_share_for_each_peer(signed: bool):
    agreed = terms(5, signed=signed)
    session = rehearsal(agreed)
    revealed: list[Revealed] = []
    taken = session.server._take

    def watch(message: Any) -> None:
        if isinstance(message, Revealed):
            revealed.append(message)
        taken(message)

    session.server._take = watch  # type: ignore[method-assign]
    session.sum(0, vectors(agreed), leaving={2: "masked"})
    assert [each.client for each in revealed] == [0, 1, 3, 4]
    for each in revealed:
        assert set(each.self_masks) == {0, 1, 3, 4} - {each.client}  # its own seed is there in full
        assert set(each.mask_keys) == {2}


@pytest.mark.parametrize("survivors", [{1, 2, 3}, {0, 1, 2, 3, 4}], ids=["without oneself", "with a stranger"])
def test_a_survivor_list_that_can_not_be_is_refused(survivors: set[int]):
    agreed = terms(5)
    session = rehearsal(agreed, {4: "shares"})
    session.server.open_round(0)
    for each in range(4):
        session.server.receive(session.clients[each].mask(0, vectors(agreed)[each]), each)
    shown = read(session.server.close_stage()[0], Survivors, agreed)
    with pytest.raises(WrongList, match="lacks this client, which answered, or names one that is not a member"):
        session.clients[0].receive(encode(replace(shown, survivors=frozenset(survivors)), agreed))
    assert is_over(session.clients[0])


def test_a_survivor_list_below_the_threshold_reveals_nothing_and_ends_the_round_alone():
    agreed = terms(6, signed=False)
    session, messages = after_masking(agreed)
    shown = read(messages[0], Survivors, agreed)
    few = replace(shown, survivors=frozenset({0, 1, 2}), sealed={each: shown.sealed[each] for each in (1, 2)})
    with pytest.raises(TooFewClients, match="3 clients are left in this round, and 4 are needed"):
        session.clients[0].receive(encode(few, agreed))
    assert not session.clients[0].survivors
    with pytest.raises(WrongRound):
        session.clients[0].receive(messages[0])
    session.clients[0].mask(1, vectors(agreed)[0])


# Keys.


def roster_for(agreed: Terms, client: int = 0) -> tuple[Client, Roster]:
    server = Server(agreed)
    clients = [
        Client(agreed, each, identity=key if agreed.has_signatures else None)
        for each, key in enumerate(identity_keys(agreed.clients))
    ]
    for number, each in enumerate(clients):
        server.receive(each.start(), number)
    return clients[client], read(server.close_stage()[client], Roster, agreed)


def with_keys(roster: Roster, client: int, published: bytes) -> Roster:
    """Return the list in which the server has replaced a client's keys."""
    return Roster(
        {**roster.digests, client: key_agreement.digest(published)},
        {each: published if each == client else given for each, given in roster.published.items()},
    )


def test_keys_that_the_server_made_up_are_refused_in_a_signed_session():
    agreed = terms(4)
    client, roster = roster_for(agreed)
    forged = Client(agreed, 2, identity=identity_keys(4)[2])
    forged._identity = key_agreement.random_bytes(32)  # the server has no identity key of client 2
    own = read(forged.start(), Keys, agreed).published
    with pytest.raises(BadSignature, match="client 2 are not signed by it"):
        client.receive(encode(with_keys(roster, 2, own), agreed))
    assert is_over(client)


def test_keys_that_are_signed_for_another_client_are_refused():
    agreed = terms(4)
    client, roster = roster_for(agreed)
    moved = Roster(
        {**roster.digests, 1: roster.digests[2], 2: roster.digests[1]},
        {**roster.published, 1: roster.published[2], 2: roster.published[1]},
    )
    with pytest.raises(BadSignature, match="client 1"):
        client.receive(encode(moved, agreed))


def test_a_list_of_keys_that_no_honest_server_sends_is_refused():
    agreed = terms(5, signed=False)
    own = key_agreement.digest(b"other")
    for change, said in {
        "shows other keys for this client": lambda roster: replace(roster, digests={**roster.digests, 0: own}),
        "have the same keys": lambda roster: replace(roster, digests={**roster.digests, 1: roster.digests[2]}),
        "other clients than this one's neighbours": lambda roster: replace(
            roster, published={each: roster.published[each] for each in (1, 2, 3)}
        ),
        "not those in the list": lambda roster: replace(roster, published={**roster.published, 1: bytes(96)}),
        "small order": lambda roster: with_keys(roster, 1, bytes(96)),
    }.items():
        client, roster = roster_for(agreed)
        with pytest.raises(WrongKeys, match=change):
            client.receive(encode(said(roster), agreed))
        assert client.is_over


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_key_of_small_order_is_refused_with_the_list_of_keys_and_not_when_a_vector_was_paid_for(place: int):
    """A server that sides with client 1 passes its keys on. Any of them is found at once, not in its round."""
    agreed = terms(4)
    client, roster = roster_for(agreed)
    weak = sign_keys(agreed, 1, with_weak_key(roster.published[1][:96], place))
    with pytest.raises(WrongKeys, match="A public key of client 1 has small order") as refused:
        client.receive(encode(with_keys(roster, 1, weak), agreed))
    assert refused.value.client == 1
    assert is_over(client)


def test_a_client_chooses_its_neighbours_by_the_graph_and_not_by_the_servers_word():
    agreed = terms(12, signed=False, neighbours=4)
    client, roster = roster_for(agreed)
    stranger = next(each for each in roster.digests if each not in roster.published and each != 0)
    known = dict(list(roster.published.items())[:3])
    with pytest.raises(WrongKeys, match="neighbours"):
        client.receive(encode(Roster(roster.digests, {**known, stranger: roster.published[min(known)]}), agreed))


def test_too_few_keys_end_the_session():
    agreed = terms(5)
    client, roster = roster_for(agreed)
    few = Roster({each: roster.digests[each] for each in range(3)}, {each: roster.published[each] for each in (1, 2)})
    with pytest.raises(TooFewClients, match="3 clients sent their keys, and 4 are needed"):
        client.receive(encode(few, agreed))
    assert is_over(client)


# Shares.


def test_shares_that_were_mixed_up_or_sent_again_are_refused():
    """Each seal is for one sender, receiver, purpose, round and list of keys."""
    agreed = terms(4)
    session, messages = after_masking(agreed)
    first = read(messages[0], Survivors, agreed)
    swapped = replace(first, sealed={1: first.sealed[2], 2: first.sealed[1], 3: first.sealed[3]})
    with pytest.raises(BadShares, match=r"Client 1 dealt .* Client 2 dealt .* not sealed for this client, round and"):
        session.clients[0].receive(encode(swapped, agreed))
    assert is_over(session.clients[0])


def test_shares_of_an_earlier_round_are_refused():
    agreed = terms(4)
    session, messages = after_masking(agreed)
    old = read(messages[0], Survivors, agreed)
    _, messages = after_masking(agreed, number=1, session=session)
    with pytest.raises(BadShares):
        session.clients[0].receive(encode(replace(old, round=1), agreed))


def test_members_without_oneself_or_with_a_stranger_are_refused():
    agreed = terms(5)
    for members in ({1, 2, 3, 4}, {0, 1, 2, 3, 4}):
        server = Server(agreed)
        clients = [Client(agreed, each, identity=key) for each, key in enumerate(identity_keys(5))]
        for number, client in enumerate(clients[:4]):
            server.receive(client.start(), number)
        for number, message in server.close_stage().items():
            server.receive(clients[number].receive(message) or b"", number)
        shown = read(server.close_stage()[0], Members, agreed)
        with pytest.raises(WrongList, match="lacks this client, or names one that sent no keys"):
            clients[0].receive(encode(replace(shown, members=frozenset(members)), agreed))


# Identities.


def test_an_identity_key_must_be_the_one_in_the_terms():
    agreed, unsigned = terms(4), terms(4, signed=False)
    with pytest.raises(InvalidInput, match="not the one that the terms name for client 0"):
        Client(agreed, 0, identity=identity_keys(4)[1])
    with pytest.raises(InvalidInput, match="an identity key must be given"):
        Client(agreed, 0)
    with pytest.raises(InvalidInput, match="an identity key must not be given"):
        Client(unsigned, 0, identity=identity_keys(4)[0])
    assert agreed.has_signatures
    assert not unsigned.has_signatures


def test_other_terms_are_another_session():
    agreed = terms(4)
    other = replace(agreed, bits=21)
    assert other.context != agreed.context
    with pytest.raises(BadMessage, match="another session, or to other terms"):
        Server(other).receive(Client(agreed, 0, identity=identity_keys(4)[0]).start(), 0)


def test_how_many_colluders_two_lists_withstand():
    """With 2t > n + c, two sets of t clients share more than the c colluders: an honest one, who answers one list."""
    assert {clients: terms(clients).tolerated_colluders for clients in (3, 10, 50)} == {3: 0, 10: 3, 50: 17}


# A graph of neighbours.


def on_a_graph(clients: int = 1000, **others: Any) -> Terms:
    return Terms.choose(clients=clients, length=5, **others)


def test_terms_of_a_graph_carry_what_it_withstands_and_read_back():
    agreed = on_a_graph(assumptions=Assumptions(colluding=0.1, leaving=0.3))
    assert agreed.is_on_graph
    assert agreed.assumptions == Assumptions(colluding=0.1, leaving=0.3)
    assert Terms.from_bytes(agreed.to_bytes()) == agreed
    assert terms(10).assumptions is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"neighbours": 2, "threshold": 2}, "must be at most 9.1e-13, and is up to 1"),
        ({"neighbours": 112, "threshold": 58}, "must be at most 9.1e-13, and is up to 3.3e-08"),
        ({"minimum": 799}, "minimum must be at least 800 of 1000"),
        ({"assumptions": None}, "must say what is assumed"),
        ({"assumptions": Assumptions(security_bits=1e-9)}, "at least 30, and got 1e-09"),
        ({"assumptions": Assumptions(colluding=0.3)}, "must be at most 9.1e-13"),
        ({"neighbours": 996, "threshold": 600}, "between 2 and 990"),
    ],
)
def test_a_graph_that_protects_too_little_is_refused_also_by_the_client_that_reads_it(
    change: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
):
    agreed = on_a_graph()
    monkeypatch.setattr("discreet.secure_sums.secagg.session_terms.MOST_NEIGHBOURS", 990)
    with pytest.raises(InvalidInput, match=said):
        replace(agreed, **change)
    with patch.object(Terms, "_check_graph", lambda agreed: None):
        sent = replace(agreed, **change).to_bytes()
    with pytest.raises(InvalidInput, match=said):
        Terms.from_bytes(sent)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"session": bytes(15)}, "session must have 16 bytes, and got 15"),
        ({"purpose": bytes(3)}, "purpose must have 32 bytes, and got 3"),
        ({"neighbours": 131}, "neighbours must be even or all 999, and got 131"),
    ],
)
def test_terms_of_another_size_are_refused(change: dict[str, Any], said: str):
    with pytest.raises(InvalidInput, match=said):
        replace(on_a_graph(), **change)


def test_a_threshold_and_a_number_of_colluders_are_two_answers_to_one_question():
    with pytest.raises(InvalidInput, match="a threshold, or how many may collude and leave, and not both"):
        Terms.choose(clients=10, length=5, threshold=8, colluding=2)


def test_terms_of_another_version_or_with_a_third_kind_of_graph_are_not_read():
    sent = terms(4).to_bytes()
    with pytest.raises(BadMessage, match="has version"):
        Terms.from_bytes(bytes([sent[0] + 1]) + sent[1:])
    assert sent[-1] == 0
    with pytest.raises(BadMessage, match="has a 2 where only 0 or 1 may stand"):
        Terms.from_bytes(sent[:-1] + bytes([2]))


@pytest.mark.parametrize("number", [-1, 4])
def test_a_client_has_a_number_of_its_session(number: int):
    with pytest.raises(InvalidInput, match=f"between 0 and 3, and got {number}"):
        Client(terms(4, signed=False), number)


def test_a_client_starts_once_and_masks_only_after_the_set_up():
    agreed = terms(4, signed=False)
    fresh = Client(agreed, 0)
    with pytest.raises(OutOfTurn, match="when the set-up is done, and this client is at 'new'"):
        fresh.mask(0, vectors(agreed)[0])
    assert fresh.start() == fresh.start()  # a question that is asked again gets the same bytes
    with pytest.raises(OutOfTurn, match="A session starts once, and this client is at 'ready'"):
        rehearsal(agreed).clients[0].start()
