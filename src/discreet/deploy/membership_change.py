"""Change who takes part in a deployment: add a client, revoke one, or take a card with new keys.

Each change makes the next membership, with noise and threshold computed anew for its clients. Ledgers and runs stay.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from discreet.data.tables.table_task import TableTask
from discreet.deploy.app_folder import RESOLVED_FILE
from discreet.deploy.deployed_run import trusted_digests
from discreet.deploy.deployment import (
    CARDS_FOLDER,
    DEPLOYMENT_FILE,
    Card,
    DeclaredClient,
    Deployment,
    check_distinct_keys,
    format_record,
    read_card,
    read_record,
)
from discreet.deploy.deployment_folder import APP, SERVER, DeploymentFolder
from discreet.deploy.deployment_lock import lock_deployment
from discreet.deploy.file_switch import finish_switch, replace_files
from discreet.deploy.new_deployment import UNPLANNED_FILE, plan_deployment
from discreet.deploy.request_limit import LIMIT_FILE, format_limit
from discreet.deploy.revoked_keys import is_revoked, read_revoked_keys, revoke_key
from discreet.durable_files import ANYONE, OWNER, ProcessLock
from discreet.errors import DiscreetError, InvalidInput, nearest_names
from discreet.experiment.configuration.experiment_file import Experiment, Source
from discreet.part import to_plain
from discreet.paths import Paths
from discreet.trust import Trust


def add_clients(
    root: DeploymentFolder, clients: Sequence[DeclaredClient], trust: Trust, data_dir: Path | None = None
) -> Deployment:
    """Add clients to a deployment whose server is stopped. They can then enroll.

    Args:
        root: The deployment's folder.
        clients: The new clients with their numbers of examples.
        trust: Which code of the app folder may run here, to compute the noise.
        data_dir: Folder of downloaded data sets.

    Raises:
        InvalidInput: The server is running, a name is taken, or the experiment does not fit these clients.
    """
    with lock_deployment(root), _lock_membership(root):
        return _switch_clients(root, (*root.deployment.clients, *clients), trust, data_dir)


def revoke_client(root: DeploymentFolder, name: str, trust: Trust, data_dir: Path | None = None) -> Deployment:
    """Lock a client out at once, also of a server that runs, and make the membership without it.

    A run that is going on treats it as a client that dropped out, and can't be resumed after it has ended. A revocation
    that was killed is finished by the next one of the same client.

    Raises:
        InvalidInput: There is no such client, and none of this name was revoked.
        DiscreetError: The client is locked out, but no membership of the others can be made. The membership stays
            as it is, with a client that never answers.
    """
    with _lock_membership(root):
        clients, card_path = root.deployment.clients, root.app / CARDS_FOLDER / f"{name}.toml"
        rest = tuple(client for client in clients if client.name != name)
        if len(rest) == len(clients) and name in read_revoked_keys(root.server):
            card_path.unlink(missing_ok=True)  # the last step, before which the process was killed
            return root.deployment
        if len(rest) == len(clients):
            names = nearest_names([client.name for client in clients], name)
            raise InvalidInput(f"{name!r} is not a client of this deployment.", fix=f"Name one of {names}.")
        if card_path.is_file():  # without a card, it could never connect
            revoke_key(root.server, read_card(card_path, name))
        try:
            deployment = _switch_clients(root, rest, trust, data_dir)
        except DiscreetError as error:
            raise type(error)(
                f"{name} is locked out, but no membership without it can be made, so it stays on the list of "
                f"clients, as one that never answers: {error.problem}",
                fix=error.fix,
            ) from None
        card_path.unlink(missing_ok=True)
        return deployment


class CardChange(NamedTuple):
    """What a new card changed: whether the node key, and whether the key that the client signs with."""

    name: str
    node_key: bool
    identity: bool


def take_card(root: DeploymentFolder, path: Path) -> CardChange:
    """Replace a client's card by a renewed one. The server must be stopped.

    A new node key concerns only the server. A new signing key makes the next membership, which all clients accept.

    Raises:
        InvalidInput: The server is running, the card is of no client, its node key was revoked, or another card has
            one of its keys.
    """
    with lock_deployment(root), _lock_membership(root):
        card: Card = read_record(Card, path)
        place = root.app / CARDS_FOLDER / f"{card.name}.toml"
        if card.name not in {client.name for client in root.deployment.clients} or not place.is_file():
            raise InvalidInput(f"{path} is the card of {card.name!r}, and the deployment has no card of that client.")
        before, card = read_card(place, card.name), read_card(path, card.name)
        if is_revoked(root.server, card):
            raise InvalidInput(
                f"The node key on {path} was revoked.",
                fix=f"The owner of {card.name!r} creates new keys: discreet deploy renew DIR --identity",
            )
        for other in root.deployment.clients:
            other_place = root.app / CARDS_FOLDER / f"{other.name}.toml"
            if other.name != card.name and other_place.is_file():
                check_distinct_keys((read_card(other_place, other.name), card))
        change = CardChange(card.name, card.node_key != before.node_key, card.identity != before.identity)
        files = {f"{APP}/{CARDS_FOLDER}/{card.name}.toml": (format_record(card), ANYONE)}
        if change.identity:
            files |= _deployment_file(_next_membership(root.deployment, root.deployment.clients))
        replace_files(root.folder, root.server, files)
        return change


def _switch_clients(
    root: DeploymentFolder, clients: tuple[DeclaredClient, ...], trust: Trust, data_dir: Path | None
) -> Deployment:
    """Compute the noise for these clients, and replace the files that depend on them: all of them, or none."""
    trusted_digests(root.app, trust)
    source, before = _read_unplanned(root, trust, data_dir), root.deployment
    plan = plan_deployment(source, clients, accept_data_ranges=before.data_ranges)
    deployment = _next_membership(before, plan.clients)
    files = {
        **_deployment_file(deployment),
        f"{APP}/{RESOLVED_FILE}": (plan.resolve(dict(to_plain(source.experiment.task))), ANYONE),
        f"{SERVER}/{LIMIT_FILE}": (format_limit(plan.request_limit()), OWNER),
    }
    replace_files(root.folder, root.server, files)
    return deployment


@contextmanager
def _lock_membership(root: DeploymentFolder) -> Iterator[None]:
    """Lock the list of clients, so that one process at a time changes it, and finish a change that was killed."""

    def change_in_progress(process: str) -> InvalidInput:
        return InvalidInput(
            f"The list of clients of {root.folder} is being changed by process {process}.",
            fix="Wait until it has ended.",
        )

    with ProcessLock(root.server / "membership.lock", change_in_progress):
        finish_switch(root.folder, root.server)
        yield


def _read_unplanned(root: DeploymentFolder, trust: Trust, data_dir: Path | None) -> Source:
    """Read the experiment as it was before its noise was computed."""
    path = root.server / UNPLANNED_FILE
    if not path.is_file():
        raise InvalidInput(
            f"There is no file {path}, from which the noise for other clients would be computed: the deployment was "
            "created by an older version.",
            fix="Create a new deployment; clients enroll with --ledgers, so that their ledgers go on.",
        )
    experiment: Experiment = read_record(Experiment, path)
    if not isinstance(experiment.task, TableTask):
        raise InvalidInput(
            "The clients of this deployment are those among whom its task is divided, so none can be added or removed.",
            fix="Change the task's number of clients, and create a new deployment.",
        )
    return Source(experiment, "", Paths.default(root.app.resolve(), data_dir, trust)).load_user_parts()


def _next_membership(before: Deployment, clients: tuple[DeclaredClient, ...]) -> Deployment:
    return replace(before, clients=clients, membership=before.membership + 1)


def _deployment_file(deployment: Deployment) -> Mapping[str, tuple[bytes, int]]:
    return {f"{APP}/{DEPLOYMENT_FILE}": (format_record(deployment), ANYONE)}
