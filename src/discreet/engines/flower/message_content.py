"""Our bytes as the content of a Flower message."""

from flwr.app import ConfigRecord, Message, RecordDict

RECORD, FIELD = "discreet", "bytes"
OBJECTS = 3  # in which flwr sends such a message: the message, its RecordDict and its ConfigRecord


def pack(data: bytes) -> RecordDict:
    """Wrap bytes in the content of a message."""
    return RecordDict({RECORD: ConfigRecord({FIELD: data})})


def unpack(message: Message) -> bytes | None:
    """Return the bytes in a message, None if it is an error of Flower's or not one of our messages."""
    if not message.has_content():
        return None
    record = message.content.get(RECORD)
    data = record.get(FIELD) if isinstance(record, ConfigRecord) else None
    return data if isinstance(data, bytes) else None
