"""Run a SuperLink and ask it: its process, its nodes, its log, and the connection that Flower's commands use."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from discreet.deploy import deployment_lock, flower_commands, online_clients
from discreet.deploy.certificates import is_node_key
from discreet.deploy.deployment import Card
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.durable_files import OWNER, ProcessLock, is_locked, write_durably
from discreet.errors import InvalidInput, Unsupported
from discreet.logs import get_log

log = get_log(__name__)

REGISTERED_FILE = "registered.json"  # the node key of each client that is registered
START_SECONDS = 300.0  # seconds in which a SuperLink must start, even on a slow machine
END_SECONDS = 8.0  # seconds before it is killed; `discreet deploy server` waits a little longer


def log_path(root: DeploymentFolder) -> Path:
    """Return the log of the SuperLink, with a line for each message: for finding the cause of a failure."""
    return root.server / "superlink.log"


def write_connection(root: DeploymentFolder, settings: str | None = None) -> None:
    """Choose a free port on loopback for the SuperLink, and write the connection for Flower's commands.

    Args:
        settings: Further TOML lines of the connection. None: TLS with the deployment's certificate.
    """
    if settings is None:
        settings = f"root-certificates = {json.dumps(str((root.server / 'ca.crt').resolve()))}\n"
    with deployment_lock.lock_deployment(root), socket.socket() as probe:  # refused while a server runs
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        home = root.server / "flower"
        home.mkdir(exist_ok=True)
        connection = flower_commands.CONNECTION
        text = f'[superlink]\ndefault = "{connection}"\n\n[superlink.{connection}]\naddress = "127.0.0.1:{port}"\n'
        write_durably(home / "config.toml", f"{text}{settings}".encode())


@contextmanager
def run_superlink(
    root: DeploymentFolder, command: list[str], held: ProcessLock, environment: Mapping[str, str] | None = None
) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a SuperLink while the block lasts. It logs to a file and inherits the lock `held`."""
    with log_path(root).open("ab") as output:
        process = subprocess.Popen(  # nosec B603 # a list of words, by no shell
            command, env=environment, stdout=output, stderr=output, pass_fds=(held.fd,)
        )
    held.write_process_id(process.pid)
    log.info("superlink started", address=root.deployment.address)
    try:
        yield process
    finally:
        if (code := process.poll()) is None:
            log.info("superlink stopped")
        else:
            log.error("superlink ended", code=code)
        process.terminate()
        try:
            process.wait(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def end_orphan(root: DeploymentFolder, server: int) -> None:
    """End the SuperLink whose server, the process `server`, was killed. A run that it started ends with it.

    Left alone, it would go on with a run whose clients no longer reach it, and lose rounds that they have paid for.
    """
    lock = root.server / deployment_lock.SUPERLINK_LOCK
    for how in (signal.SIGTERM, signal.SIGKILL):
        until = time.monotonic() + END_SECONDS
        if not is_locked(lock) or (process := int(lock.read_text())) == server:
            return
        with suppress(ProcessLookupError):
            os.kill(process, how)
        while is_locked(lock) and time.monotonic() < until:
            time.sleep(0.1)


def unregister_nodes(root: DeploymentFolder, cards: list[Card], say: Callable[[str], None]) -> None:
    """Remove nodes from the SuperLink that it knows by other keys than those of these cards."""
    from discreet.engines.flower import node_registry  # its dependencies come with the extra discreet[flower]

    noted, keys = root.server / REGISTERED_FILE, {card.name: card.node_key for card in cards}
    known = online_clients.read_names(noted)
    old = {name: key for name, key in known.items() if keys.get(name) != key and is_node_key(key)}
    if not old:
        return
    address = flower_commands.loopback_address(root)
    for name, is_gone in node_registry.unregister_keys(address, root.server / "ca.crt", old):
        if not is_gone:
            say(f"The old key of {name} is still known to the SuperLink, but no longer let in.")
            continue
        online_clients.forget_node_number(root, name)
        del known[name]
        write_durably(noted, json.dumps(known).encode(), OWNER)
        log.info("client unregistered", client=name)
        say(f"Removed the old key of {name}.")


def register_nodes(root: DeploymentFolder, cards: list[Card], say: Callable[[str], None]) -> None:
    """Register the nodes of these cards at the SuperLink, except those that are registered already."""
    from discreet.engines.flower import node_registry  # its dependencies come with the extra discreet[flower]

    noted = root.server / REGISTERED_FILE
    known = online_clients.read_names(noted)
    new = {card.name: card.node_key for card in cards if known.get(card.name) != card.node_key}
    address = flower_commands.loopback_address(root)
    for name, number in node_registry.register_keys(address, root.server / "ca.crt", new):
        known[name] = new[name]
        if number is not None:
            online_clients.store_node_number(root, name, number)
        write_durably(noted, json.dumps(known).encode(), OWNER)
        log.info("client registered", client=name)
        say(f"Registered {name}.")


def await_superlink(root: DeploymentFolder, alive: Callable[[], bool]) -> None:
    """Wait until the SuperLink takes connections.

    Raises:
        InvalidInput: Its process has ended, or it takes too long.
    """
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and alive():
        if flower_commands.is_listening(flower_commands.loopback_address(root)):
            return
        time.sleep(0.1)
    raise InvalidInput(
        f"The SuperLink did not start at {root.deployment.address}.",
        fix=f"Look into its log: {log_path(root)}",
    )


def list_nodes(root: DeploymentFolder) -> list[Mapping[str, str]] | None:
    """Return the registered nodes with their status, None if the SuperLink does not answer."""
    address = flower_commands.loopback_address(root)
    if not flower_commands.is_listening(address):  # quicker than Flower's command, which retries for a while
        return None
    try:
        answer = flower_commands.call_flower(root, "supernode", "list", flower_commands.CONNECTION, "--format", "json")
        listed: list[Mapping[str, str]] = json.loads(answer.stdout)["nodes"]
    except (ValueError, KeyError, Unsupported, InvalidInput):
        return None
    return listed


def stop_run(root: DeploymentFolder, number: str) -> bool:
    """Stop a run at the SuperLink, which ends its process. Returns whether it did."""
    try:
        return flower_commands.call_flower(root, "stop", number, flower_commands.CONNECTION).returncode == 0
    except InvalidInput:
        return False
