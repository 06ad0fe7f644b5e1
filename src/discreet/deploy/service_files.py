"""Files that run a deployment as a service: images and a compose file, or systemd units. None contains a secret."""

import re
from importlib.resources import files
from pathlib import Path

from discreet.deploy.deployment import Deployment

COMPOSE_FOLDER, SYSTEMD_FOLDER = "containers", "systemd"
UNIT_FILES = {  # by template: where the file belongs on a machine
    "discreet-server@.service": "/etc/systemd/system/discreet-server@.service",
    "discreet-node@.service": "/etc/systemd/system/discreet-node@.service",
    "journald@discreet.conf": "/etc/systemd/journald@discreet.conf",
    "sysusers.conf": "/etc/sysusers.d/discreet.conf",
    "logrotate.conf": "/etc/logrotate.d/discreet",
}


def write_compose(folder: Path, deployment: Deployment) -> Path:
    """Write a Dockerfile and a compose file for the server and every client, and return their folder.

    Args:
        folder: The deployment's folder, which has the app folder and the server's folder.
        deployment: The deployment's address and clients.
    """
    target = folder / COMPOSE_FOLDER
    target.mkdir()
    for name, template in {"Dockerfile": "Dockerfile", ".dockerignore": "dockerignore"}.items():
        (target / name).write_text(_read_template(template), encoding="utf-8")
    (target / "compose.yaml").write_text(compose_text(folder.resolve().name, deployment), encoding="utf-8")
    return target


def compose_text(name: str, deployment: Deployment) -> str:
    """Return the compose file: a service for the server and one for each client, each with a profile of its own."""
    project = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).lstrip("-_") or "deployment"
    head = _read_template("compose.yaml").format(project=project, port=deployment.address.rpartition(":")[2])
    node = _read_template("compose_node.yaml")
    return head + "".join(node.format(client=client.name) for client in deployment.clients)


def write_units(folder: Path) -> Path:
    """Write systemd units for the server and for nodes, with their log settings, and return their folder."""
    target = folder / SYSTEMD_FOLDER
    target.mkdir()
    for template in UNIT_FILES:
        (target / template).write_text(_read_template(template), encoding="utf-8")
    lines = (f"install -D -m 0644 {template} {place}\n" for template, place in UNIT_FILES.items())
    (target / "README").write_text("As root, in this folder:\n" + "".join(lines), encoding="utf-8")
    return target


def _read_template(name: str) -> str:
    return files("discreet.deploy").joinpath("service_templates", name).read_text(encoding="utf-8")
