"""Our bytes as the content of a Flower message: in pieces, each of which flwr moves and stores by itself.

A model may have hundreds of megabytes. In pieces, no process between server and client ever holds more than some of
them. flwr names an object by its hash and stores it once, so that pieces which all clients get are sent once.
"""

import os
from collections.abc import Mapping, Sequence

from flwr.app import ConfigRecord, Message, RecordDict

RECORD, FIELD, PLACE, SALT = "discreet", "bytes", "place", "salt"
PIECE_BYTES = 2**22
MAX_BYTES = 2**30  # of a message


def most_objects(size: int) -> int:
    """Return in how many objects flwr sends a message of `size` bytes: itself, its RecordDict and the pieces."""
    return 3 + size // PIECE_BYTES


MAX_OBJECTS = most_objects(MAX_BYTES)


def cut_pieces(data: bytes) -> list[ConfigRecord]:
    """Cut bytes into pieces. Empty bytes are no piece."""
    return _cut(data, 0, {})


def cut_shared_pieces(data: bytes) -> list[ConfigRecord]:
    """Cut bytes that several messages have after a first piece of their own into pieces.

    They have other hashes each time, which nobody can know in advance: a client that registers an object under the hash
    of a piece, with parts that it doesn't have, stops the server from storing the piece.
    """
    return _cut(data, 1, {SALT: os.urandom(16)})


def _cut(data: bytes, first: int, more: Mapping[str, bytes]) -> list[ConfigRecord]:
    view = memoryview(data)
    begins = range(0, len(data), PIECE_BYTES)
    return [
        ConfigRecord({FIELD: bytes(view[begin : begin + PIECE_BYTES]), PLACE: place, **more})
        for place, begin in enumerate(begins, first)
    ]


def pack(data: bytes, shared: Sequence[ConfigRecord] = ()) -> RecordDict:
    """Wrap bytes in the content of a message, followed by pieces that other messages have too.

    Args:
        data: The message's own bytes, in one piece if pieces are shared.
        shared: Pieces from place 1 on.
    """
    own = cut_pieces(data) or [ConfigRecord({FIELD: b"", PLACE: 0})]
    return RecordDict({f"{RECORD}-{place}": piece for place, piece in enumerate([*own, *shared])})


def unpack(message: Message) -> bytes | None:
    """Return the bytes in a message, None if it is an error of Flower's or not one of our messages."""
    if not message.has_content():
        return None
    content = message.content
    pieces = [_read_piece(content.get(f"{RECORD}-{place}"), place) for place in range(len(content))]
    whole = [piece for piece in pieces if piece is not None]
    return b"".join(whole) if whole and len(whole) == len(pieces) else None


def _read_piece(record: object, place: int) -> bytes | None:
    if not isinstance(record, ConfigRecord) or record.get(PLACE) != place:
        return None
    data = record.get(FIELD)
    return data if isinstance(data, bytes) else None
