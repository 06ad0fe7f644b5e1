"""Rounds and restarts: no key, vector or message is used in two rounds, and the same request gets the same answer."""

from collections.abc import Mapping

import numpy as np
import pytest

from discreet.secure_sums.secagg.local_session import Dropouts
from discreet.secure_sums.secagg.message_codec import encode
from discreet.secure_sums.secagg.session_client import Client
from discreet.secure_sums.secagg.session_errors import WrongRound
from discreet.secure_sums.secagg.session_messages import ROUND, SETUP, Agreement
from discreet.secure_sums.secagg.session_server import Server
from tests.secure_sums.secagg.cohorts import after_masking, identity_keys, is_exact, rehearsal, terms, vectors


def test_nothing_is_answered_for_another_round():
    agreed = terms(4, rounds=3)
    session, messages = after_masking(agreed)
    session.clients[0].receive(messages[0])
    session.clients[0].mask(1, vectors(agreed)[0])
    for old in (messages[0], encode(Agreement(0, {}), agreed)):
        with pytest.raises(WrongRound, match="of round 0"):
            session.clients[0].receive(old)
    with pytest.raises(WrongRound, match="rounds 2 to 2 left, and got 0"):
        session.clients[0].mask(0, vectors(agreed)[0])


def test_a_round_is_masked_once_whatever_the_vector():
    agreed = terms(4)
    session = rehearsal(agreed)
    client = session.clients[0]
    first = client.mask(0, np.zeros(5, int))
    assert client.mask(0, np.ones(5, int)) == first
    restored = Client.from_bytes(client.to_bytes(), identity=identity_keys(4)[0])
    assert restored.mask(0, np.ones(5, int)) == first


def test_a_client_survives_a_restart_at_every_step():
    """After each message all clients are saved and restored; the same question gets the same answer."""
    agreed = terms(4, rounds=2)
    own = identity_keys(4)
    server, clients = Server(agreed), [Client(agreed, each, identity=key) for each, key in enumerate(own)]

    def restart() -> None:
        clients[:] = [Client.from_bytes(each.to_bytes(), identity=key) for each, key in zip(clients, own, strict=True)]

    def answer_all(messages: Mapping[int, bytes]) -> None:
        for number, message in messages.items():
            answer = clients[number].receive(message)
            restart()
            assert clients[number].receive(message) == answer
            if answer is not None:
                server.receive(answer, number)
                server.receive(answer, number)  # repeated bytes change nothing

    for each in range(4):
        first = clients[each].start()
        restart()
        assert clients[each].start() == first
        server.receive(first, each)
    for _ in SETUP:
        answer_all(server.close_stage())
    for number in range(2):
        server = Server.from_bytes(server.to_bytes())
        server.open_round(number)
        given = vectors(agreed, seed=number)
        for each in range(4):
            server.receive(clients[each].mask(number, given[each]), each)
            restart()
        for _ in ROUND[:-1]:
            answer_all(server.close_stage())
        assert is_exact(server.unmask(), agreed, given)


def test_what_served_a_round_is_nowhere_in_the_state_after_it():
    agreed = terms(4, rounds=2)
    session = rehearsal(agreed)
    states = [each._state for each in session.clients]
    held = [shares for state in states for shares in state.key_shares.values()]
    first = [state.mask_keys[0] for state in states] + [shares[:33] for shares in held]
    second = [state.mask_keys[1] for state in states] + [shares[33:] for shares in held]
    session.sum(0, vectors(agreed))
    saved = b"".join(each.to_bytes() for each in session.clients)
    assert not any(secret in saved for secret in first)
    assert all(secret in saved for secret in second)


@pytest.mark.parametrize("leaving", [{}, {3: "revealed"}])
def test_the_seed_of_a_self_mask_is_erased_when_the_next_round_begins_whether_it_was_revealed_or_not(leaving: Dropouts):
    session = rehearsal(terms(4, rounds=2))
    given, seeds = vectors(session.terms), list[bytes]()
    reveal = session.server.close_stage

    def watch() -> dict[int, bytes]:
        if session.server.stage == "masked":
            seeds.extend(each._state.seed for each in session.clients)
        return reveal()

    session.server.close_stage = watch  # type: ignore[method-assign]
    session.sum(0, given, leaving=leaving)
    session.sum(1, given)
    saved = b"".join(each.to_bytes() for each in session.clients)
    assert [len(seed) for seed in seeds] == [32] * 8
    assert not any(seed in saved for seed in seeds[:4])


def test_a_mask_key_serves_one_round():
    """The server reconstructs a lost client's mask key of one round; it opens no other round."""
    agreed = terms(4, rounds=3)
    session = rehearsal(agreed)
    published = [session.server._cohort.mask_public(client, number) for client in range(4) for number in range(3)]
    assert len(set(published)) == 12
    given = vectors(agreed)
    session.sum(0, given)
    session.sum(1, given, leaving={3: "masked"})  # now the server knows client 3's key of round 1
    assert is_exact(session.sum(2, given), agreed, given)
