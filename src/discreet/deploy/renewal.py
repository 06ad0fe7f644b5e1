"""Renew the certificate of a deployment's server, and its authority when that ends soon."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from discreet.deploy.app_folder import CERTIFICATE_FILE
from discreet.deploy.certificates import Authority, certificate_hosts, expiry_time
from discreet.deploy.deployment_folder import APP, SERVER, DeploymentFolder
from discreet.deploy.deployment_lock import lock_deployment
from discreet.deploy.file_switch import replace_files

ENDS_SOON = timedelta(days=365)  # an authority with less time left is renewed as well


class Renewal(NamedTuple):
    """What was renewed: until when the certificate is valid, and whether it has a new authority."""

    expires: datetime
    is_new_authority: bool


def renew_certificate(root: DeploymentFolder, *, new_authority: bool = False) -> Renewal:
    """Replace the server's certificate and its key. A crash leaves the old files or the new ones.

    Signing key, clients, experiment, runs and ledgers stay as they are, so no client has to agree to anything. A new
    authority also replaces ca.crt in the app folder, which then has to reach the clients by a way that they trust.

    Args:
        root: The deployment's folder.
        new_authority: Whether to create a new authority even if the old one does not end soon.

    Raises:
        InvalidInput: The server is running, or the old authority can't be read.
    """
    with lock_deployment(root):
        authority = None if new_authority else Authority.read(root.server)
        if authority is not None and authority.certificate.not_valid_after_utc < datetime.now(UTC) + ENDS_SOON:
            authority = None
        signing = authority or Authority.create()
        made = signing.server_files(certificate_hosts(root.deployment.address.rpartition(":")[0]))
        if authority is None:
            made |= signing.files()
        files = {f"{SERVER}/{name}": content for name, content in made.items()}
        if authority is None:
            files[f"{APP}/{CERTIFICATE_FILE}"] = made["ca.crt"]
        replace_files(root.folder, root.server, files)
        return Renewal(datetime.fromtimestamp(expiry_time(root.server / "server.crt"), UTC), authority is None)
