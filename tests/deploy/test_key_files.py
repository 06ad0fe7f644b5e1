"""Who may read keys: only their owner, whatever the umask, wherever they are written."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.deploy.deployed_run import DeployedRun
from discreet.deploy.entry_points import main
from discreet.durable_files import OWNER, write_durably
from discreet.experiment.run_directory import run_keys
from discreet.randomness.streams import RunKey
from tests.deploy.example_sites import SECURE, connect_nodes, create_site

pytestmark = pytest.mark.usefixtures("one_thread")
OF_SERVER = {"ca.key", "server.key", "server.tls.key"}
OF_NODE = {"identity.key", "node.key", "noise.key"}
SECRET_FILES = ("*.key", "session", "*.reply", "round-*.json", "counted", "counting.json", "lock", "*.ended.json")


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """The worst umask: what is not asked for is allowed to everybody."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> str:
    return oct(stat.S_IMODE(path.stat().st_mode))


def test_every_key_of_a_deployment_is_for_its_owner_alone(tmp_path: Path) -> None:
    site = create_site(tmp_path, SECURE)
    assert {path.name for path in site.server.glob("*.key")} == OF_SERVER
    assert {path.name for path in (tmp_path / "client-0").glob("*.key")} == OF_NODE
    assert {mode(path) for path in tmp_path.rglob("*.key")} == {"0o600"}
    assert {mode(folder) for folder in (site.server, *tmp_path.glob("client-*"))} == {"0o700"}
    assert list(site.app.rglob("*.key")) == []


def test_what_a_run_writes_beside_keys_is_for_its_owner_alone(tmp_path: Path) -> None:
    """An open secure sum has mask keys on disk, and a reply has an update."""
    site, heard = create_site(tmp_path, SECURE), list[str]()
    wire = connect_nodes(tmp_path, site, heard)
    main(lambda *_: wire, {"folder": str(site.folder), "name": "first"}, heard.append)
    assert DeployedRun(site, "first").folder.exists()
    secret = [path for pattern in SECRET_FILES for path in tmp_path.rglob(pattern)]
    assert {path.name for path in secret} >= {"session", "counted", "lock", "first.ended.json", *OF_NODE}
    assert {path.name: mode(path) for path in secret if mode(path) != "0o600"} == {}


def test_the_key_of_a_run_is_for_its_owner_alone(tmp_path: Path) -> None:
    run_keys.store_key(RunKey.generate(), "a" * 16, tmp_path / "keys")
    (path,) = (tmp_path / "keys").iterdir()
    assert (mode(path), mode(path.parent)) == ("0o600", "0o700")


def test_a_draft_that_a_killed_process_left_open_to_all_is_closed(tmp_path: Path) -> None:
    (tmp_path / ".session.draft").write_bytes(b"")
    assert mode(tmp_path / ".session.draft") == "0o666"
    write_durably(tmp_path / "session", b"secret", OWNER)
    assert mode(tmp_path / "session") == "0o600"
