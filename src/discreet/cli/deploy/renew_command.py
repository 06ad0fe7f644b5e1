"""`discreet deploy renew`: a new certificate for the server, or new keys for a client."""

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from discreet.cli.deploy.membership_commands import signing_steps
from discreet.cli.deploy.status_command import Folder, open_deployment
from discreet.cli.output import Json, emit
from discreet.errors import InvalidInput


def renew(
    folder: Folder,
    authority: Annotated[
        bool,
        typer.Option(
            "--authority", help="Also create a new certificate authority, for example if its key may have been stolen."
        ),
    ] = False,
    card: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Take this card of a client that renewed its keys, and change nothing else."),
    ] = None,
    identity: Annotated[
        bool,
        typer.Option(
            "--identity",
            help="At a client: replace all its keys, also those that it signs with and that its noise is drawn with, "
            "for example if they may have been stolen.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Renew the server's certificate, or a client's keys, in DIR.

    Server or node must be stopped. At the server, the certificate and its key are replaced, and nothing else: clients,
    ledgers and runs stay as they are. If the deployment's certificate authority ends within a year, it is renewed as
    well, and the clients need the new DIR/app/ca.crt.

    At a client, the key is replaced by which the server knows its node; policy and ledgers stay as they are. The
    server's operator takes its new card with --card.
    """
    is_client = (folder / "policy.toml").is_file()
    if is_client and (authority or card is not None):
        raise InvalidInput(f"--authority and --card are for a server, and {folder} is the folder of a client.")
    if identity and not is_client:
        raise InvalidInput(f"--identity is for a client, and {folder} is not the folder of one.")
    if card is not None and authority:
        raise InvalidInput("--card takes a client's card, and changes nothing else.", fix="Leave --authority out.")
    if is_client:
        page, result = _renew_client(folder, identity=identity)
    elif card is not None:
        page, result = _take_card(folder, card)
    else:
        page, result = _renew_server(folder, new_authority=authority)
    emit(lambda: result, lambda: ["\n".join(page)], as_json=as_json)


def _renew_server(folder: Path, *, new_authority: bool) -> tuple[list[str], dict[str, object]]:
    from discreet.deploy.renewal import renew_certificate

    renewed = renew_certificate(open_deployment(folder), new_authority=new_authority)
    day = f"{renewed.expires:%Y-%m-%d}"
    page = [f"Renewed the certificate of {folder}: it is valid until {day}. Next:"]
    if renewed.is_new_authority:
        page += [
            f"  hand {folder / 'app' / 'ca.crt'} to each client, by a way that it trusts: its authority is new",
            "  each client puts it into its app folder, and starts its node again",
        ]
    page.append(f"  discreet deploy server {quote(str(folder))}")
    return page, {"folder": str(folder), "expires": day, "new_authority": renewed.is_new_authority}


def _take_card(folder: Path, path: Path) -> tuple[list[str], dict[str, object]]:
    from discreet.deploy.membership_change import take_card

    root = open_deployment(folder)
    change = take_card(root, path)
    number = root.deployment.membership
    if change.identity:
        page = [f"{change.name} has new keys, so this is membership {number}. Next:"]
        page += [f"  {step}" for step in signing_steps(folder)]
    elif change.node_key:
        page = [f"{change.name} has a new node key. Next: discreet deploy server {quote(str(folder))}"]
    else:
        page = [f"The deployment already has this card: {path}."]
    return page, {"folder": str(folder), "membership": number, **change._asdict()}


def _renew_client(folder: Path, *, identity: bool) -> tuple[list[str], dict[str, object]]:
    from discreet.deploy.key_renewal import renew_keys
    from discreet.deploy.peer_cards import fingerprint

    card = renew_keys(folder, identity=identity)
    path = folder / f"{card.name}.toml"
    take = f"hand {path} to the server's operator, who takes it with: discreet deploy renew DIR --card {path.name}"
    if identity:
        page = [
            f"Renewed all keys of {card.name}. Its card is {fingerprint(card)}. Next:",
            f"  {take}",
            f"  when the app folder comes back: discreet deploy accept {quote(str(folder))}",
        ]
    else:
        start = f"  when the server has started with it: discreet deploy client {quote(str(folder))}"
        page = [f"Renewed the node key of {card.name}. Next:", f"  {take}", start]
    return page, {"folder": str(folder), "card": str(path), "fingerprint": fingerprint(card), "identity": identity}
