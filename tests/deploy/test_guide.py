"""docs/guides/deploy.md, command by command: a reader will see what it prints, except for the numbers."""

import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.deploy.processes import Processes, free_port

pytest.importorskip("flwr")
pytestmark = pytest.mark.deploy

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "deploy.md"
SECTIONS = 6  # the sections to follow in order; the later ones are about failures
NAMES = ("north", "south", "east")
STAYS = {"server": "The server is up", "client": "Connected to"}
CODE = re.compile(r"\b[0-9a-f]{4}(?:-[0-9a-f]{4}){4}(?:(?:-[0-9a-f]{4}){5})?\b")  # of one card, or of all
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?")


class Step(NamedTuple):
    command: str
    printed: str


def steps(guide: str) -> list[Step]:
    """Return the commands of the guide, each with the output that the guide shows."""
    told = re.split(r"^## (?=\d)", guide, flags=re.MULTILINE)[1 : SECTIONS + 1]
    told[-1] = told[-1].partition("\n## ")[0]
    blocks = [re.findall(r"```sh\n(.*?)```(?:\n```text\n(.*?)```)?", each, flags=re.DOTALL) for each in told]
    return [Step(command.strip(), printed.strip()) for each in blocks for command, printed in each]


def plain(line: str) -> str:
    """Return a line without what differs by machine and day."""
    return NUMBER.sub("#", CODE.sub("CODE", line)).strip()


def everybody(command: str) -> list[str]:
    """Repeat for all hospitals what the guide shows for one."""
    others = NAMES if re.search(r"deploy (enroll|accept|client)\b", command) else ("north",)
    return [command.replace("north", name) for name in others]


class Replay:
    def __init__(self, folder: Path) -> None:
        self.folder, self.processes, self.port = folder, Processes(folder), free_port()
        self.codes: dict[str, str] = {}  # those in the guide, and those of today

    def output(self, step: Step) -> str:
        """Run the step for all hospitals, and return the output of the first command."""
        command = CODE.sub(lambda found: self.codes.get(found[0], found[0]), step.command)
        command = re.sub(r"--port \d+", f"--port {self.port}", command)
        said, *_ = [self._run(each) for each in everybody(command)]
        for ours, theirs in zip(step.printed.splitlines(), said.splitlines(), strict=False):
            self.codes.update(zip(CODE.findall(ours), CODE.findall(theirs), strict=False))
        return said

    def _run(self, command: str) -> str:
        words = shlex.split(command)
        if words[0] == "python":
            words[0] = sys.executable
        elif words[0] == "discreet":
            words[0] = str(Path(sys.executable).with_name("discreet"))
        name = f"{len(self.processes.started)}-{re.sub(r'[^a-z]+', '-', command)[:60]}"
        self.processes.start(name, *words)
        if (stays := STAYS.get(words[2])) is not None:
            self.processes.wait_for_words(name, stays)
        else:
            assert self.processes.exit_code(name) == 0, f"{command}: {self._log(name)}"
        return self._log(name).replace(f"{self.folder}/", "")

    def _log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()


def test_every_command_of_the_guide_works_and_prints_what_the_guide_shows(tmp_path: Path) -> None:
    """Unlike the other deployments of these tests, this one has no seed, and its clients have their own tables."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    replay = Replay(tmp_path)
    try:
        for step in steps(GUIDE.read_text(encoding="utf-8")):
            found = [plain(line) for line in replay.output(step).splitlines()]
            missing = [line for line in step.printed.splitlines() if line != "…" and plain(line) not in found]
            assert not missing, f"{step.command} did not print {missing}, but {found}"
    finally:
        replay.processes.end_all()
