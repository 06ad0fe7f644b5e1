"""`discreet deploy status`: which clients are online, how far the runs are, what they spent, and who refused."""

import os
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from discreet.cli.options import Number, number_option
from discreet.cli.output import Json, clear_screen, emit, print_note
from discreet.errors import InvalidInput
from discreet.part import Positive

if TYPE_CHECKING:
    from discreet.deploy.deployment_folder import DeploymentFolder

Folder: TypeAlias = Annotated[Path, typer.Argument(metavar="DIR", hidden=True)]  # the docstrings describe it


def status(
    folder: Folder,
    watch: Annotated[bool, typer.Option("--watch", help="Show it again and again, until Ctrl-C.")] = False,
    every: Annotated[
        float, number_option(Number("seconds", Positive), "SECONDS", "With --watch, the time between two looks.")
    ] = 10.0,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write it as one HTML page, for this server's operator.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the clients that are online, and the runs.

    For each run: its rounds, the ε it spent of the promised one, who refused and why, and why it stopped.

    The exit code is 1 if the server does not answer.
    """
    if watch and as_json:
        raise InvalidInput("--json prints one object, and --watch many pages.", fix="Leave one of them out.")
    root = open_deployment(folder)
    is_up = _show(root, page, with_time=watch, as_json=as_json)
    try:
        while watch:
            pause(every)
            clear_screen()
            is_up = _show(root, page, with_time=True, as_json=False)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None  # the usual way to end it
    raise typer.Exit(0 if is_up else 1)


def pause(seconds: float) -> None:
    """Wait until the next look."""
    time.sleep(seconds)


def _show(root: "DeploymentFolder", page: Path | None, *, with_time: bool, as_json: bool) -> bool:
    """Print the status, with the time if it is watched, and write its page. Returns whether the server answers."""
    from discreet.deploy.deployment_status import read_status
    from discreet.deploy.status_page import render_status
    from discreet.report.run_page import write_atomically

    found, now = read_status(root), datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
    emit(found.to_plain, lambda: [*([now] if with_time else []), *found.lines()], as_json=as_json)
    if page is not None:
        print_note(f"Wrote {write_atomically(page, render_status(found, now))}")
    return found.nodes is not None


def _outer_deployment(folder: Path) -> Path | None:
    """Return the deployment that this folder is inside of, relative where the folder is."""
    from discreet.deploy.deployment import DEPLOYMENT_FILE
    from discreet.deploy.deployment_folder import DeploymentFolder

    for outer in map(DeploymentFolder, folder.resolve().parents):
        if outer.server.is_dir() and (outer.app / DEPLOYMENT_FILE).is_file():
            return outer.folder if folder.is_absolute() else Path(os.path.relpath(outer.folder))
    return None


def open_deployment(folder: Path) -> "DeploymentFolder":
    """Open the deployment in a folder.

    Raises:
        InvalidInput: If there is none.
    """
    from discreet.deploy.deployment_folder import DeploymentFolder
    from discreet.deploy.file_switch import finish_switch

    root = DeploymentFolder(folder)
    if not root.server.is_dir():
        if (outer := _outer_deployment(folder)) is not None:
            raise InvalidInput(
                f"{folder} is not a deployment, but a folder inside the deployment {outer}.",
                fix=f"Name {outer} instead.",
            )
        raise InvalidInput(f"{folder} is not a deployment.", fix="Create one with: discreet deploy init")
    finish_switch(root.folder, root.server)  # of a renewal that was interrupted
    return root
