"""The server's files about its nodes are whole after any crash, and it starts with what an older version left."""

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("flwr")

from discreet.deploy import flower_commands, online_clients, superlink
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.engines.flower import node_registry
from tests.deploy.example_sites import SECURE, copy_site

REGISTERED, NODES = "registered.json", "nodes.json"


@contextmanager
def end_writes_after(size: int) -> Iterator[None]:
    """Let every write of this process fail once a file has this many bytes, as a kill amid the write would end it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DeploymentFolder:
    """A deployment whose SuperLink registers every node as number 17."""
    monkeypatch.setattr(
        node_registry, "register_keys", lambda address, certificate, keys: dict.fromkeys(keys, 17).items()
    )
    return copy_site(tmp_path, SECURE)


def register(site: DeploymentFolder) -> list[str]:
    """Register all clients as the server does when it starts. Returns what it says."""
    said = list[str]()
    superlink.register_nodes(site, site.deployment.read_cards(site.app), said.append)
    return said


def test_a_write_that_ends_amid_the_list_of_registered_nodes_leaves_a_server_that_starts(
    site: DeploymentFolder,
) -> None:
    size = len(site.deployment.read_cards(site.app)[0].node_key) + 100  # one node fits, two don't
    with end_writes_after(size), pytest.raises(OSError, match="too large"):
        register(site)
    assert list(json.loads((site.server / REGISTERED).read_bytes())) == ["client-0"]
    assert register(site) == ["Registered client-1.", "Registered client-2."]
    assert register(site) == []


def test_a_write_that_ends_amid_the_numbers_of_nodes_leaves_the_old_numbers(site: DeploymentFolder) -> None:
    online_clients.store_node_number(site, "client-0", 17)
    with end_writes_after(25), pytest.raises(OSError, match="too large"):
        online_clients.store_node_number(site, "client-1", 18)
    assert json.loads((site.server / NODES).read_bytes()) == {"client-0": "17"}


def test_a_write_that_ends_amid_the_connection_leaves_the_old_connection(site: DeploymentFolder) -> None:
    superlink.write_connection(site)
    before = flower_commands.loopback_address(site)
    with end_writes_after(20), pytest.raises(OSError, match="too large"):
        superlink.write_connection(site)
    assert flower_commands.loopback_address(site) == before


@pytest.mark.parametrize("left", ["", '{"client-0": "ecd', "[]"])
def test_files_that_a_killed_server_of_an_older_version_left_are_written_anew(
    site: DeploymentFolder, left: str
) -> None:
    for name in (REGISTERED, NODES):
        (site.server / name).write_text(left)
    assert len(register(site)) == 3
    assert json.loads((site.server / NODES).read_bytes()) == {f"client-{each}": "17" for each in range(3)}
