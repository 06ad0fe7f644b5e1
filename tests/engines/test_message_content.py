"""A large message travels in pieces, and what all clients get is the same object for all."""

import pytest

pytest.importorskip("flwr")

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects
from flwr.supercore.task_identity import TaskIdentity

from discreet.deploy.request_limit import MAX_MESSAGE_BYTES, MAX_PIECE_BYTES
from discreet.engines.flower import message_content
from discreet.engines.flower.message_content import MAX_BYTES, MAX_OBJECTS, PIECE_BYTES, cut_shared_pieces, pack, unpack


def message(content: RecordDict) -> Message:
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 5, 1, 3
    return Message(content, 7, "query")


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_content, "PIECE_BYTES", 10)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("length", [0, 1, 9, 10, 11, 20, 105])
def test_bytes_of_any_length_arrive_as_they_were(length: int) -> None:
    data = bytes(length)
    assert unpack(message(pack(data))) == data


@pytest.mark.usefixtures("small_pieces")
def test_shared_pieces_follow_a_clients_own() -> None:
    shared = cut_shared_pieces(b"a model of many numbers")
    assert len(shared) == 3
    assert unpack(message(pack(b"for north", shared))) == b"for north" + b"a model of many numbers"


@pytest.mark.usefixtures("small_pieces")
def test_two_messages_with_the_same_model_have_its_pieces_in_common() -> None:
    """The SuperLink stores an object once, by its hash."""
    shared = cut_shared_pieces(bytes(100))
    one, other = (set(get_all_nested_objects(message(pack(own, shared)))) for own in (b"for north", b"for south"))
    assert len(one & other) == 10
    assert len(one) == len(other) == 13


@pytest.mark.usefixtures("small_pieces")
def test_nobody_knows_the_hashes_of_shared_pieces_before_they_are_sent() -> None:
    """A client that registered one of them first, with other parts, would stop the server from storing it."""
    one, other = ({piece.object_id for piece in cut_shared_pieces(bytes(100))} for _ in range(2))
    assert not one & other


@pytest.mark.usefixtures("small_pieces")
def test_pieces_with_equal_bytes_are_different_objects() -> None:
    """The SuperLink refuses a message that has one object twice."""
    assert len(get_all_nested_objects(message(pack(bytes(100))))) == 12


def test_a_message_whose_pieces_are_out_of_place_is_none_of_ours() -> None:
    piece = ConfigRecord({"bytes": b"x", "place": 1})
    for records in ({"discreet-0": piece}, {"discreet-1": piece}, {"other": piece}, {}):
        assert unpack(message(RecordDict(records))) is None


def test_the_largest_message_has_as_many_objects_as_a_message_may_have() -> None:
    assert 3 + MAX_BYTES // PIECE_BYTES == MAX_OBJECTS
    assert (MAX_MESSAGE_BYTES, MAX_PIECE_BYTES) == (MAX_BYTES, PIECE_BYTES)
