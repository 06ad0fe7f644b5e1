"""The section on containers of docs/guides/operate.md, command by command, where a container engine runs.

It needs `docker compose`, or podman with podman-compose, and a wheelhouse as the guide makes it, whose folder is in
DISCREET_WHEELS; DISCREET_PYTHON may name another base image than the guide's. Server and nodes are on one machine.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.deploy.test_guide import GUIDE, NAMES, ROOT, steps

pytestmark = pytest.mark.deploy
SECONDS = 1800
ENGINES = (("docker", "docker compose"), ("podman", "podman-compose"))


def find_compose() -> list[str]:
    """Return the command of a compose program whose engine runs; skip the test where there is none."""
    for engine, compose in ENGINES:
        words = shlex.split(compose)
        if shutil.which(engine) and shutil.which(words[0]) and _works([engine, "info"]) and _works([*words, "version"]):
            return words
    pytest.skip("no container runtime is running here")


def _works(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0


def find_wheels() -> Path:
    if "DISCREET_WHEELS" not in os.environ:
        pytest.skip("no wheelhouse for container images is named by DISCREET_WHEELS")
    return Path(os.environ["DISCREET_WHEELS"])


class Block(NamedTuple):
    """Commands of the guide, and whether the server's operator or each client types them."""

    commands: str
    is_servers: bool


def container_blocks() -> list[Block]:
    """Return the commands of the guide's section, without the first one, which creates the deployment."""
    text = (ROOT / "docs" / "guides" / "operate.md").read_text(encoding="utf-8")
    section = text.partition("\n## Containers\n")[2].partition("\n## ")[0]
    found = re.findall(r"([^\n]*)\n\n```sh\n(.*?)```", section, flags=re.DOTALL)
    blocks = [Block(commands, before.startswith(("The server", "And the server"))) for before, commands in found]
    assert [block.is_servers for block in blocks] == [False, False, True, False, True]
    return blocks


class Operator:
    """Types what the guide says, for all hospitals, in the folder of the containers."""

    def __init__(self, folder: Path, compose: list[str], wheels: Path) -> None:
        self.folder, self.compose, self.code = folder, compose, ""
        self.containers = folder / "hospitals" / "containers"
        shutil.copytree(ROOT / "examples", folder / "examples")
        for step in steps(GUIDE.read_text(encoding="utf-8")):
            if not step.command.startswith("discreet deploy enroll"):
                command = re.sub(r"--host \S+", "--host server --compose", step.command)
                self._run(re.sub(r"^(python|discreet)", rf"{Path(sys.executable).parent}/\1", command), folder)
            if "deploy init" in step.command:
                break
        shutil.copytree(wheels, self.containers / "wheels")

    def run_block(self, block: Block) -> str:
        """Run a block, a client's commands once for each hospital, and return what the last command printed."""
        printed = ""
        for line in block.commands.splitlines():
            command = line.replace("docker compose", shlex.join(self.compose)).replace("CODE", self.code)
            command = command.replace("> .env", ">> .env").replace("/data/north", str(self.folder))
            profiles = {"server": command}
            if not block.is_servers:
                profiles = {f"node-{name}": command.replace("north", name) for name in NAMES}
            printed = "".join(self._run(each, self.containers, profile) for profile, each in profiles.items())
            if codes := re.findall(r"All together: (\S+)", printed):
                assert codes == [codes[0]] * len(NAMES)
                self.code = codes[0]
        if "deploy enroll" in block.commands:
            for name in NAMES:
                card = self.containers / name / "node" / f"{name}.toml"
                shutil.copy(card, self.folder / "hospitals" / "app" / "clients")
        return printed

    def wait_for_words(self, words: str) -> None:
        """Read the server's log until it has these words."""
        command = [*self.compose, "--profile", "server", "logs", "--follow", "server"]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, cwd=self.containers, stdout=pipe, stderr=subprocess.STDOUT, text=True) as log:
            found = any(words in line for line in log.stdout or ())
            log.terminate()
        assert found, f"The server never said {words!r}."

    def end(self) -> None:
        everything = ",".join(("server", *(f"node-{name}" for name in NAMES)))
        self._run(shlex.join([*self.compose, "down", "--timeout", "30"]), self.containers, everything)

    def _run(self, command: str, folder: Path, profile: str = "") -> str:
        environment = {**os.environ, "COLUMNS": "1000", "COMPOSE_PROFILES": profile}
        ran = subprocess.run(
            ["sh", "-e", "-c", command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert ran.returncode == 0, f"{command}\n{ran.stdout[-3000:]}{ran.stderr[-3000:]}"
        return ran.stdout


@pytest.mark.timeout(2 * SECONDS)
def test_three_hospitals_train_in_containers_as_the_guide_says(tmp_path: Path) -> None:
    operator = Operator(tmp_path, find_compose(), find_wheels())
    try:
        *blocks, submit = container_blocks()
        for block in blocks:
            operator.run_block(block)
        operator.wait_for_words("The server is up")
        assert "Run 'first' is done after 5 rounds" in operator.run_block(submit)
    finally:
        operator.end()
    for name in NAMES:
        ledgers = list((operator.containers / name / "ledgers").glob("ledger-*.jsonl"))
        assert [path.stat().st_size > 0 for path in ledgers] == [True]
