"""The health of a deployment's server, from its files and its SuperLink: nothing in it is about clients' data."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.code_version import read_code_version
from discreet.deploy import flower_commands
from discreet.deploy.certificates import expiry_time
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.health_server import Health, Metric
from discreet.experiment.configuration import toml_document
from discreet.experiment.run_directory.run_files import RunFiles, json_number


@dataclass(frozen=True)
class ServerHealth:
    """Reads the state of a server.

    Attributes:
        root: The deployment's folder.
        is_running: Whether the server's process is alive.
        started: When the server was started, in seconds since 1970.
    """

    root: DeploymentFolder
    is_running: Callable[[], bool]
    started: float = field(default_factory=time.time)

    def read(self) -> Health:
        """Return the state. It names no client, and counts only what deployment.toml and the run files make public."""
        superlink = flower_commands.is_listening(flower_commands.loopback_address(self.root))
        problem = None
        if not self.is_running():
            problem = "The server's process has ended."
        elif not superlink:
            problem = "The SuperLink takes no connections."
        facts = {"role": "server", "version": read_code_version().version}
        return Health(problem, facts, [*common_metrics("server", self.started), *self._metrics(superlink=superlink)])

    def _metrics(self, *, superlink: bool) -> Iterator[Metric]:
        yield Metric("discreet_superlink_up", "Whether the SuperLink takes connections.", int(superlink))
        yield certificate_metric(self.root.server / "server.crt")
        yield Metric("discreet_clients_declared", "Clients in deployment.toml.", len(self.root.deployment.clients))
        resolved = self.root.app / "resolved.toml"
        planned = toml_document.parse_toml(toml_document.read_toml_text(resolved), str(resolved))
        yield Metric("discreet_rounds_planned", "Rounds of the experiment.", int(planned["rounds"]))
        privacy = planned.get("privacy") or {}
        if (epsilon := _largest(privacy.get("epsilon"))) is not None:
            against = {"against": str(privacy.get("against", ""))}
            yield Metric("discreet_promised_epsilon", "The promised epsilon, the largest.", epsilon, against)
        runs = [RunFiles(folder) for folder in self.root.run_folders()]
        finished = sum(run.outcome().get("stopped", "unfinished") is None for run in runs)
        for state, count in (("finished", finished), ("unfinished", len(runs) - finished)):
            yield Metric("discreet_runs", "Runs of this deployment.", count, {"state": state})
        played = sum(len(run.rounds()) for run in runs)
        yield Metric("discreet_rounds_played_total", "Rounds of all runs, lost ones included.", played)


def common_metrics(role: str, started: float) -> Iterator[Metric]:
    """Yield what a server and a node have in common."""
    labels = {"role": role, "version": read_code_version().version}
    yield Metric("discreet_info", "Which process this is, and its version.", 1, labels)
    yield Metric("discreet_start_time_seconds", "When it was started, in seconds since 1970.", round(started, 3))


def certificate_metric(path: Path) -> Metric:
    """Return when a certificate expires."""
    what = "When the server's certificate or its authority expires, in seconds since 1970."
    return Metric("discreet_certificate_expiry_seconds", what, expiry_time(path))


def _largest(epsilon: Any) -> float | None:
    """Return a promised ε; the largest, if clients have their own."""
    values = [json_number(each) for each in (epsilon if isinstance(epsilon, list) else [epsilon])]
    return max((value for value in values if value is not None), default=None)
