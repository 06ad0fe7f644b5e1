"""The folder of a deployment on the server's machine, and the paths in it."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from discreet.deploy.deployment import Deployment
from discreet.durable_files import ProcessLock, is_locked
from discreet.errors import InvalidInput

APP, SERVER = "app", "server"  # the app folder that everybody has, and the folder that only the server has
RUNS = "runs"


@dataclass(frozen=True)
class DeploymentFolder:
    """A deployment's folder: the app folder, the server's keys, the SuperLink's state and the runs."""

    folder: Path

    @property
    def app(self) -> Path:
        return self.folder / APP

    @property
    def server(self) -> Path:
        return self.folder / SERVER

    @property
    def deployment(self) -> Deployment:
        """The content of deployment.toml, read anew each time."""
        return Deployment.open(self.app)

    @property
    def key_dir(self) -> Path:
        return self.server / "keys"

    @property
    def sent_mark(self) -> Path:
        """The file by which a run tells the proxy that it has sent messages."""
        return self.server / "sent"

    def run(self, name: str) -> Path:
        """Return the run directory of the run `name`. Refuse a name that is not letters, digits, - and _."""
        if not name.replace("-", "").replace("_", "").isalnum():
            raise InvalidInput(f"The name of a run must be letters, digits, - and _, and got {name!r}.")
        return self.server / RUNS / name

    def run_folders(self) -> list[Path]:
        """Return the directories of all runs. Hidden ones are drafts of runs that are being created."""
        return sorted(path.parent for path in (self.server / RUNS).glob("[!.]*/run.json"))

    def rehearsal(self, name: str) -> "DeploymentFolder":
        """Return the folder in which one machine rehearses the run `name`."""
        return DeploymentFolder(self.folder / "rehearsals" / self.run(name).name)

    def lock_path(self, name: str) -> Path:
        """Return the lock file of the run `name`."""
        return self.run(name).with_name(f"{name}.lock")

    def lock_run(self, name: str) -> ProcessLock:
        """Lock the run `name`, so that one process at a time trains it and writes how it ended."""
        path = self.lock_path(name)
        path.parent.mkdir(parents=True, exist_ok=True)

        def run_going_on(process: str) -> InvalidInput:
            since = datetime.fromtimestamp(path.stat().st_mtime).astimezone()  # when the process wrote its id
            return InvalidInput(
                f"The run {name!r} is already going on, as process {process} since {since:%Y-%m-%d %H:%M:%S}.",
                fix=f"Wait until it has ended, or end it first, which keeps every finished round: kill {process}",
            )

        return ProcessLock(path, run_going_on)

    def runs_going_on(self) -> list[str]:
        """Return the names of the runs of which a process trains one, or waits for its clients."""
        return sorted(lock.stem for lock in (self.server / RUNS).glob("[!.]*.lock") if is_locked(lock))

    def refusals_file(self, name: str) -> Path:
        """Return the file that lists what clients refused in the run `name`."""
        return self.run(name).with_name(f"{name}.refusals.jsonl")

    def end_file(self, name: str) -> Path:
        """Return the file that says how the last start of the run `name` ended."""
        return self.run(name).with_name(f"{name}.ended.json")

    def stop_file(self, name: str) -> Path:
        """Return the file that exists if whoever submitted the run has stopped its last start."""
        return self.run(name).with_name(f"{name}.stopped")
