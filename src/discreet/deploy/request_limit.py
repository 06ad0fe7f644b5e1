"""The largest message that a client's node can need to send, so that the server buffers no more than that."""

from pathlib import Path
from typing import TYPE_CHECKING

from discreet.durable_files import OWNER, write_durably

if TYPE_CHECKING:  # the server's process reads the limit, and needs nothing heavy
    from discreet.algorithms.algorithm import Algorithm
    from discreet.params import Params

LIMIT_FILE = "request_limit"
NUMBER_BYTES = 16  # of an update's number: eight at most, and as much again for what is around it
SHARE_BYTES = 128  # of a share of one round's mask key for one client: 65 with its commitment, and its seal
MAX_PIECE_BYTES = 2**22  # in which a message travels
MAX_MESSAGE_BYTES = 2**30  # where no smaller limit is known
OTHER_BYTES = 2**20  # for headers, signatures and the sum of moments


def request_limit(algorithm: "Algorithm", params: "Params", clients: int, rounds: int) -> int:
    """Return a bound on the bytes of any message of a node, with an update or with shares of all rounds' mask keys."""
    encoding = algorithm.rebuild_broadcast(0, params, {}).encoding
    sent = params if encoding is None else encoding.zero(params)
    numbers = max(sum(value.numel() for value in each.values()) for each in (params, sent))
    return OTHER_BYTES + NUMBER_BYTES * numbers + SHARE_BYTES * clients * (rounds + 1)


def store_request_limit(server: Path, limit: int) -> None:
    """Store the limit in the server's folder, when the deployment is created."""
    write_durably(server / LIMIT_FILE, format_limit(limit), OWNER)


def format_limit(limit: int) -> bytes:
    """Return the content of the file with the limit."""
    return f"{limit}\n".encode()


def largest_message(server: Path) -> int:
    """Return the limit of a node's message, which consists of several requests if it is large.

    A deployment of an older version has none of its own.
    """
    path = server / LIMIT_FILE
    text = path.read_text(encoding="utf-8").strip() if path.exists() else ""
    return int(text) if text.isdecimal() else MAX_MESSAGE_BYTES


def largest_request(server: Path) -> int:
    """Return the limit of a request: a piece of a message."""
    return min(largest_message(server), MAX_PIECE_BYTES + OTHER_BYTES)
