"""/health and /metrics of real processes: a server that is up, and a node that has connected to it."""

import json
import re
from pathlib import Path

import pytest

from tests.deploy.example_sites import PLAIN
from tests.deploy.real_deployment import RealDeployment
from tests.deploy.test_health import ask, metric_names

pytest.importorskip("flwr")
pytestmark = pytest.mark.deploy
ADDRESS = "Health and metrics are at http://127.0.0.1:"


def health_port(site: RealDeployment, process: str) -> int:
    site.processes.wait_for_words(process, ADDRESS)
    found = re.search(rf"{re.escape(ADDRESS)}(\d+)/health", site.processes.output(process))
    assert found is not None
    return int(found[1])


def test_a_server_and_a_node_say_how_they_are_while_the_app_folder_cannot_be_written(tmp_path: Path) -> None:
    """Containers mount the app folder read-only, so no process may write there."""
    site = RealDeployment(tmp_path, PLAIN, 3)
    written = {path: path.stat().st_mtime_ns for path in [site.site.app, *site.site.app.rglob("*")]}
    try:
        site.processes.discreet("server", "deploy", "server", "site", "--health", "0")
        server = health_port(site, "server")
        site.processes.wait_for_words("server", "The server is up")
        assert json.loads(ask(server, "/health")[1])["status"] == "ok"
        names = ("client-0", "client-1", "client-2")
        for name in names:
            site.processes.discreet(name, "deploy", "client", name, "--health", "0")
        for name in names:
            site.processes.wait_for_words(name, "Connected to")
        node = health_port(site, "client-0")
        site.submit("first")
        assert site.submit_exit_code("first") == 0
        assert json.loads(ask(node, "/health")[1])["connected"] is True
        assert "discreet_rounds_answered_total 3\n" in ask(node, "/metrics")[1]
        shown = ask(server, "/metrics")[1]
        assert "discreet_rounds_played_total 3\n" in shown
        assert "discreet_superlink_up" in metric_names(shown)
        site.processes.discreet("status", "deploy", "status", "site", "--page", "status.html")
        assert site.processes.exit_code("status") == 0
        assert "3 of 3 clients are online" in site.processes.output("status")
    finally:
        site.processes.end_all()
    now = {path: path.stat().st_mtime_ns for path in [site.site.app, *site.site.app.rglob("*")]}
    assert now == written
