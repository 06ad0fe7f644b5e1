"""The locks of a deployment: only one server may run at a time, and each lock file names the process that holds it."""

from collections.abc import Iterator
from contextlib import contextmanager

from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.durable_files import ProcessLock
from discreet.errors import InvalidInput

SUPERLINK_LOCK = "serving.lock"  # held by the server and its SuperLink; contains the SuperLink's process id
SERVER_LOCK = "server.lock"  # held by the server alone; contains its process id


@contextmanager
def lock_deployment(root: DeploymentFolder) -> Iterator[ProcessLock]:
    """Hold both locks of a deployment, so that two SuperLinks never share a database.

    A SuperLink inherits its lock, and so keeps holding it if the server that started it is gone.

    Yields:
        The SuperLink's lock, to be inherited by the SuperLink.

    Raises:
        InvalidInput: Another server or a SuperLink of this deployment is running.
    """

    def server_running(process: str) -> InvalidInput:
        return InvalidInput(
            f"The server of {root.folder} is already running as process {process}.",
            fix=f"Use that server, or end it first: kill {process}",
        )

    def superlink_running(process: str) -> InvalidInput:
        return InvalidInput(
            f"The server of {root.folder} has ended, but its SuperLink is still running as process {process}.",
            fix=f"End the SuperLink first: kill {process}",
        )

    with (
        ProcessLock(root.server / SERVER_LOCK, server_running),
        ProcessLock(root.server / SUPERLINK_LOCK, superlink_running) as shared,
    ):
        yield shared
