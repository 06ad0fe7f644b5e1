"""Which clients are online: the SuperLink knows nodes by number, and whose is which was noted at its registration."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from discreet.deploy.site import Site

NODE_NUMBER = re.compile(r"SuperNode (\d+) registered")  # as Flower's command says it


class ClientStatus(NamedTuple):
    """Clients by name; of one whose number is not known, it is not known either whether it is online."""

    online: list[str]
    away: list[str]
    unknown: list[str]


def store_node_number(site: Site, name: str, said: str) -> None:
    """Keep the number of this client's node, from what Flower's command said when it was registered."""
    if (found := NODE_NUMBER.search(said)) is not None:
        path = site.server / "nodes.json"
        path.write_text(json.dumps({**_node_numbers(site), name: found[1]}), encoding="utf-8")


def add_client_names(site: Site, nodes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The nodes, each with the client whose it is; None for one that is not known."""
    names = {number: name for name, number in _node_numbers(site).items()}
    return [{"client": names.get(str(each.get("node-id"))), **each} for each in nodes]


def client_status(site: Site, nodes: Sequence[Mapping[str, Any]]) -> ClientStatus:
    """The deployment's clients, by nodes that are `named`."""
    known, online = _node_numbers(site), {each["client"] for each in nodes if each.get("status") == "online"}
    clients = [each.name for each in site.deployment.clients]
    return ClientStatus(
        online=[name for name in clients if name in online],
        away=[name for name in clients if name in known and name not in online],
        unknown=[name for name in clients if name not in known],
    )


def _node_numbers(site: Site) -> dict[str, str]:
    path = site.server / "nodes.json"
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found
