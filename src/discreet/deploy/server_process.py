"""The server's process: the SuperLink on loopback, and in front of it the proxy on the one port that clients reach."""

import signal
import sys
import time
from pathlib import Path

from discreet.deploy import deployment_lock, flower_commands, superlink
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.executor_watch import ExecutorWatch
from discreet.deploy.request_limit import largest_message, largest_request
from discreet.deploy.revoked_keys import AdmittedKeys
from discreet.engines.flower.held_polls import SentMark
from discreet.engines.flower.parent_process import end_with_parent
from discreet.errors import DiscreetError
from discreet.log_output import environment_settings, write_logs

CHECK_SECONDS = 0.2  # seconds between two checks that SuperLink and proxy are running


def run_server(root: DeploymentFolder, listen: str) -> int:
    """Run SuperLink and proxy until one of them ends. Returns the exit code.

    Raises:
        DiscreetError: The SuperLink or its executor has ended, or was killed.
    """
    from discreet.engines.flower import front_proxy  # its dependencies come with the extra discreet[flower]
    from discreet.engines.flower.message_content import most_objects

    server, port = root.server, int(root.deployment.address.rpartition(":")[2])
    tls = front_proxy.TlsFiles(server / "ca.crt", server / "server.crt", server / "server.tls.key")
    keys = AdmittedKeys(server, root.deployment.read_cards(root.app), front_proxy.public_key_bytes)
    limits = largest_request(server), most_objects(largest_message(server))
    inner = flower_commands.loopback_address(root)
    with (
        deployment_lock.lock_deployment(root) as held,
        front_proxy.bind_port(listen, port) as door,
        front_proxy.run_proxy(door, inner, tls, keys, *limits, SentMark(root.sent_mark)) as is_open,
        superlink.run_superlink(root, flower_commands.superlink_command(root, inner), held) as process,
    ):
        executor = ExecutorWatch(process.pid)
        while process.poll() is None and is_open() and not executor.has_ended():
            time.sleep(CHECK_SECONDS)
        if (code := process.poll()) is not None:
            raise DiscreetError(
                f"The SuperLink has ended with exit code {code}, and so does the server.",
                fix=f"Start the server again, and then each run that was going on, by its name: it continues after "
                f"its last finished round. The SuperLink's log is {superlink.log_path(root)}",
            )
        if is_open():
            raise DiscreetError(
                "Flower's executor, which starts the runs, has ended, and so does the server.",
                fix="Start the server again, and then each run that was going on, by its name.",
            )
        return 1


def main(folder: str, listen: str) -> None:
    """Run the server of the deployment in `folder`, listening at the host `listen`; exit with its code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    end_with_parent(2 * superlink.END_SECONDS)  # `discreet deploy server`: without it nobody would end this process
    try:
        with write_logs(*environment_settings()):
            sys.exit(run_server(DeploymentFolder(Path(folder)), listen))
    except DiscreetError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main(*sys.argv[1:])
