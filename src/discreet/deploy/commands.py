"""Flower's own commands with sane defaults: TLS on, node authentication on, telemetry off, nothing installed."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from discreet.deploy.deployment import Card
from discreet.deploy.site import Site
from discreet.errors import InvalidInput, Unsupported

CONNECTION = "deployment"
STARTS = 60.0  # seconds that a SuperLink has to come up


def environment(site: Site) -> dict[str, str]:
    """Flower keeps its files in the server's folder, tells nobody, and installs nothing."""
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),  # it calls its own
        "FLWR_HOME": str((site.server / "flower").resolve()),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    }


def superlink(site: Site, host: str) -> list[str]:
    """The server that carries messages; what it knows of nodes and runs outlives it, in its database."""
    server, port = site.server.resolve(), site.deployment.address.rpartition(":")[2]
    return [
        _tool("flower-superlink"),
        *("--host", host, "--port", port),
        *("--ssl-ca-certfile", str(server / "ca.crt")),
        *("--ssl-certfile", str(server / "server.crt")),
        *("--ssl-keyfile", str(server / "server.tls.key")),
        *("--database", str(server / "superlink.db")),
        "--enable-supernode-auth",
        "--disable-runtime-dependency-installation",
    ]


def run(site: Site, name: str) -> list[str]:
    folder = json.dumps(str(site.folder.resolve()))
    settings = f"folder={folder} name={json.dumps(name)}"
    return [_tool("flwr"), "run", str(site.app), CONNECTION, "--stream", "--run-config", settings]


def write_connection(site: Site) -> None:
    """How Flower's commands find the server, as they want it."""
    home = site.server / "flower"
    home.mkdir(exist_ok=True)
    certificate = json.dumps(str((site.server / "ca.crt").resolve()))
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "{CONNECTION}"\n\n[superlink.{CONNECTION}]\n'
        f'address = "{site.deployment.address}"\nroot-certificates = {certificate}\n',
        encoding="utf-8",
    )


def register(site: Site, cards: list[Card], say: Callable[[str], None]) -> None:
    """Let the SuperLink know the nodes whose cards are here; those that it knows are left alone."""
    noted = site.server / "registered.json"
    known: dict[str, str] = json.loads(noted.read_text()) if noted.exists() else {}
    asked = {}
    for card in cards:
        if known.get(card.name) == card.node_key:
            continue
        path = site.server / f"{card.name}.pub"
        path.write_text(f"{card.node_key}\n", encoding="utf-8")
        command = [_tool("flwr"), "supernode", "register", str(path), CONNECTION]
        asked[card.name] = (
            card,
            subprocess.Popen(
                command, env=environment(site), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            ),
        )
    for name, (card, process) in asked.items():
        said, _ = process.communicate()
        if process.returncode and "already" not in said.lower():
            raise InvalidInput(f"{name} could not be registered: {_last(said)}")
        known[name] = card.node_key
        say(f"Registered {name}.")
    noted.write_text(json.dumps(known), encoding="utf-8")


def await_superlink(site: Site, alive: Callable[[], bool]) -> None:
    """Until it takes connections, or is no longer there."""
    host, _, port = site.deployment.address.rpartition(":")
    until = time.monotonic() + STARTS
    while time.monotonic() < until and alive():
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise InvalidInput(
        f"The SuperLink did not come up at {site.deployment.address}.",
        fix="See whether the port is free, and what it says above.",
    )


def nodes(site: Site) -> list[Mapping[str, str]] | None:
    """The registered nodes as the SuperLink sees them; None when it does not answer."""
    try:
        found = called(site, [_tool("flwr"), "supernode", "list", CONNECTION, "--format", "json"])
        listed: list[Mapping[str, str]] = json.loads(found.stdout)["nodes"]
    except (ValueError, KeyError, Unsupported):
        return None
    return listed


def called(site: Site, command: list[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, env=environment(site), capture_output=True, text=True, check=False)


def _tool(name: str) -> str:
    """Flower's command beside this Python."""
    path = Path(sys.executable).with_name(name)
    if not path.exists():
        raise Unsupported("Flower is not installed here.", fix="Install it with: pip install 'discreet[flower]'")
    return str(path)


def _last(said: str) -> str:
    lines = [line for line in said.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing."
