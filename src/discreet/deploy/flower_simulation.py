"""Run a deployment in Flower's simulation, where Ray plays the clients: a SuperLink on loopback for one run."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from discreet.deploy import deployment_lock, flower_commands, superlink
from discreet.deploy.deployed_run import DeployedRun
from discreet.deploy.local_deployment import CLIENTS_FOLDER, prepare_rehearsal
from discreet.deploy.site import Site
from discreet.deploy.submission_log import follow_run


def simulate(site: Site, name: str, say: Callable[[str], None]) -> tuple[Site, dict[str, Any]]:
    """Train one run whose clients check, count and answer as on their own machines.

    Returns:
        The rehearsal's folder, and how the run ended.
    """
    DeployedRun(site.rehearsal(name), name, is_rehearsal=True).check_resumable()
    rehearsal = prepare_rehearsal(site, name)
    say(f"Starting Flower's simulation of {len(rehearsal.deployment.clients)} clients, which takes a moment.")
    with _superlink(rehearsal):
        nodes = json.dumps(str((rehearsal.folder / CLIENTS_FOLDER).resolve()))
        command = flower_commands.run_command(rehearsal, name, nodes)
        return rehearsal, follow_run(rehearsal, name, command, flower_commands.flower_environment(rehearsal), say)


@contextmanager
def _superlink(site: Site) -> Iterator[None]:
    """Run a SuperLink without TLS and keys, reachable from this machine alone, while the block lasts."""
    options = f"options.num-supernodes = {len(site.deployment.clients)}\n"
    options += "options.backend.client-resources.num-cpus = 1\n"
    superlink.write_connection(site, f"insecure = true\n{options}")
    # Otherwise Ray would join the cluster that was last started on this machine, even if it is gone.
    own = {"RAY_ADDRESS": "local", **flower_commands.flower_environment(site)}
    with (
        deployment_lock.lock_deployment(site) as held,
        superlink.run_superlink(
            site, flower_commands.simulation_command(flower_commands.loopback_address(site)), held, own
        ) as process,
    ):
        superlink.await_superlink(site, lambda: process.poll() is None)
        yield
