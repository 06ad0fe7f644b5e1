"""Run `discreet` inside the test, through its own error boundary."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from discreet.cli.main import run


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Discreet = Callable[..., Ran]


@pytest.fixture
def discreet(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Discreet:
    monkeypatch.setenv("COLUMNS", "80")

    def command(line: str, *more: object) -> Ran:
        code = run([*line.split(), *map(str, more)])
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return command
