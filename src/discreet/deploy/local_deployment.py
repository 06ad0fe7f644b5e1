"""Rehearse a deployment on one machine: create all clients' folders here and let them accept each other."""

import shutil
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from discreet.data.tables.table_task import TableTask
from discreet.deploy import certificates
from discreet.deploy.app_folder import AppFolder
from discreet.deploy.deployment import CARDS_FOLDER, DEPLOYMENT_FILE, write_record
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.enrolment import enroll
from discreet.deploy.peer_cards import PeerCards
from discreet.deploy.policy import POLICY_FILE
from discreet.durable_files import write_durably
from discreet.errors import InvalidInput

CLIENTS_FOLDER = "clients"  # contains a folder for each client
# Permissions that a person who plays all clients on their own data need not be asked for.
REHEARSAL_PERMISSIONS = ("seeds = false", "graphs = false", "trust_server_with_updates = false", "own_code = false")


def prepare_rehearsal(root: DeploymentFolder, name: str) -> DeploymentFolder:
    """Return the deployment of the rehearsal `name`, created at first with its own keys, cards and ledgers.

    `root` itself is not changed.
    """
    app, rehearsal = AppFolder.open(root.app), root.rehearsal(name)
    if isinstance(app.experiment.task, TableTask):
        raise InvalidInput(
            "The clients of a table hold the rows themselves, so one machine can't play them.",
            fix='Rehearse with a task that is divided among clients, such as task = { kind = "digits", clients = 3 }.',
        )
    if not rehearsal.folder.exists():
        rehearsal.folder.parent.mkdir(exist_ok=True)
        with TemporaryDirectory(prefix=".draft-", dir=rehearsal.folder.parent) as draft:
            whole = Path(draft) / "whole"
            _write_rehearsal(app, DeploymentFolder(whole))
            whole.rename(rehearsal.folder)
    elif AppFolder.open(rehearsal.app).digest != app.digest:
        raise InvalidInput(
            f"{rehearsal.folder} was made for an earlier version of {root.folder}.",
            fix="Remove it, or use another --name.",
        )
    return rehearsal


def _write_rehearsal(app: AppFolder, rehearsal: DeploymentFolder) -> None:
    shutil.copytree(
        app.folder, rehearsal.app, ignore=lambda folder, names: names if Path(folder).name == CARDS_FOLDER else ()
    )
    rehearsal.server.mkdir(mode=0o700)
    deployment = replace(app.deployment, server_key=certificates.write_signing_key(rehearsal.server / "server.key"))
    write_record(deployment, rehearsal.app / DEPLOYMENT_FILE)
    rehearsal_app, folders = AppFolder.open(rehearsal.app), []
    for client in deployment.clients:
        folder = rehearsal.folder / CLIENTS_FOLDER / client.name
        enroll(rehearsal_app, client.name, folder, None)
        shutil.copy(folder / f"{client.name}.toml", rehearsal.app / CARDS_FOLDER)
        policy = folder / POLICY_FILE
        text = policy.read_text(encoding="utf-8")
        for line in REHEARSAL_PERMISSIONS:
            text = text.replace(line, line.replace("false", "true"))
        write_durably(policy, text.encode())
        folders.append(folder)
    for folder in folders:
        cards = PeerCards.open(folder)
        if (signed := cards.pin(cards.code)) is not None:
            shutil.copy(signed, rehearsal.app / CARDS_FOLDER)
