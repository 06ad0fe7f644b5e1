"""`discreet deploy renew`: a new certificate for the server."""

from shlex import quote
from typing import Annotated

import typer

from discreet.cli.deploy.status_command import Folder, open_deployment
from discreet.cli.output import Json, emit


def renew(
    folder: Folder,
    authority: Annotated[
        bool,
        typer.Option(
            "--authority", help="Also create a new certificate authority, for example if its key may have been stolen."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Renew the certificate of the server in DIR.

    The server must be stopped. The certificate and its key are replaced, and nothing else: clients, ledgers and runs
    stay as they are. If the deployment's certificate authority ends within a year, it is renewed as well, and the
    clients need the new DIR/app/ca.crt.
    """
    from discreet.deploy.renewal import renew_certificate

    renewed = renew_certificate(open_deployment(folder), new_authority=authority)
    day = f"{renewed.expires:%Y-%m-%d}"
    page = [f"Renewed the certificate of {folder}: it is valid until {day}. Next:"]
    if renewed.is_new_authority:
        page += [
            f"  hand {folder / 'app' / 'ca.crt'} to each client, by a way that it trusts: its authority is new",
            "  each client puts it into its app folder, and starts its node again",
        ]
    page.append(f"  discreet deploy server {quote(str(folder))}")
    result = {"folder": str(folder), "expires": day, "new_authority": renewed.is_new_authority}
    emit(lambda: result, lambda: ["\n".join(page)], as_json=as_json)
