"""How a valid file or message is damaged: edits of its bytes, and values that are put where others were."""

import random
import re
from collections.abc import Sequence
from typing import NamedTuple

ODD_VALUES = (
    *(b"null", b"true", b"[]", b"{}", b'""', b"-1", b"0", b"1e999", b"NaN", b"Infinity", b"9" * 30, b"1.5"),
    *(b'"\\u0000"', b'"\\ud800"', b'"x"', b"[[]]", b'{"":0}', b"2026-01-01", b"inf", b"'''", b"\\x00", b"[nan]"),
    *(b"\x00", b"\xff", b"\xff" * 4, b"\xff" * 8, b"\x00" * 8, b"\xc3", b"\r", b"\n", b",", b'"', b"=", b"\x80" * 3),
)
VALUE = re.compile(rb'-?\d+(?:\.\d+)?(?:e-?\d+)?|"[^"\n]*"|true|false|null|\[[^\[\]]*\]')


class Edit(NamedTuple):
    """One edit: what is done, at which share of the bytes, over which share of them, and with which value."""

    kind: int
    place: float
    length: float
    value: bytes


def apply_edits(content: bytes, edits: Sequence[Edit]) -> bytes:
    """Return the content after these edits."""
    for edit in edits:
        content = _apply(content, edit)
    return content


def _apply(content: bytes, edit: Edit) -> bytes:
    at = int(edit.place * len(content))
    end = at + int(edit.length * edit.length * (len(content) - at))  # mostly short
    head, piece, rest = content[:at], content[at:end], content[end:]
    match edit.kind % 8:
        case 0:
            return head + edit.value + rest
        case 1:
            return head + rest
        case 2:
            return head + 2 * piece + rest
        case 3:
            return head
        case 4:
            return head + bytes([content[at] ^ (1 << edit.kind // 8 % 8)]) + content[at + 1 :] if content else content
        case 5:
            return rest + piece + head
        case _:
            return _replace_value(content, edit)


def _replace_value(content: bytes, edit: Edit) -> bytes:
    """Put the edit's value where a number, a text, a list or a word was."""
    found = list(VALUE.finditer(content))
    if not found:
        return content + edit.value
    start, end = found[int(edit.place * len(found))].span()
    return content[:start] + edit.value + content[end:]


def draw_edits(source: random.Random) -> list[Edit]:
    """Return one to four edits."""
    return [
        Edit(source.randrange(64), source.random(), source.random(), source.choice(ODD_VALUES))
        for _ in range(source.choice((1, 1, 1, 2, 3, 4)))
    ]
