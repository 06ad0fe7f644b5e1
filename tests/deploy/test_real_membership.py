"""Real processes while clients are added, revoked and given new keys: runs go on, and so does each ledger."""

import json
from pathlib import Path

import pytest

from discreet.deploy.membership_change import take_card
from tests.deploy.hospital_sites import SECURE_TABLE, accept_all, create_hospitals, enroll_hospitals
from tests.deploy.processes import Processes, free_port
from tests.deploy.test_membership import FOUR, THREE, count_releases, widen_budgets

pytest.importorskip("flwr")
pytestmark = pytest.mark.deploy
ROUNDS = 12


def test_a_client_is_added_and_another_revoked_during_a_run_and_ledgers_go_on(tmp_path: Path) -> None:
    text = SECURE_TABLE.replace("rounds = 2", f"rounds = {ROUNDS}")
    site = create_hospitals(tmp_path, *THREE, text=text, address=f"127.0.0.1:{free_port()}")
    enroll_hospitals(tmp_path, site, *THREE)
    accept_all(tmp_path, site, *THREE)
    widen_budgets(tmp_path, *THREE)
    processes = Processes(tmp_path)

    def start(*clients: str) -> None:
        processes.discreet("server", "deploy", "server", "site")
        processes.wait_for_words("server", "The server is up")
        for name in clients:
            processes.discreet(name, "deploy", "client", name)
        for name in clients:
            processes.wait_for_words(name, "Connected to")

    def stop(*names: str) -> None:
        for name in names:
            processes.end(name)

    def run(name: str, *words: str) -> str:
        processes.discreet(name, "deploy", *words)
        assert processes.exit_code(name) == 0, processes.output(name)
        return processes.output(name)

    def rounds(name: str) -> list[dict[str, int]]:
        path = site.run(name) / "rounds.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    try:
        start(*THREE)
        run("submit-first", "submit", "site", "--name", "first")
        assert [line["clients"] for line in rounds("first")] == [3] * ROUNDS
        stop(*THREE, "server")
        assert "Membership 2 has north, south, east, west." in run("add", "add", "site", "west=70")
        enroll_hospitals(tmp_path, site, "west")
        widen_budgets(tmp_path, "west")
        accept_all(tmp_path, site, *FOUR)
        run("renew", "renew", "east")  # a new node key, which only the server has to know
        assert not take_card(site, tmp_path / "east" / "east.toml").identity
        start(*FOUR)
        assert "Removed the old key of east. Registered east. Registered west." in processes.output("server")
        processes.discreet("submit-second", "deploy", "submit", "site", "--name", "second")
        processes.wait_until(lambda: len(rounds("second")) >= 2, "two rounds of second")
        run("revoke", "revoke", "site", "south")
        assert processes.exit_code("submit-second") == 0, processes.output("submit-second")
        joined = [line["clients"] for line in rounds("second")]
        assert (joined[0], joined[-1], len(joined)) == (4, 3, ROUNDS)
        assert "south is left out of the rounds from round" in processes.output("submit-second")
        assert "its key was revoked" in run("status", "status", "site")
        counted = {name: count_releases(tmp_path / name) for name in FOUR}
        assert (counted["north"], counted["east"], counted["west"]) == (2 * ROUNDS, 2 * ROUNDS, ROUNDS)
        assert counted["south"] >= ROUNDS + joined.count(4)
        stop(*(name for name in FOUR if not processes.has_ended(name)), "server")
    finally:
        processes.end_all()
