"""Whether anything was under-counted: every update that a node made, against its ledger and the server's."""

import json
from pathlib import Path
from typing import Any


def find_under_counts(
    sent: list[tuple[str, str, int, str, int]], server_ledger: list[dict[str, Any]], *, secure: bool
) -> list[Any]:
    """Return what was made without a reservation.

    Args:
        sent: For each update: client, run, round, digest, and the reservations of its round in the node's ledger.
        server_ledger: The lines of the server's ledger of that run.
        secure: Whether updates are masked: then a round whose sum was not opened may be given back.
    """
    found, different = [], dict[tuple[str, str, int], set[str]]()
    for client, run, round, digest, counted in sent:
        made = different.setdefault((client, run, round), set())
        made.add(digest)
        if len(made) > counted:
            found.append(f"{client} made {len(made)} updates in round {round + 1} and had counted {counted}")
    void = {line["ticket"] for line in server_ledger if line["type"] == "void"}
    for round in sorted({each[2] for each in sent}):
        reserved = [line for line in server_ledger if line["type"] == "reserve" and f" round {round} of" in line["key"]]
        if not [line for line in reserved if secure or line["seq"] not in void]:
            found.append(f"the server has no reservation for round {round + 1}")
    return found


def read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
