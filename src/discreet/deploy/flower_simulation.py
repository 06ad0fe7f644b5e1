"""Run a deployment in Flower's simulation, where Ray plays the clients: a SuperLink on loopback for one run."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from discreet.deploy import deployment_lock, flower_commands, superlink
from discreet.deploy.deployed_run import DeployedRun, trusted_digests
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.local_deployment import CLIENTS_FOLDER, prepare_rehearsal
from discreet.deploy.submission_log import follow_run
from discreet.trust import Trust


def simulate(
    root: DeploymentFolder, name: str, trust: Trust, say: Callable[[str], None]
) -> tuple[DeploymentFolder, dict[str, Any]]:
    """Train one run whose clients check, count and answer as on their own machines.

    Args:
        root: The deployment's folder.
        name: The run's name.
        trust: Which code of the app folder may run: the clients' policies here allow what it allows.
        say: Prints a line.

    Returns:
        The rehearsal's folder, and how the run ended.
    """
    DeployedRun(root.rehearsal(name), name, is_rehearsal=True).check_resumable()
    digests = trusted_digests(root.app, trust)
    rehearsal = prepare_rehearsal(root, name)
    say(f"Starting Flower's simulation of {len(rehearsal.deployment.clients)} clients, which takes a moment.")
    with _superlink(rehearsal):
        nodes = json.dumps(str((rehearsal.folder / CLIENTS_FOLDER).resolve()))
        command = flower_commands.run_command(rehearsal, name, digests, nodes)
        return rehearsal, follow_run(rehearsal, name, command, flower_commands.flower_environment(rehearsal), say)


@contextmanager
def _superlink(root: DeploymentFolder) -> Iterator[None]:
    """Run a SuperLink without TLS and keys, reachable from this machine alone, while the block lasts."""
    options = f"options.num-supernodes = {len(root.deployment.clients)}\n"
    options += "options.backend.client-resources.num-cpus = 1\n"
    superlink.write_connection(root, f"insecure = true\n{options}")
    # Otherwise Ray would join the cluster that was last started on this machine, even if it is gone.
    own = {"RAY_ADDRESS": "local", **flower_commands.flower_environment(root)}
    with (
        deployment_lock.lock_deployment(root) as held,
        superlink.run_superlink(
            root, flower_commands.simulation_command(flower_commands.loopback_address(root)), held, own
        ) as process,
    ):
        superlink.await_superlink(root, lambda: process.poll() is None)
        yield
