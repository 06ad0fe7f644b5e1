"""The server's process says why it ends."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("flwr")

from discreet.deploy import flower_commands
from discreet.deploy.server_process import run_server
from discreet.errors import DiscreetError
from tests.deploy.example_sites import PLAIN, create_site
from tests.deploy.processes import free_port

KILLED = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]


def test_a_superlink_that_is_killed_ends_the_server_with_the_reason_and_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = create_site(tmp_path, PLAIN, f"127.0.0.1:{free_port()}")
    monkeypatch.setattr(flower_commands, "superlink_command", lambda root, inner: KILLED)
    with pytest.raises(DiscreetError) as ended:
        run_server(site, "127.0.0.1")
    assert ended.value.problem == "The SuperLink has ended with exit code -9, and so does the server."
    assert ended.value.fix.startswith("Start the server again, and then each run that was going on, by its name")
