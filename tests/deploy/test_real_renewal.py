"""Real processes before and after `discreet deploy renew`: runs succeed, and each client's ledger goes on counting."""

from pathlib import Path

import pytest

from tests.deploy.example_sites import PLAIN
from tests.deploy.real_deployment import CLIENTS, run_server

pytest.importorskip("flwr")
pytestmark = pytest.mark.deploy
ROUNDS = 3  # of PLAIN


def test_runs_succeed_after_certificate_and_authority_were_renewed_and_ledgers_go_on(tmp_path: Path) -> None:
    with run_server(tmp_path, PLAIN, allowed=2 * ROUNDS) as real:
        real.join(*CLIENTS)
        real.submit("first")
        assert real.submit_exit_code("first") == 0
        assert [real.count_releases(name) for name in CLIENTS] == [ROUNDS] * 3
        real.processes.discreet("refused", "deploy", "renew", "site")
        assert real.processes.exit_code("refused") == 2
        assert "is already running as process" in real.processes.output("refused")
        for name in (*CLIENTS, "server"):
            real.processes.end(name)
        real.processes.discreet("renewed", "deploy", "renew", "site", "--authority")
        assert real.processes.exit_code("renewed") == 0
        real.processes.discreet("server", "deploy", "server", "site")
        real.join(*CLIENTS)
        real.submit("second")
        assert real.submit_exit_code("second") == 0
        assert [real.count_releases(name) for name in CLIENTS] == [2 * ROUNDS] * 3
