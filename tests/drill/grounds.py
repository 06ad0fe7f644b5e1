"""A deployment for a drill: its processes can be held and killed, and its network, disks and clocks can fail."""

import os
import shutil
import struct
import subprocess
from pathlib import Path
from tempfile import mkdtemp

from tests.deploy.processes import DISCREET
from tests.deploy.real_deployment import CLIENTS, RealDeployment
from tests.drill.proxy import Proxy

HERE = Path(__file__).parent
INNER = "127.0.0.2"  # where the server listens if nodes reach it through a proxy
DISK = "64m"
FILL = "fill"  # the file that fills a disk


class Grounds:
    """A server and three nodes, started by `discreet deploy server` and `discreet deploy client`."""

    def __init__(self, text: str, *, with_faults: bool = False) -> None:
        self.folder = Path(mkdtemp(prefix="discreet-drill-"))
        self._settings = _hook_settings(self.folder)
        self.deployment = RealDeployment(self.folder, text, 4000)
        self.site, self.processes = self.deployment.site, self.deployment.processes
        self.proxy: Proxy | None = None
        self._disks: list[Path] = []
        if with_faults:
            self.proxy = Proxy((INNER, self.deployment.port), ("127.0.0.1", self.deployment.port))
            self._settings |= _build_clock(self.folder)
            self._disks = [part for part in (self.site.server, self.folder / CLIENTS[0]) if _mount_disk(part)]
        for name in ("server", *CLIENTS):
            self.start(name)
        self.processes.wait_for_words("server", "The server is up")
        for name in CLIENTS:
            self.processes.wait_for_words(name, "Connected to")

    def start(self, name: str) -> None:
        """Start the server or a node by its documented command."""
        what = ("client", name) if name in CLIENTS else ("server", "site")
        listen = ("--listen", INNER) if self.proxy is not None and name == "server" else ()
        self._run(name, *what, *listen)

    def submit(self, run: str) -> None:
        """Start a run, or resume it, by the documented command."""
        self._run(f"submit-{run}", "submit", "site", "--name", run)

    def _run(self, name: str, *command: str) -> None:
        settings = {**self._settings, "DRILL_CLOCK": str(self._clock(name))}
        if not self._clock(name).exists():
            self.set_clock(name, 0)
        self.processes.start(name, DISCREET, "deploy", *command, settings=settings)

    def set_clock(self, name: str, seconds: int) -> None:
        """Shift the clock of the processes of this name, and of those that they start."""
        path = self._clock(name)
        with open(path, "r+b" if path.exists() else "wb") as file:
            file.write(struct.pack("q", seconds))

    def _clock(self, name: str) -> Path:
        return self.folder / f"clock-{'server' if name.startswith('submit') else name}"

    @property
    def has_clocks(self) -> bool:
        return "LD_PRELOAD" in self._settings

    def has_disk(self, part: Path) -> bool:
        """Whether this folder is on a small disk of its own, which can be filled."""
        return part in self._disks

    def close(self, *, keep: bool = False) -> None:
        """End all processes, and unmount the disks unless they are to be kept."""
        self.processes.end_all()
        if self.proxy is not None:
            self.proxy.close()
        for part in [] if keep else self._disks:
            subprocess.run(["umount", "--lazy", str(part)], check=False, capture_output=True)


def fill_disk(part: Path) -> None:
    """Write until nothing more fits."""
    with open(part / FILL, "ab", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                continue


def make_read_only(part: Path, *, on: bool) -> None:
    """Forbid every new file and every opening for writing, also to root."""
    command = ["chattr", "-R", "+i" if on else "-i"] if os.getuid() == 0 else ["chmod", "-R", "a-w" if on else "u+w"]
    subprocess.run([*command, str(part)], check=False, capture_output=True)  # it complains of drafts that are gone


def _hook_settings(folder: Path) -> dict[str, str]:
    paths = [str(HERE / "hooks"), str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")]
    return {"DRILL_FOLDER": str(folder), "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def _build_clock(folder: Path) -> dict[str, str]:
    """Compile the library that shifts clocks. Returns the settings of processes with it: none without a compiler."""
    compiler, library = shutil.which("cc"), folder / "clock.so"
    if compiler is None:
        return {}
    source = str(HERE / "hooks" / "clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library)}


def _mount_disk(part: Path) -> bool:
    """Put this folder on a small disk in memory. Returns whether that is allowed here."""
    kept = part.with_name(f"{part.name}-before")
    part.rename(kept)
    part.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=700", "tmpfs", str(part)]
    mounted = subprocess.run(command, check=False, capture_output=True).returncode == 0
    shutil.copytree(kept, part, dirs_exist_ok=True)
    shutil.rmtree(kept)
    return mounted
