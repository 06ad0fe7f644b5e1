"""Our bytes as the content of one of Flower's messages."""

from flwr.app import ConfigRecord, Message, RecordDict

RECORD, FIELD = "discreet", "bytes"


def pack(data: bytes) -> RecordDict:
    return RecordDict({RECORD: ConfigRecord({FIELD: data})})


def unpack(message: Message) -> bytes | None:
    """What we sent, if it is that; None for an error of Flower's own, or a stranger's message."""
    if not message.has_content():
        return None
    record = message.content.get(RECORD)
    found = record.get(FIELD) if isinstance(record, ConfigRecord) else None
    return found if isinstance(found, bytes) else None
