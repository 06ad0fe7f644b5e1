"""What an honest-but-curious server sees: uniform vectors, and a transcript that also fits other updates."""

from unittest.mock import patch

import numpy as np
import pytest

from discreet.secure_sums.secagg import client_setup, key_agreement, shamir, share_dealing
from discreet.secure_sums.secagg.client_state import ClientState
from discreet.secure_sums.secagg.derivations import pair_masks, self_mask
from discreet.secure_sums.secagg.local_session import LocalSession
from discreet.secure_sums.secagg.masks import Masks
from discreet.secure_sums.secagg.message_codec import parse
from discreet.secure_sums.secagg.message_signatures import SignedMessage
from discreet.secure_sums.secagg.ring_vectors import Vector
from discreet.secure_sums.secagg.server_state import Cohort, Round
from discreet.secure_sums.secagg.session_messages import Keys, Masked
from discreet.secure_sums.secagg.session_terms import Terms
from discreet.secure_sums.secagg.unmasking import Fault, Total, _open_secret
from tests.secure_sums.secagg.cohorts import (
    binding_of,
    is_exact,
    is_uniform,
    read,
    rehearsal,
    repeated_secrets,
    terms,
    vectors,
)


def record_messages(session: LocalSession) -> list[bytes]:
    """Record every message to the server from now on."""
    messages: list[bytes] = []
    receive = session.server.receive

    def record(message: bytes, sender: int) -> None:
        messages.append(message)
        receive(message, sender)

    session.server.receive = record  # type: ignore[method-assign]
    return messages


def masked_vectors(messages: list[bytes], agreed: Terms) -> dict[int, Vector]:
    parsed = [parse(SignedMessage.read(message, agreed).content, agreed) for message in messages]
    return {each.client: agreed.ring.unpack(each.vector) for each in parsed if isinstance(each, Masked)}


@pytest.mark.parametrize("bits", [8, 20, 32, 64])
def test_what_the_server_receives_is_uniform_whatever_was_sent(bits: int):
    """All clients send the same constant vector. The server looks at each, and at their differences."""
    with repeated_secrets():
        agreed = terms(4, bits=bits, length=50_000, rounds=1)
        session = rehearsal(agreed)
        messages = record_messages(session)
        session.sum(0, {client: np.full(50_000, 7) for client in range(4)})
    seen = masked_vectors(messages, agreed)
    ring = agreed.ring
    assert sorted(seen) == [0, 1, 2, 3]
    assert all(is_uniform(vector, bits) for vector in seen.values())
    assert all(is_uniform(ring.reduce(seen[0] - seen[each]), bits) for each in (1, 2, 3))
    assert not is_uniform(ring.to_ring(np.full(50_000, 7)), bits)


@pytest.mark.parametrize("neighbours", [None, 4])
def test_with_all_that_was_revealed_one_update_is_still_uniform(neighbours: int | None):
    """The server removes every mask that it can: self-masks, and those shared with the lost client."""
    with repeated_secrets():
        agreed = terms(9, neighbours=neighbours, bits=16, length=50_000, rounds=1)
        session = rehearsal(agreed)
        messages = record_messages(session)
        given = {client: np.full(50_000, 7) for client in range(9)}
        current = kept_round(session)
        session.sum(0, given, leaving={8: "masked"})
    seen, masks, cohort = masked_vectors(messages, agreed), Masks(agreed.ring), session.server._cohort
    private = open_secret(cohort, current[0], 8)
    for client in range(8):
        bared = seen[client].copy()
        masks.subtract(bared, self_mask(agreed, 0, client, open_secret(cohort, current[0], client))[0])
        if 8 in cohort.partners(client):
            pair = pair_masks(agreed, binding_of(cohort), 8, private, {client: cohort.mask_public(client, 0)})[client]
            masks.subtract(bared, pair)
        assert is_uniform(bared, 16)
        seen[client] = bared
    assert set(sum(seen.values(), agreed.ring.zeros())) == {8 * 7}  # and only their total is the sum


def open_secret(cohort: Cohort, current: Round, client: int) -> bytes:
    found = _open_secret(cohort, current, client)
    assert not isinstance(found, Fault)
    return found


def kept_round(session: LocalSession) -> list[Round]:
    """Keep the server's record of the round, which `unmask` would otherwise delete."""
    kept: list[Round] = []
    unmask = session.server.unmask

    def keep() -> Total:
        kept.append(session.server._round)
        return unmask()

    session.server.unmask = keep  # type: ignore[method-assign]
    return kept


def test_the_servers_whole_record_fits_two_different_updates():
    """In one world clients 1 and 2 send x and y, in the other x + d and y − d. No byte that the server gets differs.

    Masks are drawn here from a table of uniform vectors, one for each key, as from an ideal ChaCha20. In the
    other world the table has, for the one key that only clients 1 and 2 know, the mask less d: as likely as the first.
    """
    agreed = terms(6, bits=20, rounds=1)
    shift = np.array([5, -3, 2**19, 1, 77])
    given = vectors(agreed)
    other = {**given, 1: given[1] + shift, 2: given[2] - shift}
    one, shared = record_of(agreed, given, {})
    two, _ = record_of(agreed, other, {shared: shift})
    assert one == two
    assert not np.array_equal(given[1], other[1])
    changed, _ = record_of(agreed, other, {})  # and without the other mask, the bytes differ
    assert changed != one


def record_of(agreed: Terms, given: dict[int, Vector], shifts: dict[bytes, Vector]) -> tuple[list[bytes], bytes]:
    """Return all messages of a session with repeatable secrets, in which client 4 is lost, and the key of 1 and 2."""

    def expand(masks: Masks, key: bytes) -> Vector:
        drawn = np.random.default_rng(list(key)).integers(0, 2**20, 5)
        return (drawn - shifts.get(key, 0)).astype(np.uint32)

    with repeated_secrets(), patch.object(Masks, "_expand", expand):
        session = rehearsal(agreed)
        state, public = session.clients[1]._state, session.server._cohort.mask_public(2, 0)
        shared = pair_masks(agreed, binding_of(session.server._cohort), 1, state.mask_keys[0], {2: public})[2]
        messages = record_messages(session)
        total = session.sum(0, given, leaving={4: "masked", 0: "revealed"})
    assert is_exact(total, agreed, given)
    return [*messages, total.vector.tobytes()], shared


def test_nothing_that_the_server_keeps_between_rounds_is_secret():
    with repeated_secrets():
        agreed = terms(4, rounds=2)
        session = rehearsal(agreed)
        states = [client._state for client in session.clients]
        secret = [key for state in states for key in (state.sealing_key, *state.mask_keys.values())]
        session.sum(0, vectors(agreed))
    saved = session.server.to_bytes()
    assert not any(key in saved for key in secret)
    assert all(state.published in saved for state in states)


@pytest.mark.parametrize("long_lived", [True, False])
def test_a_mask_key_that_lived_longer_would_bare_an_earlier_round(long_lived: bool):
    """Client 3 answers in round 0 and is lost in round 1, and the server follows the protocol.

    With one mask key for both rounds, the key reconstructed in round 1 removes the masks of round 0; ours does not.
    """
    publish = client_setup.publish

    def publish_one_key(state: ClientState, identity: bytes | None) -> Keys:
        sealing, masking = key_agreement.random_bytes(32), key_agreement.random_bytes(32)
        with patch.object(key_agreement, "random_bytes", side_effect=[sealing, masking, masking]):
            return publish(state, identity)

    with repeated_secrets(), patch.object(client_setup, "publish", publish_one_key if long_lived else publish):
        agreed = terms(4, bits=16, length=50_000, rounds=2)
        session = rehearsal(agreed)
        rounds, messages = kept_round(session), record_messages(session)
        given = vectors(agreed)
        session.sum(0, given)
        bared = masked_vectors(messages, agreed)[3].copy()
        session.sum(1, given, leaving={3: "masked"})
    cohort, masks = session.server._cohort, Masks(agreed.ring)
    masks.subtract(bared, self_mask(agreed, 0, 3, open_secret(cohort, rounds[0], 3))[0])
    publics = {peer: cohort.mask_public(peer, 0) for peer in range(3)}
    for pair in pair_masks(agreed, binding_of(cohort), 3, open_secret(cohort, rounds[1], 3), publics).values():
        masks.add(bared, pair)
    assert np.array_equal(bared, agreed.ring.to_ring(given[3])) == long_lived
    if not long_lived:
        assert is_uniform(bared, 16)


@pytest.mark.parametrize(("planned", "opened"), [(0, True), (7, False)])
def test_colluders_open_a_vector_only_if_there_are_more_than_was_planned_for(planned: int, opened: bool):
    """Seven of ten tell a curious server the shares that they hold of client 8's two secrets."""
    with repeated_secrets():
        agreed = Terms.choose(clients=10, length=5, bits=20, colluding=planned)
        session, given = rehearsal(agreed), vectors(agreed)
        held = [session.clients[each]._state.key_shares[8][: shamir.SHARE_BYTES] for each in range(7)]
        session.server.open_round(0)
        sent = {each: read(session.clients[each].mask(0, given[each]), Masked, agreed) for each in range(10)}
        told = [
            share_dealing._open_row(session.clients[each]._state, 8, sent[8].sealed[each], "self-mask", 0) or b""
            for each in range(7)
        ]
    seed, private = (shamir.combine(dict(enumerate(shares, 1))) for shares in (told, held))
    bared = agreed.ring.unpack(sent[8].vector).copy()
    if seed is not None and private is not None:
        masks, others = Masks(agreed.ring), [each for each in range(10) if each != 8]
        masks.subtract(bared, self_mask(agreed, 0, 8, seed)[0])
        publics = {each: session.server._cohort.mask_public(each, 0) for each in others}
        for peer, pair in pair_masks(agreed, binding_of(session.server._cohort), 8, private, publics).items():
            (masks.subtract if peer > 8 else masks.add)(bared, pair)
    assert np.array_equal(agreed.ring.reduce(bared), agreed.ring.reduce(agreed.ring.to_ring(given[8]))) == opened
