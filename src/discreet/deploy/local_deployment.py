"""A deployment that one machine plays alone: the clients' folders are made here, and all of them accept each other."""

import shutil
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from discreet.data.tables.table_task import TableTask
from discreet.deploy import certificates
from discreet.deploy.app_folder import AppFolder
from discreet.deploy.deployment import CARDS_FOLDER, DEPLOYMENT_FILE
from discreet.deploy.enrolment import enroll
from discreet.deploy.peer_cards import PeerCards
from discreet.deploy.policy import POLICY_FILE
from discreet.deploy.site import Site
from discreet.errors import InvalidInput
from discreet.experiment.configuration import toml_document
from discreet.part import to_plain

CLIENTS_FOLDER = "clients"  # a folder for each
# What whoever plays all parts on data of their own need not be asked.
REHEARSAL_PERMISSIONS = ("seeds = false", "graphs = false", "trust_server_with_updates = false", "own_code = false")


def prepare_rehearsal(site: Site, name: str) -> Site:
    """The deployment of one rehearsal, with keys, cards and ledgers of its own: `site` itself stays as it is.

    It is made once, and gone on with when the run of this name is.
    """
    app, made = AppFolder.open(site.app), site.rehearsal(name)
    if isinstance(app.experiment.task, TableTask):
        raise InvalidInput(
            "The clients of a table hold their rows themselves, so there is nothing here to play them with.",
            fix='Rehearse with a task that is dealt out, such as task = { kind = "digits", clients = 3 }.',
        )
    if not made.folder.exists():
        made.folder.parent.mkdir(exist_ok=True)
        with TemporaryDirectory(prefix=".draft-", dir=made.folder.parent) as draft:
            whole = Path(draft) / "whole"
            _write_rehearsal(app, Site(whole))
            whole.rename(made.folder)
    elif AppFolder.open(made.app).digest != app.digest:
        raise InvalidInput(
            f"{made.folder} was made for what {site.folder} was before.", fix="Remove it, or use another --name."
        )
    return made


def _write_rehearsal(app: AppFolder, made: Site) -> None:
    shutil.copytree(
        app.folder, made.app, ignore=lambda folder, names: names if Path(folder).name == CARDS_FOLDER else ()
    )
    made.server.mkdir(mode=0o700)
    deployment = replace(app.deployment, server_key=certificates.write_signing_key(made.server / "server.key"))
    (made.app / DEPLOYMENT_FILE).write_text(toml_document.format_toml(to_plain(deployment)), encoding="utf-8")
    played, folders = AppFolder.open(made.app), []
    for each in deployment.clients:
        folder = made.folder / CLIENTS_FOLDER / each.name
        enroll(played, each.name, folder, None)
        shutil.copy(folder / f"{each.name}.toml", made.app / CARDS_FOLDER)
        policy = folder / POLICY_FILE
        text = policy.read_text(encoding="utf-8")
        for line in REHEARSAL_PERMISSIONS:
            text = text.replace(line, line.replace("false", "true"))
        policy.write_text(text, encoding="utf-8")
        folders.append(folder)
    for folder in folders:
        cards = PeerCards.open(folder)
        cards.pin(cards.code)
