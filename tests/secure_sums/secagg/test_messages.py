"""Every parser: well-formed messages are decoded, and all other bytes raise a named error and change nothing."""

import contextlib
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import DiscreetError
from discreet.secure_sums.secagg import key_agreement, shamir
from discreet.secure_sums.secagg.client_state import ClientState
from discreet.secure_sums.secagg.message_codec import KINDS, encode, parse
from discreet.secure_sums.secagg.message_fields import keys_bytes, sealed_bytes
from discreet.secure_sums.secagg.server_state import Cohort
from discreet.secure_sums.secagg.session_client import Client
from discreet.secure_sums.secagg.session_errors import BadMessage, SecaggError
from discreet.secure_sums.secagg.session_messages import ROUND as STAGES
from discreet.secure_sums.secagg.session_messages import (
    SETUP,
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
)
from discreet.secure_sums.secagg.session_server import Server
from discreet.secure_sums.secagg.session_terms import Terms
from discreet.secure_sums.secagg.wire import VERSION
from tests.secure_sums.secagg.cohorts import identity_keys, read, rehearsal, repeated_secrets, sign, terms, vectors

with repeated_secrets():
    AGREED = terms(5, rounds=3)
CLIENT = st.integers(0, AGREED.clients - 1)
ROUND = st.integers(0, AGREED.rounds - 1)
CLIENTS = st.frozensets(CLIENT)


def raw(size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size)


def table(size: int) -> st.SearchStrategy[dict[int, bytes]]:
    return st.dictionaries(CLIENT, raw(size))


SHARE = st.integers(0, shamir.PRIME - 1).map(lambda number: number.to_bytes(shamir.SHARE_BYTES, "little"))
PARTED = st.dictionaries(CLIENT, st.tuples(st.booleans(), SHARE)).map(
    lambda rows: [
        {client: share for client, (kind, share) in rows.items() if kind is wanted} for wanted in (True, False)
    ]
)
MESSAGES: dict[type[Message], st.SearchStrategy[Message]] = {
    Keys: st.builds(Keys, CLIENT, raw(keys_bytes(AGREED))),
    Roster: st.builds(Roster, table(32), table(keys_bytes(AGREED))),
    Shares: st.builds(Shares, CLIENT, table(sealed_bytes(3))),
    Members: st.builds(Members, CLIENTS, table(sealed_bytes(3))),
    Masked: st.builds(Masked, CLIENT, ROUND, raw(32), raw(AGREED.ring.packed_bytes), table(sealed_bytes(1))),
    Survivors: st.builds(Survivors, ROUND, CLIENTS, table(sealed_bytes(1))),
    Agreed: st.builds(Agreed, CLIENT, ROUND, raw(64)),
    Agreement: st.builds(Agreement, ROUND, table(64)),
    Revealed: st.builds(
        lambda client, round_, seed, rows: Revealed(client, round_, seed, *rows), CLIENT, ROUND, raw(32), PARTED
    ),
}
ANY = st.one_of(*MESSAGES.values())


def test_every_kind_of_message_is_tried():
    assert set(MESSAGES) == set(KINDS.values())


@given(ANY)
def test_a_message_comes_back_equal(message: Message):
    assert parse(encode(message, AGREED), AGREED) == message


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(max_examples=25)
def test_a_message_that_is_cut_short_or_long_is_refused(kind: type[Message], data: st.DataObject):
    whole = encode(data.draw(MESSAGES[kind]), AGREED)
    for end in {0, 1, 2, len(whole) - 1, data.draw(st.integers(0, len(whole) - 1))}:
        with pytest.raises(BadMessage):
            parse(whole[:end], AGREED)
    with pytest.raises(BadMessage):
        parse(whole + data.draw(st.binary(min_size=1, max_size=40)), AGREED)


@settings(max_examples=300)
@given(ANY, st.data())
def test_a_changed_bit_is_refused_or_is_another_message_with_the_same_spelling(message: Message, data: st.DataObject):
    changed = bytearray(encode(message, AGREED))
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(changed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    spelt_once(bytes(changed))


@settings(max_examples=300)
@given(
    st.one_of(
        st.binary(max_size=300),
        st.builds(lambda kind, rest: header(kind) + rest, st.integers(0, 12), st.binary(max_size=300)),
    )
)
def test_random_bytes_are_refused_or_have_one_spelling(data: bytes):
    spelt_once(data)


def spelt_once(data: bytes) -> None:
    try:
        message = parse(data, AGREED)
    except BadMessage:
        return
    assert encode(message, AGREED) == data


def header(kind: int) -> bytes:
    return bytes([VERSION, kind]) + AGREED.context


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (bytes([VERSION + 1, 1]) + AGREED.context, f"has version {VERSION + 1}, and this is version {VERSION}"),
        (header(max(KINDS) + 1), f"is of kind {max(KINDS) + 1}"),
        (bytes([VERSION, 1]) + bytes(32), "another session"),
        (header(7) + (5).to_bytes(4, "little"), "names client 5, and the last of 5 is 4"),
        (header(7) + bytes(4) + (3).to_bytes(4, "little"), "is of round 3, and the last of this session is 2"),
        (header(6) + bytes(4) + b"\x20", "marks a client beyond the last of 5"),
        (header(8) + bytes(4) + b"\xff\xff\xff\xff", "has a table of 4294967295 clients, and there are 5"),
        (header(8) + bytes(4) + b"\x02\x00\x00\x00" + 2 * (b"\x01\x00\x00\x00" + bytes(64)), "client 1 after client 1"),
    ],
)
def test_a_refusal_says_what_is_wrong(data: bytes, said: str):
    with pytest.raises(BadMessage, match=said):
        parse(data, AGREED)


def test_what_is_not_bytes_is_refused():
    with pytest.raises(BadMessage, match="must be bytes, and got str"):
        parse("text", AGREED)  # type: ignore[arg-type]


def test_a_share_outside_the_field_and_both_shares_of_one_client_are_refused():
    outside, inside = shamir.PRIME.to_bytes(33, "little"), bytes(33)
    with pytest.raises(BadMessage, match="outside the field"):
        parse(encode(Revealed(0, 0, bytes(32), {1: outside}, {}), AGREED), AGREED)
    with pytest.raises(BadMessage, match="both shares of one client"):
        parse(encode(Revealed(0, 0, bytes(32), {1: inside}, {1: inside}), AGREED), AGREED)


# The state machines get bad bytes in every stage.


CLOSED = [stage.closed_by for stage in (*SETUP, *STAGES) if stage.closed_by is not None]  # by these, in this order


@pytest.mark.parametrize("stage", range(len(CLOSED)), ids=[kind.__name__ for kind in CLOSED])
def test_no_client_answers_a_server_message_with_a_changed_bit(stage: int):
    """All pairs, signed: each bit of what the server sends is checked, by parser, digest, seal or signature.

    A client whose seal was changed for one peer goes on without that peer's shares, and says so.
    """
    draw = random.Random(stage)
    for _ in range(40):
        client, message = first_message_of(stage)
        changed = bytearray(message)
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
        with contextlib.suppress(SecaggError):
            client.receive(bytes(changed))
            assert len(client.complaints) == 1


def first_message_of(stage: int) -> tuple[Client, bytes]:
    """Return client 0 just before the server's message of this stage, and that message."""
    clients = [Client(AGREED, each, identity=key) for each, key in enumerate(identity_keys(5))]
    server = Server(AGREED)
    for number, client in enumerate(clients):
        server.receive(client.start(), number)
    for step in range(len(CLOSED)):
        if step == len(SETUP):
            server.open_round(0)
            for number, vector in vectors(AGREED).items():
                server.receive(clients[number].mask(0, vector), number)
        messages = server.close_stage()
        if step == stage:
            return clients[0], messages[0]
        for number, message in messages.items():
            answer = clients[number].receive(message)
            if answer is not None:
                server.receive(answer, number)
    raise AssertionError(stage)


def test_a_refused_message_changes_nothing_and_the_right_one_is_still_taken():
    agreed = terms(4)
    session = rehearsal(agreed)
    session.server.open_round(0)
    for number, vector in vectors(agreed).items():
        session.server.receive(session.clients[number].mask(0, vector), number)
    right, client = session.server.close_stage()[1], session.clients[1]
    before = client.to_bytes()
    for wrong in (b"", right[:-1], right + b"\x00", bytes([VERSION + 1]) + right[1:], bytes(len(right))):
        with pytest.raises(BadMessage):
            client.receive(wrong)
    assert client.to_bytes() == before
    read(client.receive(right), Agreed, agreed)


@settings(max_examples=200)
@given(ANY)
def test_a_well_formed_message_out_of_place_is_refused_and_reveals_nothing(message: Message):
    """A client in mid-round answers any other message with an error, never with shares."""
    with repeated_secrets():
        session = _masked_session()
    client, server = session
    with pytest.raises(SecaggError):
        client.receive(encode(message, AGREED))
    sender, data = 0, encode(message, AGREED)
    if isinstance(message, Keys | Shares | Masked | Agreed | Revealed):
        sender, data = message.client, sign(message, AGREED)
    with pytest.raises(SecaggError):
        server.receive(data, sender)


def _masked_session() -> tuple[Client, Server]:
    session = rehearsal(AGREED)
    session.server.open_round(0)
    client = session.clients[0]
    session.server.receive(client.mask(0, vectors(AGREED)[0]), 0)
    return client, session.server


# Saved states.


def saved_client() -> bytes:
    return _masked_session()[0].to_bytes()


def saved_server() -> bytes:
    return _masked_session()[1].to_bytes()


@pytest.mark.parametrize("saved", [saved_client, saved_server])
@pytest.mark.parametrize("checksummed", [False, True])
def test_a_saved_state_that_was_changed_is_refused_by_name(saved: Callable[[], bytes], checksummed: bool):
    """Also with a new checksum: some changes give another state, but none crashes."""
    whole, draw = saved(), random.Random(0)
    restore: Callable[[bytes], object] = ClientState.from_bytes if saved is saved_client else Cohort.from_bytes
    restore(whole)
    for _ in range(300):
        changed = bytearray(whole[:-32])
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
        if draw.random() < 0.3:
            changed = changed[: draw.randrange(len(changed))]
        if not checksummed:
            with pytest.raises(BadMessage):
                restore(bytes(changed) + whole[-32:])
            continue
        with contextlib.suppress(DiscreetError):
            restore(bytes(changed) + key_agreement.digest(bytes(changed)))


def test_terms_come_back_equal():
    assert Terms.from_bytes(AGREED.to_bytes()) == AGREED
    assert Terms.from_bytes(AGREED.to_bytes()).context == AGREED.context
