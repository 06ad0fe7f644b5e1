"""A deployment as its server has it on its disk: where everything lies."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from discreet.deploy.deployment import Deployment
from discreet.errors import InvalidInput
from discreet.experiment.run_directory import json_lines

APP, SERVER = "app", "server"  # what everybody holds, and what only the server does


@dataclass(frozen=True)
class Site:
    """The agreed folder, and beside it the server's keys, the SuperLink's state and the runs."""

    folder: Path

    @property
    def app(self) -> Path:
        return self.folder / APP

    @property
    def server(self) -> Path:
        return self.folder / SERVER

    @property
    def deployment(self) -> Deployment:
        return Deployment.open(self.app)

    @property
    def key_dir(self) -> Path:
        return self.server / "keys"

    def run(self, name: str) -> Path:
        if not name.replace("-", "").replace("_", "").isalnum():
            raise InvalidInput(f"A run is named by letters, digits, - and _, and got {name!r}.")
        return self.server / "runs" / name

    def rehearsal(self, name: str) -> "Site":
        """Where the run of this name is played by one machine."""
        return Site(self.folder / "rehearsals" / self.run(name).name)

    @contextmanager
    def lock_run(self, name: str) -> Iterator[None]:
        """While one process makes the run of this name, no other does, nor says how it ended; the lock names it."""
        path = self.run(name).with_name(f"{name}.lock")
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab") as file:
            process = path.read_text()
            json_lines.lock_file(
                file,
                f"The run {name!r} is going on already, as process {process}.",
                fix=f"Wait until it has ended, or end it first: kill {process}",
            )
            file.truncate(0)
            file.write(str(os.getpid()).encode())
            file.flush()
            yield

    def ended(self, name: str) -> Path:
        """Where it is said how the last start of this run ended."""
        return self.run(name).with_name(f"{name}.ended.json")
