"""The command lines of Flower's programs: TLS and node authentication on, telemetry and installing off."""

import json
import os
import shlex
import socket
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from discreet.deploy import certificates
from discreet.deploy.deployment import DEPLOYMENT_FILE
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.errors import InvalidInput, Unsupported
from discreet.experiment.configuration import toml_document
from discreet.secure_sums.secagg import key_agreement

CONNECTION = "deployment"
ANSWER_SECONDS = 180.0  # seconds in which a command that asks the SuperLink must finish
BOX_CHARACTERS = "".join(map(chr, range(0x2500, 0x2580)))  # Flower draws boxes around its messages


def flower_environment(root: DeploymentFolder) -> dict[str, str]:
    """Return the environment of Flower's programs: files in the server's folder, no telemetry, no installing."""
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),  # it calls others
        "FLWR_HOME": str((root.server / "flower").resolve()),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
        "FLWR_INTERNAL_GRPC_CONTROL_API": "0",  # each of the two would open another port
        "FLWR_INTERNAL_GRPC_FLEET_API": "0",
    }


def server_command(root: DeploymentFolder, host: str) -> list[str]:
    """Return the command of the server's process, listening at this host.

    Raises:
        InvalidInput: A file of the server is damaged, or the deployment's port is taken.
    """
    flower_program("flower-superlink")  # refuses if Flower is not installed
    from discreet.engines.flower import front_proxy

    check_server_files(root)
    front_proxy.bind_port(host, int(root.deployment.address.rpartition(":")[2])).close()
    return [sys.executable, "-P", "-m", "discreet.deploy.server_process", str(root.folder.resolve()), host]


def check_server_files(root: DeploymentFolder) -> None:
    """Check certificates, signing key and resolved.toml, which the SuperLink and every run need later."""
    certificates.check_certificates(root.server)
    path = root.server / "server.key"
    if key_agreement.identity_key(certificates.read_key(path)).hex() != root.deployment.server_key:
        raise InvalidInput(
            f"{path} must be the key that {root.app / DEPLOYMENT_FILE} names, and is another: no client would answer.",
            fix="Restore it from its backup.",
        )
    resolved = root.app / "resolved.toml"
    try:
        toml_document.parse_toml(toml_document.read_toml_text(resolved), str(resolved))
    except InvalidInput as error:
        raise InvalidInput(
            error.problem, fix="Restore it from its backup: the clients have agreed to this file."
        ) from None


def superlink_command(root: DeploymentFolder, inner: str) -> list[str]:
    """Return the command of the SuperLink, which keeps its nodes and runs in a database.

    Anyone who reaches it may run code here, so `inner` must be an address on loopback.
    """
    server, (host, _, port) = root.server.resolve(), inner.rpartition(":")
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
    """Return the command of a SuperLink for Flower's simulation, whose nodes are played by Ray."""
    host, _, port = inner.rpartition(":")
    return [flower_program("flower-superlink"), "--insecure", "--simulation", "--host", host, "--port", port]


def run_command(root: DeploymentFolder, name: str, trusted: Sequence[str], nodes: str = '""') -> list[str]:
    """Return the command that submits a run and streams its log until the run ends.

    Args:
        root: The deployment's folder.
        name: The run's name.
        trusted: Digests of the experiment's own code that may run at the server.
        nodes: In a simulation, the folder of the clients' folders, as a JSON text.

    Raises:
        InvalidInput: The server is not running on this machine.
    """
    if not is_listening(loopback_address(root)):
        raise InvalidInput(
            f"The server at {root.deployment.address} is not running on this machine.",
            fix=f"Start it with: discreet deploy server {shlex.quote(str(root.folder))}",
        )
    folder = json.dumps(str(root.folder.resolve()))
    settings = f"folder={folder} name={json.dumps(name)} nodes={nodes} trusted={json.dumps(' '.join(trusted))}"
    return [flower_program("flwr"), "run", str(root.app), CONNECTION, "--stream", "--run-config", settings]


def loopback_address(root: DeploymentFolder) -> str:
    """Return the SuperLink's address on loopback, from the connection that the last start wrote."""
    try:
        config = tomllib.loads((root.server / "flower" / "config.toml").read_text(encoding="utf-8"))
        return str(config["superlink"][CONNECTION]["address"])
    except (OSError, ValueError, KeyError):
        return "127.0.0.1:0"  # port 0: nobody answers


def call_flower(root: DeploymentFolder, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command `flwr` with these arguments, and return its output. Refuse if it takes too long."""
    command, environment = [flower_program("flwr"), *arguments], flower_environment(root)
    try:
        return subprocess.run(  # nosec B603 # a list of words, by no shell
            command, env=environment, capture_output=True, text=True, check=False, timeout=ANSWER_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise InvalidInput(f"The SuperLink did not answer within {ANSWER_SECONDS:g} seconds.") from None


def is_listening(address: str) -> bool:
    """Whether somebody takes connections at this address."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


def flower_program(name: str) -> str:
    """Return the path of a program of Flower, which is installed beside this Python."""
    path = Path(sys.executable).with_name(name)
    if not path.exists():
        raise Unsupported("Flower is not installed here.", fix="Install it with: pip install 'discreet[flower]'")
    return str(path)


def last_line(output: str) -> str:
    """Return the last line of Flower's output, without the boxes that it draws."""
    lines = [line.strip(BOX_CHARACTERS + " ") for line in output.splitlines()]
    return next((line for line in reversed(lines) if line), "it said nothing.")
