"""Run in a separate process: a child is killed by SIGKILL before each file operation that creates a run.

It forks, so that torch is imported once; `test_run_creation.py` reads what it prints.
"""

import json
import os
import signal
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import torch

from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.entry_points import main as run_entry_point
from tests.deploy.example_sites import PLAIN, Wire, connect_nodes, create_site
from tests.experiment.crashes import child

EXPERIMENT = PLAIN.replace("seed = 7\n", "").replace("rounds = 3", "rounds = 1")
CHANGES = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate"}  # names of audit events; os.replace renames
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class CreationEnd(BaseException):
    """The run has been created. Nothing of ours catches this."""


class CreatedWire(Wire):
    """A network that ends the run when it is used for the first time: the run has been created by then."""

    def nodes(self) -> list[int]:
        raise CreationEnd


def die_before_change(number: int, folder: Path) -> None:
    """Kill this process before the change with this number, counted from 1, of a file below `folder`."""
    changes = 0

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal changes
        if event not in CHANGES and (event != "open" or not arguments[2] & WRITING):
            return
        if not isinstance(arguments[0], str | os.PathLike) or folder not in Path(arguments[0]).parents:
            return
        changes += 1
        if changes == number:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


def submit(folder: Path, name: str) -> None:
    """Train the run as the server's process does, with all clients in this process."""
    site = DeploymentFolder(folder / "site")
    run_entry_point(lambda *_: connect_nodes(folder, site, []), _settings(site, name), lambda text: None)
    assert json.loads(site.end_file(name).read_text())["exit_code"] == 0


def create(folder: Path, name: str, number: int = 0) -> None:
    """Create the run, or resume it, up to its first message; die before the change with this number, if not 0."""
    site = DeploymentFolder(folder / "site")
    if number:
        die_before_change(number, site.server)
    with suppress(CreationEnd):
        run_entry_point(lambda *_: CreatedWire({}), _settings(site, name), lambda text: None)


def _settings(site: DeploymentFolder, name: str) -> dict[str, str]:
    return {"folder": str(site.folder), "name": name}


def main(folder: Path) -> dict[str, Any]:
    """Kill one run before each change, then submit another run and each of them again.

    Returns:
        The number of killed runs, the exit codes of the others, and the names of the drafts that are left.
    """
    torch.set_num_threads(1)
    create_site(folder, EXPERIMENT)
    create(folder, "unbroken")  # accounts for the experiment, once for all forks
    killed = 0
    while (last := child(partial(create, folder, f"run-{killed}", killed + 1))) == -signal.SIGKILL:
        killed += 1
    other = child(partial(submit, folder, "other"))
    again = [child(partial(create, folder, f"run-{number}")) for number in range(killed)]
    runs = DeploymentFolder(folder / "site").run("other").parent
    return {
        "killed": killed,
        "last": last,
        "other": other,
        "again": again,
        "drafts": [path.name for path in runs.glob(".*")],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]))))
