"""Replies in the order of the cohort, whichever came first: those that came early wait in a file, not in memory."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import SpooledTemporaryFile

MEMORY_BYTES = 2**22  # of early replies that wait in memory; more of them wait in a file


def in_order(
    replies: Iterable[tuple[int, bytes]], order: Sequence[int], folder: Path | None = None
) -> Iterator[tuple[int, bytes]]:
    """Yield replies in the given order, each as soon as those before it were yielded or can't come any more.

    A sum of floating-point numbers depends on its order, and the same replies must give the same bits. So a reply is
    added when its turn has come. An early one waits in a file without a name, which no other process can open and
    which is gone with this one; the SuperLink's database has had the same bytes on the same disk.

    Args:
        replies: Clients and their replies, as they come; at most one of each client.
        order: All clients that were asked.
        folder: The folder whose disk holds early replies. By default, that of temporary files.
    """
    waiting: dict[int, tuple[int, int]] = {}  # where in the file a reply begins, and how long it is
    turns = iter(order)
    turn = next(turns, None)
    with SpooledTemporaryFile(MEMORY_BYTES, dir=None if folder is None else str(folder)) as early:

        def take(client: int) -> bytes:
            begin, length = waiting.pop(client)
            early.seek(begin)
            return early.read(length)

        for client, reply in replies:
            if client != turn:
                waiting[client] = early.seek(0, 2), len(reply)
                early.write(reply)
                del reply
                continue
            held = [reply]
            del reply  # else it would be held here while it is added up
            yield client, held.pop()
            turn = next(turns, None)
            while turn in waiting:
                yield turn, take(turn)
                turn = next(turns, None)
        for client in turns:
            if client in waiting:
                yield client, take(client)
