"""`discreet plan --interactive`: a page until Ctrl-C."""

import json
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.cli.conftest import Discreet
from tests.small_experiment import SMALL


@pytest.mark.skipif(sys.platform == "win32", reason="there Ctrl-C is no signal that one process sends another")
def test_it_serves_until_it_is_interrupted_and_then_ends_well(tmp_path: Path):
    (tmp_path / "small.toml").write_text(SMALL)
    line = [sys.executable, "-c", "from discreet.cli.main import main; main()", "plan", "small.toml", "--json"]
    serving = subprocess.Popen(
        [*line, "--interactive", "--no-browser"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    assert serving.stdout is not None
    url = json.loads(serving.stdout.readline())["url"]
    with urlopen(url, timeout=60) as page:
        assert b"What privacy costs" in page.read()
    serving.send_signal(signal.SIGINT)
    out, err = serving.communicate(timeout=60)
    assert (serving.returncode, out, err) == (0, "", "")
    assert [each.name for each in tmp_path.iterdir()] == ["small.toml"]


def test_the_browser_is_opened_at_the_page_that_is_printed(discreet: Discreet, monkeypatch: pytest.MonkeyPatch):
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)

    def interrupt(self: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("discreet.planning.planner.planner_server.PlannerServer.serve_forever", interrupt)
    ran = discreet("plan --interactive")
    assert (ran.code, ran.err) == (0, "")
    (url,) = opened
    assert url in ran.out.split()
    assert "Press Ctrl-C to end it" in ran.out
    assert discreet("plan --interactive --no-browser").code == 0
    assert len(opened) == 1


@pytest.mark.parametrize(
    "line", ["--port 8000", "--no-browser", "--interactive --port 0", "--interactive --port 70000"]
)
def test_a_line_that_cannot_be_meant_is_refused(line: str, discreet: Discreet):
    ran = discreet(f"plan {line}")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("port", ["0", "70000", "-1", "80.5"])
def test_the_ports_that_there_are_are_named(port: str, discreet: Discreet):
    said = discreet(f"plan --interactive --port {port}").err
    assert f"'--port': must be a whole number from 1 to 65535, and got {port}." in said
