"""`discreet deploy add` and `discreet deploy revoke`: change who takes part, without a new deployment."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.deploy.client_list import parse_clients
from discreet.cli.deploy.status_command import Folder, open_deployment
from discreet.cli.options import DataDir
from discreet.cli.output import Json, emit
from discreet.cli.trust_options import TrustOption, choose_trust
from discreet.errors import shorten_names

if TYPE_CHECKING:
    from discreet.deploy.deployment import Deployment


def add(
    folder: Folder,
    clients: Annotated[str, typer.Argument(metavar="NAME=EXAMPLES,…", hidden=True)],
    data_dir: DataDir = None,
    trust: TrustOption = False,
    as_json: Json = False,
) -> None:
    """Add clients to the deployment in DIR.

    Names each new client with the number of examples that it trains on, such as west=300. The server must be stopped.
    Noise and threshold are computed anew, and all clients have to accept and sign the new list of clients. Ledgers and
    finished runs stay as they are; a run that was stopped can't be resumed.
    """
    from discreet.deploy.membership_change import add_clients

    root, new = open_deployment(folder), parse_clients(clients)
    deployment = add_clients(root, new, choose_trust(trust, folder), data_dir)
    names = [client.name for client in new]
    steps = [
        f"hand {folder / 'app'} to each new client, who enrolls with: discreet deploy enroll NAME --app app",
        f"put the cards that they send back into {folder / 'app' / 'clients'}",
    ]
    _print_change(folder, deployment, f"Added {shorten_names(names)}.", steps, {"added": names}, as_json=as_json)


def revoke(
    folder: Folder,
    name: Annotated[str, typer.Argument(metavar="NAME", hidden=True)],
    data_dir: DataDir = None,
    trust: TrustOption = False,
    as_json: Json = False,
) -> None:
    """Remove the client NAME from the deployment in DIR.

    A server that runs lets it in no longer, and a run that is going on treats it as a client that dropped out. Noise
    and threshold are computed anew, and the other clients have to accept and sign the new list of clients. Ledgers and
    finished runs stay as they are; a run that is going on can't be resumed later. After a kill, run the command again.
    """
    from discreet.deploy.membership_change import revoke_client

    root = open_deployment(folder)
    deployment = revoke_client(root, name, choose_trust(trust, folder), data_dir)
    _print_change(folder, deployment, f"Revoked {name}.", [], {"revoked": name}, as_json=as_json)


def _print_change(
    folder: Path, deployment: "Deployment", done: str, steps: list[str], result: dict[str, object], *, as_json: bool
) -> None:
    names = [client.name for client in deployment.clients]
    page = [
        f"{done} Membership {deployment.membership} has {shorten_names(names)}. Next:",
        *(f"  {step}" for step in (*steps, *signing_steps(folder))),
    ]
    result = {**result, "membership": deployment.membership, "clients": names}
    emit(lambda: result, lambda: ["\n".join(page)], as_json=as_json)


def signing_steps(folder: Path) -> list[str]:
    """Return what has to be done until a new membership is in force."""
    return [
        f"hand out {folder / 'app'}; each client accepts the change, and signs: discreet deploy accept NAME",
        f"put the files NAME.signed.toml into {folder / 'app' / 'clients'}, and hand out the folder again",
        f"start the server and the clients again: discreet deploy server {quote(str(folder))}",
    ]
