"""The status of a deployment at its server: who is online, how far each run is, what it spent, and who refused."""

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from discreet.deploy import online_clients, superlink
from discreet.deploy.deployment import FIRST_MEMBERSHIP
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.online_clients import ClientStatus
from discreet.deploy.run_refusals import ClientRefusal, read_refusals
from discreet.durable_files import is_locked
from discreet.errors import InvalidInput, shorten_names
from discreet.experiment.run_directory.run_data import RunData, read_run
from discreet.privacy.wording import compact, round_up
from discreet.report.number_format import format_count

SHOWN_PROBLEMS = 5  # of a run, in text: the last ones, among them why it stopped


@dataclass(frozen=True)
class RunStatus:
    """One run.

    Attributes:
        rounds: Rounds that were played, lost ones included.
        planned: Rounds of the experiment.
        state: "done", "going on", "stopped" (it can be continued) or "not done" (its process was killed).
        epsilon: The ε spent so far, by the run's own ledger. None before the first round that was evaluated.
        promised: The promised ε, and `delta` its δ. None if nothing is promised.
        stopped: Why the run ended early.
        lost: Why a round was lost, by its number.
    """

    name: str
    rounds: int
    planned: int | None
    state: str
    epsilon: float | None
    promised: float | None
    delta: float | None
    stopped: str | None
    lost: Mapping[int, str]
    refusals: tuple[ClientRefusal, ...]

    @property
    def budget(self) -> str:
        """The ε spent, of the promised one."""
        spent = "none yet" if self.epsilon is None else round_up(self.epsilon)
        return spent if self.promised is None else f"{spent} of {compact(self.promised)}"

    @property
    def progress(self) -> str:
        """The rounds that were played, of those planned."""
        if self.planned is None or self.state == "done":
            return format_count(self.rounds, "rounds")
        return f"{self.rounds:,} of {format_count(self.planned, 'rounds')}"

    @property
    def problems(self) -> list[str]:
        """Who refused and why, then why rounds were lost, then why the run stopped; no reason twice."""
        lost = [f"Round {round} was lost: {why}" for round, why in self.lost.items() if why not in (self.stopped or "")]
        return [*map(str, self.refusals), *lost, *([self.stopped] if self.stopped else [])]


@dataclass(frozen=True)
class DeploymentStatus:
    """A deployment. `nodes` and `clients` are None if the server does not answer.

    `membership` is the number of its list of clients, and `awaited` says why that list is not in force yet. `folder` is
    its folder, as the user named it.
    """

    address: str
    names: tuple[str, ...]
    nodes: list[dict[str, Any]] | None
    clients: ClientStatus | None
    runs: tuple[RunStatus, ...]
    membership: int = FIRST_MEMBERSHIP
    awaited: str | None = None
    folder: Path = Path("DIR")

    @property
    def headline(self) -> str:
        if self.clients is None:
            start = f"discreet deploy server {shlex.quote(str(self.folder))}"
            return f"The server at {self.address} does not answer. Start it with: {start}"
        online = len(self.clients.online)  # a node may be that of a client that was revoked
        return f"The server at {self.address} is up; {online} of {len(self.names)} clients are online."

    def to_plain(self) -> dict[str, Any]:
        """Return the status as plain data, for JSON."""
        runs = [{**asdict(run), "finished": run.state == "done"} for run in self.runs]
        clients = None if self.clients is None else self.clients._asdict()
        membership = {"number": self.membership, "awaited": self.awaited}
        return {
            "server": self.address,
            "nodes": self.nodes,
            "clients": clients,
            "membership": membership,
            "runs": runs,
        }

    def lines(self) -> Iterator[str]:
        """Yield the status as lines of text."""
        yield self.headline
        for what, names in (self.clients._asdict() if self.clients else {}).items():
            if names:
                yield f"  {what}: {shorten_names(names)}"
        if self.awaited is not None:
            yield f"  {self.awaited}"
        for run in self.runs:
            yield f"  run {run.name}: {run.progress}, {run.state}, ε {run.budget}"
            hidden = len(run.problems) - SHOWN_PROBLEMS
            if hidden > 0:
                yield f"    {hidden:,} more in --json and --page"
            yield from (f"    {problem}" for problem in run.problems[-SHOWN_PROBLEMS:])


def read_status(root: DeploymentFolder) -> DeploymentStatus:
    """Ask the SuperLink for its nodes, and read the files of all runs. No code of an experiment runs."""
    listed = superlink.list_nodes(root)
    nodes = None if listed is None else online_clients.add_client_names(root, listed)
    clients = None if nodes is None else online_clients.client_status(root, nodes)
    deployment = root.deployment
    names = tuple(client.name for client in deployment.clients)
    runs = tuple(_read_run_status(root, folder) for folder in root.run_folders())
    awaited = _awaited_signatures(root) if deployment.membership != FIRST_MEMBERSHIP else None
    return DeploymentStatus(
        deployment.address, names, nodes, clients, runs, deployment.membership, awaited, root.folder
    )


def _awaited_signatures(root: DeploymentFolder) -> str | None:
    """Say whose signature or card the list of clients waits for, None if it is in force."""
    from discreet.deploy.app_folder import AppFolder  # reads the experiment, which takes a second
    from discreet.deploy.membership import check_in_force

    try:
        check_in_force(AppFolder.open(root.app))
    except InvalidInput as missing:
        return missing.problem
    return None


def _read_run_status(root: DeploymentFolder, folder: Path) -> RunStatus:
    run = read_run(folder)
    is_done = run.outcome.get("stopped", "unfinished") is None
    stopped = None if is_done else _stop_reason(root, folder.name, run)
    lock = root.lock_path(folder.name)
    is_going_on = lock.exists() and is_locked(lock)
    state = "done" if is_done else "stopped" if stopped else "not done"
    return RunStatus(
        name=folder.name,
        rounds=len(run.rounds),
        planned=run.planned_rounds,
        state="going on" if is_going_on else state,
        epsilon=_spent_epsilon(run),
        promised=run.promise.epsilon if run.promise else None,
        delta=run.promise.delta if run.promise else None,
        stopped=None if is_going_on else stopped,
        lost={number: str(line["lost"]) for number, line in run.rounds.items() if "lost" in line},
        refusals=tuple(read_refusals(root.refusals_file(folder.name))),
    )


def _spent_epsilon(run: RunData) -> float | None:
    if run.main_guarantee is not None:
        return run.main_guarantee.epsilon
    return next(reversed(run.series("epsilon").values()), None)


def _stop_reason(root: DeploymentFolder, name: str, run: RunData) -> str | None:
    """Return why the last start of a run ended before its last round, None if nothing says so."""
    if root.stop_file(name).exists():
        return "It was stopped by whoever submitted it. Submit the same name again to continue it."
    return run.stop_reason or _end_error(root.end_file(name))


def _end_error(path: Path) -> str | None:
    """Return the error with which the last start of a run ended, None if it ended without one."""
    try:
        error = json.loads(path.read_text(encoding="utf-8")).get("error")
    except (OSError, ValueError, AttributeError):
        return None
    return error if isinstance(error, str) else None
