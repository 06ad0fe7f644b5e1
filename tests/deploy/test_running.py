"""A deployment's processes: what they are started with, whose folder they hold, how long they wait, how they end."""

import json
import logging
from pathlib import Path

import pytest

from discreet.cli import main as cli
from discreet.deploy.commands import superlink_itself
from discreet.deploy.entries import answering, main
from discreet.deploy.node import Node
from discreet.engines.flower import messages
from discreet.engines.flower.waiting import Waiting
from discreet.errors import InvalidInput
from tests.deploy.asking import Asked, signed, started_anew
from tests.deploy.sites import PLAIN, SECURE, Wire, copied

pytestmark = pytest.mark.usefixtures("one_thread")


def test_flower_is_started_with_tls_and_with_node_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = copied(tmp_path, PLAIN)
    monkeypatch.setattr("discreet.deploy.commands._tool", lambda name: name)
    command = superlink_itself(site, "127.0.0.1:8123")
    assert {"--ssl-certfile", "--ssl-keyfile", "--ssl-ca-certfile", "--enable-supernode-auth"} <= set(command)
    assert command[command.index("--port") + 1] == "8123"
    assert "--insecure" not in command


def test_two_processes_can_not_work_on_one_folder(asked: Asked) -> None:
    folder, _, node, _, _, _ = asked
    with pytest.raises(InvalidInput, match="client-0 is already running"):
        Node.open(folder / "client-0", lambda text: None)
    started_anew(node)


def test_flowers_own_process_opens_the_folder_for_each_message_and_leaves_it(asked: Asked) -> None:
    folder, _, node, about, body, key = asked
    node.close()
    good, bad = messages.request(about, body, key), signed(b"null", key)
    told = [answering({"node": str(folder / "client-0")}, {}, lambda text: None)(each)[0] for each in (good, bad, good)]
    assert told == [messages.ANSWERED, messages.REFUSED, messages.ANSWERED]


def test_a_node_that_can_not_start_leaves_its_folder_free(tmp_path: Path) -> None:
    copied(tmp_path, PLAIN)
    key = tmp_path / "client-0" / "noise.key"
    kept = key.read_bytes()
    key.unlink()
    with pytest.raises(Exception, match=r"noise\.key") as failed:
        Node.open(tmp_path / "client-0", lambda text: None)
    key.write_bytes(kept)
    Node.open(tmp_path / "client-0", lambda text: None)
    assert failed.tb is not None  # what is kept of the failure does not keep the folder


def test_all_are_waited_for_but_once_enough_came_not_for_long() -> None:
    now = [0.0]
    over = Waiting(timeout=100, patience=10, clock=lambda: now[0]).over(asked=3, enough=2)
    assert not over(1)
    now[0] = 50
    assert not over(2)  # from here on patience counts
    now[0] = 59
    assert not over(2)
    assert over(3)
    now[0] = 60
    assert over(2)


def test_without_enough_waiting_ends_with_its_time() -> None:
    now = [0.0]
    over = Waiting(timeout=100, patience=10, clock=lambda: now[0]).over(asked=3, enough=2)
    assert not over(1)
    now[0] = 100
    assert over(1)


@pytest.mark.parametrize(("code", "left", "kind"), [(3, 3, "BudgetRefused"), (1, 2, "InvalidInput")])
def test_submit_says_how_the_run_ended_with_its_kind_and_exit_code(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    code: int,
    left: int,
    kind: str,
) -> None:
    """What Flower would start is played by a process that leaves the end of a run."""
    site = copied(tmp_path, SECURE)
    (tmp_path / "end.json").write_text(json.dumps({"error": "It is spent.", "stopped": None, "exit_code": code}))
    site.ended("first").parent.mkdir()
    played = ["cp", str(tmp_path / "end.json"), str(site.ended("first"))]
    monkeypatch.setattr("discreet.deploy.commands.run", lambda site, name: played)
    ended = cli.run(["deploy", "submit", str(site.folder), "--json"])
    said = json.loads(capfd.readouterr().err)["error"]
    assert (ended, said["kind"]) == (left, kind)
    assert said["message"].startswith("It is spent.")


def test_flowers_log_has_no_traceback_of_our_own_refusals(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logging.getLogger("flwr")
    monkeypatch.setattr(log, "filters", [])
    monkeypatch.setattr(log, "propagate", True)
    site = copied(tmp_path, SECURE)
    (site.app / "clients" / "client-0.toml").unlink()
    with pytest.raises(InvalidInput, match="no card of 'client-0'") as refusal:
        main(lambda waiting: Wire({}), {"folder": str(site.folder), "name": "first"}, lambda text: None)
    log.error("It raised an exception", exc_info=refusal.value)
    log.error("So did this", exc_info=ValueError("a fault"))
    assert "no card" not in caplog.text
    assert "Traceback" not in caplog.text.partition("So did this")[0]
    assert "ValueError: a fault" in caplog.text
