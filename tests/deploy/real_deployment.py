"""A deployment with real processes on this machine."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.deploy.app_folder import AppFolder
from discreet.deploy.client_ledger import budget_for_run
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.policy import ClientFolder
from discreet.privacy.ledger import Ledger
from tests.deploy.example_sites import create_site, edit_policy
from tests.deploy.processes import Processes, free_port

QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
CLIENTS = ("client-0", "client-1", "client-2")
Line = dict[str, object]  # of rounds.jsonl


@contextmanager
def run_server(folder: Path, text: str, allowed: int) -> "Iterator[RealDeployment]":
    """Run a server for an experiment whose owners allow `allowed` rounds, and a tenth more."""
    made = RealDeployment(folder, text, allowed)
    try:
        made.processes.discreet("server", "deploy", "server", "site")
        yield made
    finally:
        made.processes.end_all()


class RealDeployment:
    def __init__(self, folder: Path, text: str, allowed: int) -> None:
        self.folder, self.processes, self.port = folder, Processes(folder), free_port()
        self.site: DeploymentFolder = create_site(folder, text, f"127.0.0.1:{self.port}")
        for name in CLIENTS:
            self._allow(folder / name, allowed)

    def join(self, *clients: str) -> None:
        """Start these clients as nodes."""
        for name in clients:
            self.processes.discreet(name, "deploy", "client", name)
        self.processes.wait_for_words("server", "The server is up")
        for name in clients:
            self.processes.wait_for_words(name, "Connected to")

    def join_by_supernode(self, client: str) -> None:
        """Start this client as the executor of a stock SuperNode, which Flower's own command starts."""
        host, port = "127.0.0.1", str(free_port())
        self.processes.discreet(client, "deploy", "client", client, "--supernode", f"{host}:{port}")
        self.processes.start(
            "supernode",
            str(Path(sys.executable).with_name("flower-supernode")),
            *("--superlink", f"127.0.0.1:{self.port}", "--root-certificates", str(self.site.app / "ca.crt")),
            *("--auth-supernode-private-key", str(self.folder / client / "node.key")),
            *("--host", host, "--port", port, "--isolation", "process"),
            settings=QUIET,
        )
        self.processes.wait_for_words("supernode", "SuperNode ID:")

    def mark_bundle(self) -> Path:
        """Make the submitted bundle write a file wherever its client part is imported, and return the file's path."""
        mark, bundle = self.folder / "written-by-the-bundle", self.site.app / "client_app.py"
        bundle.write_text(f"open({str(mark)!r}, 'w').close()\n{bundle.read_text()}")
        return mark

    def submit(self, name: str) -> None:
        self.processes.discreet(f"submit-{name}", "deploy", "submit", "site", "--name", name)

    def submit_exit_code(self, name: str) -> int:
        return self.processes.exit_code(f"submit-{name}")

    def rounds(self, name: str) -> list[Line]:
        path = self.site.run(name) / "rounds.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def wait_for_rounds(self, name: str, rounds: int) -> None:
        """Wait until the run has completed `rounds` rounds."""
        self._until_rounds(name, lambda lines: len(lines) >= rounds, f"{rounds} rounds of {name}")

    def until_a_round_of(self, name: str, clients: int) -> None:
        self._until_rounds(
            name,
            lambda lines: any(line["clients"] == clients for line in lines),
            f"a round of {name} with {clients} clients",
        )

    def _until_rounds(self, name: str, enough: Callable[[list[Line]], bool], awaited: str) -> None:
        """Wait for rounds. If the run ends before, the test fails at once."""
        submitted = f"submit-{name}"
        self.processes.wait_until(lambda: self.processes.has_ended(submitted) or enough(self.rounds(name)), awaited)
        assert enough(self.rounds(name)), (
            f"{submitted} ended before {awaited}: {self.processes.output(submitted)[-2000:]}"
        )

    def count_releases(self, client: str) -> int:
        """Return the number of releases in a client's own ledger."""
        ledgers = [Ledger.open(each) for each in (self.folder / client).glob("ledger-*.jsonl")]
        assert all(each.verify()["records"] for each in ledgers)
        return sum(each.summary()["releases"]["committed"] for each in ledgers)

    def _allow(self, node: Path, rounds: int) -> None:
        """Write a budget for `rounds` rounds into the policy, as its owner would before the node starts."""
        app = AppFolder.open(self.site.app)
        policy = node / "policy.toml"
        line = next(each for each in policy.read_text().splitlines() if each.startswith("epsilon"))
        budget = ClientFolder.open(node).policy.budgets[0]
        allowed = budget_for_run(budget, app.experiment.algorithm, app.population, rounds)
        edit_policy(node, line, f"epsilon = {allowed.epsilon}")
