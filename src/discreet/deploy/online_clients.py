"""Which clients are online: the SuperLink knows nodes by number, and each client's number is stored at registration."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.durable_files import OWNER, write_durably

NUMBERS_FILE = "nodes.json"


class ClientStatus(NamedTuple):
    """Names of clients by status; `unknown` if the number of a client's node was not stored."""

    online: list[str]
    away: list[str]
    unknown: list[str]


def store_node_number(root: DeploymentFolder, name: str, number: int) -> None:
    """Store the number of a client's node, which the SuperLink gave it when it was registered."""
    known = {**_node_numbers(root), name: str(number)}
    write_durably(root.server / NUMBERS_FILE, json.dumps(known).encode(), OWNER)


def forget_node_number(root: DeploymentFolder, name: str) -> None:
    """Remove the number of a client's node."""
    known = _node_numbers(root)
    if known.pop(name, None) is not None:
        write_durably(root.server / NUMBERS_FILE, json.dumps(known).encode(), OWNER)


def add_client_names(root: DeploymentFolder, nodes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Add to each node the name of its client, None if unknown."""
    names = {number: name for name, number in _node_numbers(root).items()}
    return [{"client": names.get(str(node.get("node-id"))), **node} for node in nodes]


def client_status(root: DeploymentFolder, nodes: Sequence[Mapping[str, Any]]) -> ClientStatus:
    """Sort the deployment's clients by status, given nodes from `add_client_names`."""
    known, online = _node_numbers(root), {node["client"] for node in nodes if node.get("status") == "online"}
    clients = [client.name for client in root.deployment.clients]
    return ClientStatus(
        online=[name for name in clients if name in online],
        away=[name for name in clients if name in known and name not in online],
        unknown=[name for name in clients if name not in known],
    )


def _node_numbers(root: DeploymentFolder) -> dict[str, str]:
    return read_names(root.server / NUMBERS_FILE)


def read_names(path: Path) -> dict[str, str]:
    """Read a file with a text for each client, empty if there is none.

    A file that can't be read is empty too: older versions left one if they were killed, and the SuperLink knows its
    nodes without it.
    """
    try:
        known = json.loads(path.read_bytes()) if path.exists() else {}
    except (ValueError, RecursionError):
        return {}
    return {name: text for name, text in known.items() if isinstance(text, str)} if isinstance(known, dict) else {}
