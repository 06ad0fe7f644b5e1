"""Which clients' node keys were revoked: written by `discreet deploy revoke`, and followed by a server that runs."""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from discreet.deploy.deployment import Card
from discreet.durable_files import OWNER, write_durably
from discreet.errors import InvalidInput
from discreet.json_reader import parse_json

REVOKED_FILE = "revoked.json"


def read_revoked_keys(server: Path) -> dict[str, list[str]]:
    """Return the revoked node keys of each client, from the server's folder.

    Raises:
        InvalidInput: The file is damaged. Without it, a revoked client would be let in again.
    """
    path = server / REVOKED_FILE

    def build(found: Any) -> dict[str, list[str]]:
        return {str(name): [str(key) for key in keys] for name, keys in found.items()}

    damaged = InvalidInput(
        f"{path} must have the keys of clients that were revoked, and can't be read.",
        fix="Restore it from its backup, or remove it and revoke each of these clients again.",
    )
    return parse_json(path.read_bytes(), build, damaged) if path.exists() else {}


def revoke_key(server: Path, card: Card) -> None:
    """Add the node key on a card to the revoked ones."""
    known = read_revoked_keys(server)
    keys = list(dict.fromkeys([*known.get(card.name, []), card.node_key]))
    write_durably(server / REVOKED_FILE, json.dumps({**known, card.name: keys}).encode(), OWNER)


def is_revoked(server: Path, card: Card) -> bool:
    """Whether the node key on a card was revoked."""
    return card.node_key in read_revoked_keys(server).get(card.name, ())


class AdmittedKeys(Collection[bytes]):
    """The node keys on the cards without the revoked ones, as the file says at the moment of each question.

    Args:
        server: The server's folder.
        cards: The clients' cards.
        encode: Converts a key to the form in which nodes send it.
    """

    def __init__(self, server: Path, cards: Sequence[Card], encode: Callable[[str], bytes]) -> None:
        self._server, self._keys = server, {encode(card.node_key): card for card in cards}

    def __contains__(self, key: object) -> bool:
        card = self._keys.get(key) if isinstance(key, bytes) else None
        return card is not None and not is_revoked(self._server, card)

    def __iter__(self) -> Iterator[bytes]:
        return (key for key in self._keys if key in self)

    def __len__(self) -> int:
        return len(self._keys)
