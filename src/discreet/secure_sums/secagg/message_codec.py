"""Encode the messages of a secure session as bytes, and parse them back with every byte checked."""

from dataclasses import fields

from discreet.secure_sums.secagg.session_messages import ROUND, SETUP, Message
from discreet.secure_sums.secagg.session_terms import Terms
from discreet.secure_sums.secagg.wire import VERSION, Reader, Writer

KINDS: dict[int, type[Message]] = {
    kind.KIND: kind for stage in (*SETUP, *ROUND) for kind in (stage.reply, stage.closed_by) if kind is not None
}


def encode(message: Message, terms: Terms) -> bytes:
    """Return the message as bytes, bound to these terms by their digest."""
    writer = Writer().number(VERSION, 1).number(message.KIND, 1).raw(terms.context)
    for kind, field in zip(message.FIELDS, fields(message), strict=True):
        kind.write(writer, getattr(message, field.name), terms)
    return writer.to_bytes()


def parse(data: bytes, terms: Terms) -> Message:
    """Return the message in these bytes. What is accepted encodes to exactly the same bytes.

    Raises:
        BadMessage: The bytes are not a message of this version under these terms.
    """
    reader = Reader(data)
    version, kind, context = reader.number(1), reader.number(1), reader.raw(len(terms.context))
    if version != VERSION:
        reader.refuse(f"has version {version}, and this is version {VERSION}")
    if kind not in KINDS:
        reader.refuse(f"is of kind {kind}, which is not known")
    if context != terms.context:
        reader.refuse("belongs to another session, or to other terms")
    message = KINDS[kind](*(field.read(reader, terms) for field in KINDS[kind].FIELDS))
    if problem := message.problem():
        reader.refuse(problem)
    reader.check_end()
    return message
