"""`discreet deploy status`: which clients are online, and which runs a deployment has."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from discreet.cli.output import Json, emit
from discreet.errors import InvalidInput
from discreet.report.number_format import format_count

if TYPE_CHECKING:
    from discreet.deploy.deployment_folder import DeploymentFolder

Folder: TypeAlias = Annotated[Path, typer.Argument(metavar="DIR", hidden=True)]  # the docstrings describe it


def status(folder: Folder, as_json: Json = False) -> None:
    """Show the clients that are online, and the runs.

    The exit code is 1 if the server does not answer.
    """
    from discreet.deploy import online_clients, superlink

    root = open_deployment(folder)
    listed = superlink.list_nodes(root)
    nodes = None if listed is None else online_clients.add_client_names(root, listed)
    runs = list(_list_runs(root))
    emit(lambda: {"nodes": nodes, "runs": runs}, lambda: _status_lines(root, nodes, runs), as_json=as_json)
    raise typer.Exit(1 if nodes is None else 0)


def _status_lines(
    root: "DeploymentFolder", nodes: list[dict[str, Any]] | None, runs: list[dict[str, Any]]
) -> Iterator[str]:
    from discreet.deploy import online_clients

    if nodes is None:
        yield f"The server at {root.deployment.address} does not answer."
    else:
        there, total = sum(node.get("status") == "online" for node in nodes), len(root.deployment.clients)
        yield f"The server at {root.deployment.address} is up; {there} of {total} clients are online."
        for what, names in online_clients.client_status(root, nodes)._asdict().items():
            if names:
                yield f"  {what}: {', '.join(names)}"
    for run in runs:
        state = "done" if run["finished"] else "not done"
        yield f"  run {run['name']}: {format_count(run['rounds'], 'rounds')}, {state}"


def _list_runs(root: "DeploymentFolder") -> Iterator[dict[str, Any]]:
    from discreet.experiment.run_directory.run_record import RunRecord

    for folder in root.run_folders():
        record = RunRecord.open(folder)
        yield {"name": folder.name, "rounds": len(record.read_rounds()), "finished": record.is_finished()}


def open_deployment(folder: Path) -> "DeploymentFolder":
    """Open the deployment in a folder.

    Raises:
        InvalidInput: If there is none.
    """
    from discreet.deploy.deployment_folder import DeploymentFolder

    root = DeploymentFolder(folder)
    if not root.server.is_dir():
        raise InvalidInput(f"{folder} is not a deployment.", fix="Create one with: discreet deploy init")
    return root
