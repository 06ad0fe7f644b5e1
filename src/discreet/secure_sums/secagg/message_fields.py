"""The kinds of fields that messages have: how each is written as bytes, and how it is read back under the terms."""

from collections.abc import Callable
from typing import Any, NamedTuple

from discreet.secure_sums.secagg import key_agreement, shamir
from discreet.secure_sums.secagg.session_terms import Terms
from discreet.secure_sums.secagg.wire import ID_BYTES, Reader, Writer

ROUND_BYTES = 4


class MessageField(NamedTuple):
    """One kind of field. All sizes follow from the terms, so a reader knows each length in advance.

    Attributes:
        write: Appends a value of the field.
        read: Reads the value back, and refuses one that can't be.
    """

    write: Callable[[Writer, Any, Terms], object]
    read: Callable[[Reader, Terms], Any]


def octets(size: Callable[[Terms], int]) -> MessageField:
    """Return the field of bytes of a fixed size."""
    return MessageField(
        lambda writer, value, terms: writer.raw(value),
        lambda reader, terms: reader.raw(size(terms)),
    )


def table(size: Callable[[Terms], int]) -> MessageField:
    """Return the field of a table: clients, each with bytes of a fixed size."""
    return MessageField(
        lambda writer, rows, terms: writer.table(rows),
        lambda reader, terms: reader.table(size(terms), terms.clients),
    )


def sealed_bytes(shares: int) -> int:
    """Return the length of `shares` Shamir shares under one seal, with a commitment to each."""
    return key_agreement.SEAL_BYTES + shares * (key_agreement.KEY_BYTES + shamir.SHARE_BYTES)


def split_row(row: bytes) -> tuple[bytes, bytes]:
    """Split what is dealt to one holder into the commitments to its shares and the sealed shares."""
    shares = (len(row) - key_agreement.SEAL_BYTES) // (key_agreement.KEY_BYTES + shamir.SHARE_BYTES)
    return row[: shares * key_agreement.KEY_BYTES], row[shares * key_agreement.KEY_BYTES :]


def keys_bytes(terms: Terms) -> int:
    """Return the length of a client's public keys: a sealing key, a mask key for each round, and any signature."""
    return key_agreement.KEY_BYTES * (1 + terms.rounds) + (key_agreement.SIGNATURE_BYTES if terms.has_signatures else 0)


def _read_round(reader: Reader, terms: Terms) -> int:
    number = reader.number(ROUND_BYTES)
    if number >= terms.rounds:
        reader.refuse(f"is of round {number}, and the last of this session is {terms.rounds - 1}")
    return number


CLIENT = MessageField(
    lambda writer, client, terms: writer.number(client, ID_BYTES),
    lambda reader, terms: reader.client(terms.clients),
)
CLIENTS = MessageField(
    lambda writer, clients, terms: writer.clients(clients, terms.clients),
    lambda reader, terms: reader.clients(terms.clients),
)
ROUND_NUMBER = MessageField(lambda writer, number, terms: writer.number(number, ROUND_BYTES), _read_round)
VECTOR = MessageField(
    lambda writer, packed, terms: writer.raw(packed),
    lambda reader, terms: reader.view(terms.ring.packed_bytes),  # large, so it is not copied
)
DIGEST = octets(lambda terms: key_agreement.KEY_BYTES)
SEED = octets(lambda terms: key_agreement.KEY_BYTES)
SIGNATURE = octets(lambda terms: key_agreement.SIGNATURE_BYTES)
PUBLISHED_KEYS = octets(keys_bytes)
DIGESTS = table(lambda terms: key_agreement.KEY_BYTES)
KEYS_OF_CLIENTS = table(keys_bytes)
SIGNATURES = table(lambda terms: key_agreement.SIGNATURE_BYTES)
SHARES = table(lambda terms: shamir.SHARE_BYTES)
SEALED_SHARES = table(lambda terms: sealed_bytes(1))
SEALED_SHARES_OF_ALL_ROUNDS = table(lambda terms: sealed_bytes(terms.rounds))
