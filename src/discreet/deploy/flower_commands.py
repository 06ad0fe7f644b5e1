"""Flower's own commands with sane defaults: TLS on, node authentication on, telemetry off, nothing installed."""

import json
import os
import shlex
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from discreet.deploy import certificates, deployment_lock, online_clients
from discreet.deploy.deployment import DEPLOYMENT_FILE, Card
from discreet.deploy.site import Site
from discreet.errors import InvalidInput, Unsupported
from discreet.experiment.configuration import toml_document
from discreet.secure_sums.secagg import key_agreement

CONNECTION = "deployment"
START_SECONDS = (
    300.0  # seconds that a SuperLink has to come up, on a slow machine too; one that ended is not waited for
)
END_SECONDS = 8.0  # seconds that it has to end before it is killed; `discreet deploy server` waits a little longer
ANSWER_SECONDS = 180.0  # seconds that a command of Flower's has, which asks it something
BOX_CHARACTERS = "".join(map(chr, range(0x2500, 0x2580)))  # which Flower draws around what it says


def flower_environment(site: Site) -> dict[str, str]:
    """Flower keeps its files in the server's folder, tells nobody, and installs nothing."""
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),  # it calls its own
        "FLWR_HOME": str((site.server / "flower").resolve()),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
        "FLWR_INTERNAL_GRPC_CONTROL_API": "0",  # each of which would open a port of its own
        "FLWR_INTERNAL_GRPC_FLEET_API": "0",
    }


def server_command(site: Site, host: str) -> list[str]:
    """The server, heard at this host and the deployment's port, which must be free."""
    flower_program("flower-superlink")  # says it when Flower is not installed
    from discreet.engines.flower import front_proxy

    check_server_files(site)
    front_proxy.bind_port(host, int(site.deployment.address.rpartition(":")[2])).close()
    return [sys.executable, "-P", "-m", "discreet.deploy.server_process", str(site.folder.resolve()), host]


def check_server_files(site: Site) -> None:
    """That what the server needs later is here, and is this deployment's: not only the SuperLink, each run does."""
    certificates.check_certificates(site.server)
    path = site.server / "server.key"
    if key_agreement.identity_key(certificates.read_key(path)).hex() != site.deployment.server_key:
        raise InvalidInput(
            f"{path} is not the key that {site.app / DEPLOYMENT_FILE} names, so no client would answer.",
            fix="Restore it from its backup.",
        )
    resolved = site.app / "resolved.toml"
    try:
        toml_document.parse_toml(toml_document.read_toml_text(resolved), str(resolved))
    except InvalidInput as error:
        raise InvalidInput(error.problem, fix="Restore it from its backup, as clients agreed to it.") from None


def superlink_command(site: Site, inner: str) -> list[str]:
    """What carries messages; what it knows of nodes and runs outlives it, in its database.

    Whoever reaches it may run code here, so `inner` must be an address on loopback.
    """
    server, (host, _, port) = site.server.resolve(), inner.rpartition(":")
    return [
        flower_program("flower-superlink"),
        *("--host", host, "--port", port),
        *("--ssl-ca-certfile", str(server / "ca.crt")),
        *("--ssl-certfile", str(server / "server.crt")),
        *("--ssl-keyfile", str(server / "server.tls.key")),
        *("--database", str(server / "superlink.db")),
        "--enable-supernode-auth",
        "--disable-runtime-dependency-installation",
    ]


def simulation_command(inner: str) -> list[str]:
    """The same for Flower's simulation, which has no nodes but those that Ray plays."""
    host, _, port = inner.rpartition(":")
    return [flower_program("flower-superlink"), "--insecure", "--simulation", "--host", host, "--port", port]


def log_path(site: Site) -> Path:
    """What the SuperLink itself says, a line for each message: nothing to watch, but to look for a reason in."""
    return site.server / "superlink.log"


def run_command(site: Site, name: str, nodes: str = '""') -> list[str]:
    """What trains; it lasts as long as that does, so whether anybody answers is found out before."""
    if not is_listening(loopback_address(site)):
        raise InvalidInput(
            f"The server at {site.deployment.address} is not up on this machine.",
            fix=f"Start it with: discreet deploy server {shlex.quote(str(site.folder))}",
        )
    folder = json.dumps(str(site.folder.resolve()))
    settings = f"folder={folder} name={json.dumps(name)} nodes={nodes}"
    return [flower_program("flwr"), "run", str(site.app), CONNECTION, "--stream", "--run-config", settings]


def write_connection(site: Site, settings: str | None = None) -> None:
    """A free port on loopback for the SuperLink, and how Flower's commands find it there: over TLS, unless said."""
    if settings is None:
        settings = f"root-certificates = {json.dumps(str((site.server / 'ca.crt').resolve()))}\n"
    with deployment_lock.lock_deployment(site), socket.socket() as probe:  # whoever is up goes on being found
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        home = site.server / "flower"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "{CONNECTION}"\n\n[superlink.{CONNECTION}]\n'
            f'address = "127.0.0.1:{port}"\n{settings}',
            encoding="utf-8",
        )


def loopback_address(site: Site) -> str:
    """Where the SuperLink is or was, on this machine."""
    try:
        found = tomllib.loads((site.server / "flower" / "config.toml").read_text(encoding="utf-8"))
        return str(found["superlink"][CONNECTION]["address"])
    except (OSError, ValueError, KeyError):
        return "127.0.0.1:0"  # nowhere, where nobody answers


@contextmanager
def run_superlink(
    site: Site, command: list[str], held: int, environment: Mapping[str, str] | None = None
) -> "Iterator[subprocess.Popen[bytes]]":
    """A SuperLink that says what it says in its log, holds the lock of `lock.alone`, and ends with the block."""
    with log_path(site).open("ab") as said:
        process = subprocess.Popen(command, env=environment, stdout=said, stderr=said, pass_fds=(held,))
    deployment_lock.write_process_id(held, process.pid)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def register_nodes(site: Site, cards: list[Card], say: Callable[[str], None]) -> None:
    """Let the SuperLink know the nodes whose cards are here; those that it knows are left alone."""
    noted = site.server / "registered.json"
    known: dict[str, str] = json.loads(noted.read_text()) if noted.exists() else {}
    asked = {}
    for card in cards:
        if known.get(card.name) == card.node_key:
            continue
        path = site.server / f"{card.name}.pub"
        path.write_text(f"{card.node_key}\n", encoding="utf-8")
        command = [flower_program("flwr"), "supernode", "register", str(path), CONNECTION]
        asked[card.name] = (
            card,
            subprocess.Popen(
                command, env=flower_environment(site), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            ),
        )
    for name, (card, process) in asked.items():
        try:
            said, _ = process.communicate(timeout=ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            said, _ = process.communicate()
            said += f"\nthe SuperLink did not answer within {ANSWER_SECONDS:g} seconds."
        if process.returncode and "already" not in said.lower():
            raise InvalidInput(f"{name} could not be registered: {last_line(said)}")
        known[name] = card.node_key
        online_clients.store_node_number(site, name, said)
        say(f"Registered {name}.")
    noted.write_text(json.dumps(known), encoding="utf-8")


def await_superlink(site: Site, alive: Callable[[], bool]) -> None:
    """Until it takes connections, which the open port does before it; or until it is no longer there."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and alive():
        if is_listening(loopback_address(site)):
            return
        time.sleep(0.1)
    raise InvalidInput(
        f"The SuperLink did not come up at {site.deployment.address}.",
        fix=f"See what it says in {log_path(site)}.",
    )


def list_nodes(site: Site) -> list[Mapping[str, str]] | None:
    """The registered nodes as the SuperLink sees them; None when it does not answer."""
    if not is_listening(loopback_address(site)):  # sooner found out than by Flower's command, which tries for a while
        return None
    try:
        found = call_flower(site, [flower_program("flwr"), "supernode", "list", CONNECTION, "--format", "json"])
        listed: list[Mapping[str, str]] = json.loads(found.stdout)["nodes"]
    except (ValueError, KeyError, Unsupported, InvalidInput):
        return None
    return listed


def stop_run(site: Site, number: str) -> bool:
    """End a run at the SuperLink, which ends its process; whether it did."""
    try:
        return call_flower(site, [flower_program("flwr"), "stop", number, CONNECTION]).returncode == 0
    except InvalidInput:
        return False


def call_flower(site: Site, command: list[str]) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            command, env=flower_environment(site), capture_output=True, text=True, check=False, timeout=ANSWER_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise InvalidInput(f"The SuperLink did not answer within {ANSWER_SECONDS:g} seconds.") from None


def is_listening(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


def flower_program(name: str) -> str:
    """Flower's command beside this Python."""
    path = Path(sys.executable).with_name(name)
    if not path.exists():
        raise Unsupported("Flower is not installed here.", fix="Install it with: pip install 'discreet[flower]'")
    return str(path)


def last_line(said: str) -> str:
    """The last line of what Flower said, without the boxes that it draws."""
    lines = [line.strip(BOX_CHARACTERS + " ") for line in said.splitlines()]
    return next((line for line in reversed(lines) if line), "it said nothing.")
