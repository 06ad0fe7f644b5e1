"""Flower's own simulation of a deployment, in which Ray plays the clients: a SuperLink on loopback for one run."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from discreet.deploy import deployment_lock, flower_commands
from discreet.deploy.deployed_run import check_resumable
from discreet.deploy.local_deployment import CLIENTS_FOLDER, prepare_rehearsal
from discreet.deploy.site import Site
from discreet.deploy.submission_log import follow_run


def simulate(site: Site, name: str, say: Callable[[str], None]) -> tuple[Site, dict[str, Any]]:
    """One run, every client of which checks, counts and answers as on its own machine; where it lies, and its end."""
    check_resumable(site.rehearsal(name), name, rehearsal=True)
    played = prepare_rehearsal(site, name)
    say(f"Starting Flower's simulation of {len(played.deployment.clients)} clients, which takes a moment.")
    with _superlink(played):
        nodes = json.dumps(str((played.folder / CLIENTS_FOLDER).resolve()))
        command = flower_commands.run_command(played, name, nodes)
        return played, follow_run(played, name, command, flower_commands.flower_environment(played), say)


@contextmanager
def _superlink(site: Site) -> Iterator[None]:
    """Without TLS or keys: it is heard on this machine alone, and ends with the run."""
    options = f"options.num-supernodes = {len(site.deployment.clients)}\n"
    options += "options.backend.client-resources.num-cpus = 1\n"
    flower_commands.write_connection(site, f"insecure = true\n{options}")
    # Ray would otherwise join whatever cluster was last started on this machine, even one that is gone.
    own = {"RAY_ADDRESS": "local", **flower_commands.flower_environment(site)}
    with (
        deployment_lock.lock_deployment(site) as held,
        flower_commands.run_superlink(
            site, flower_commands.simulation_command(flower_commands.loopback_address(site)), held, own
        ) as process,
    ):
        flower_commands.await_superlink(site, lambda: process.poll() is None)
        yield
