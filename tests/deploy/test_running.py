"""A deployment's processes: how they are started, which folder they lock, how long they wait, how they end."""

import json
import logging
import shlex
from pathlib import Path

import pytest

from discreet.cli import main as cli
from discreet.cli.deploy import server_commands
from discreet.deploy.app_folder import AppFolder
from discreet.deploy.certificates import check_certificates, read_key
from discreet.deploy.client_node import ClientNode
from discreet.deploy.deployment import DEPLOYMENT_FILE, DeclaredClient, Deployment
from discreet.deploy.deployment_status import read_status
from discreet.deploy.entry_points import build_responder, main
from discreet.deploy.flower_commands import check_server_files, server_command, superlink_command
from discreet.deploy.learner import Learner
from discreet.deploy.policy import ClientFolder
from discreet.engines.flower import signed_messages
from discreet.engines.flower.reply_deadline import ReplyDeadline
from discreet.errors import InvalidInput
from discreet.trust import Trust
from tests.deploy.example_sites import PLAIN, SECURE, Wire, connect_nodes, copy_site, write_experiment
from tests.deploy.node_requests import RequestCase, restart, sign_header

pytestmark = pytest.mark.usefixtures("one_thread")


def test_flower_is_started_with_tls_and_with_node_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = copy_site(tmp_path, PLAIN)
    monkeypatch.setattr("discreet.deploy.flower_commands.flower_program", lambda name: name)
    command = superlink_command(site, "127.0.0.1:8123")
    assert {"--ssl-certfile", "--ssl-keyfile", "--ssl-ca-certfile", "--enable-supernode-auth"} <= set(command)
    assert command[command.index("--port") + 1] == "8123"
    assert "--insecure" not in command


@pytest.mark.parametrize("key", ["", "ecdsa-sha2-nistp384 AAAA", "ssh-ed25519 AAAA", "²", "a\nb"])
def test_a_card_whose_node_key_is_no_key_is_refused_before_anything_is_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    site = copy_site(tmp_path, SECURE)
    card = site.app / "clients" / "client-1.toml"
    lines = [line for line in card.read_text().splitlines() if not line.startswith("node_key")]
    card.write_text("\n".join([*lines, f"node_key = {json.dumps(key)}"]))
    assert cli.run(["deploy", "server", str(site.folder)]) == 2
    said = capsys.readouterr().err
    assert "client-1.toml: node_key must be a public key on an elliptic curve" in said
    assert "Ask the owner of 'client-1' for its card." in said
    assert not (site.server / "superlink.log").exists()


@pytest.mark.parametrize("content", [None, b"", b"junk\n"])
@pytest.mark.parametrize("name", ["ca.crt", "server.crt", "server.tls.key"])
def test_a_server_whose_certificates_are_none_says_which(tmp_path: Path, name: str, content: bytes | None) -> None:
    site = copy_site(tmp_path, PLAIN)
    check_certificates(site.server)
    (site.server / name).unlink()
    if content is not None:
        (site.server / name).write_bytes(content)
    with pytest.raises(InvalidInput, match=rf"{name}.* certificate.*Restore"):
        check_certificates(site.server)
    pytest.importorskip("flwr")
    with pytest.raises(InvalidInput, match=name):
        server_command(site, "127.0.0.1")


def test_a_certificate_with_anothers_key_is_refused(tmp_path: Path) -> None:
    site = copy_site(tmp_path, PLAIN)
    (site.server / "server.tls.key").write_bytes((site.server / "ca.key").read_bytes())
    with pytest.raises(InvalidInput, match="are not a certificate and its key"):
        check_certificates(site.server)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("server/server.key", None, r"There is no readable key at .*server\.key"),
        ("server/server.key", b"ab" * 32, r"must be the key that .*deployment\.toml names, and is another: no client"),
        ("app/resolved.toml", None, r"There is no file .*resolved\.toml"),
        ("app/resolved.toml", b"rounds = ", r"resolved\.toml"),
    ],
)
def test_a_server_that_could_make_no_run_does_not_start(
    tmp_path: Path, name: str, content: bytes | None, why: str
) -> None:
    site = copy_site(tmp_path, PLAIN)
    check_server_files(site)
    (site.folder / name).unlink()
    if content is not None:
        (site.folder / name).write_bytes(content)
    with pytest.raises(InvalidInput, match=why) as refused:
        check_server_files(site)
    assert refused.value.fix.startswith("Restore it from its backup")
    pytest.importorskip("flwr")
    with pytest.raises(InvalidInput, match=why):
        server_command(site, "127.0.0.1")


def test_next_commands_can_be_typed_as_they_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder may have a space in its name; and a task with a partition can be rehearsed first."""
    folder = tmp_path / "our hospitals"
    assert cli.run(["deploy", "init", str(folder), str(write_experiment(tmp_path, SECURE))]) == 0
    said = capsys.readouterr().out
    for command in ("simulate", "server"):
        line = next(each for each in said.splitlines() if f"deploy {command}" in each)
        assert shlex.split(line)[-4:] == ["discreet", "deploy", command, str(folder)]


@pytest.mark.parametrize("content", [b"", b"ab" * 31, b"ab" * 33, b"ab " * 32, b"0x" + b"ab" * 31, b"\xff" * 64])
def test_a_key_is_64_hexadecimal_digits_and_what_else_a_file_holds_is_not_said(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "noise.key"
    path.write_bytes(b"ab" * 32 + b"\n")
    assert read_key(path) == b"\xab" * 32
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as refused:
        read_key(path)
    assert refused.value.problem == f"A key must be 64 hexadecimal digits, and {path} contains something else."


@pytest.mark.parametrize(
    ("clients", "said"),
    [
        ("north=480,south=350,east=²", "Clients must be NAME=EXAMPLES, separated by commas, and got 'east=²'."),
        ("north=480,north=3", "Clients must have different names, and got 'north' more than once."),
        ("no rth=480,south=3", "must be 1 to 40 letters (a to z, A to Z), digits, - and _, and got 'no rth'."),
    ],
)
def test_clients_that_can_not_be_declared_are_told_why_and_nothing_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], clients: str, said: str
) -> None:
    command = ["deploy", "init", str(tmp_path / "site"), str(write_experiment(tmp_path, SECURE)), "--clients", clients]
    assert cli.run(command) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "site").exists()


def test_a_name_and_a_key_are_spelt_to_their_last_letter() -> None:
    """A newline at the end would pass a pattern's `$`."""
    for name in ("north\n", "", "a" * 41, "nörd"):
        with pytest.raises(InvalidInput, match="1 to 40 letters"):
            DeclaredClient(name=name, examples=1)
    for key in ("0" * 64 + "\n", "0" * 63, "G" * 64):
        with pytest.raises(InvalidInput, match="server_key: must be 64 hexadecimal digits"):
            Deployment(address="a:1", server_key=key, clients=())


def test_a_client_with_another_number_of_examples_is_asked_whether_it_is_the_right_table(tmp_path: Path) -> None:
    site = copy_site(tmp_path, PLAIN)
    size = site.deployment.clients[0].examples
    path = site.app / DEPLOYMENT_FILE
    path.write_text(path.read_text().replace(f"examples = {size}\n", f"examples = {size + 1}\n", 1))
    with pytest.raises(InvalidInput, match=rf"declared with {size + 1} examples .* and holds {size}") as refused:
        Learner.load(AppFolder.open(site.app), ClientFolder.read(tmp_path / "client-0"), bytes(32), Trust.no_code())
    assert refused.value.fix.startswith("Check that this is the right table. If it is, declare the right number")


def test_two_processes_can_not_work_on_one_folder(request_case: RequestCase) -> None:
    folder, _, node, _, _, _ = request_case
    with pytest.raises(InvalidInput, match="client-0 is already running"):
        ClientNode.open(folder / "client-0", lambda text: None)
    restart(node)


def test_flowers_own_process_opens_the_folder_for_each_message_and_leaves_it(request_case: RequestCase) -> None:
    folder, _, node, about, body, key = request_case
    node.close()
    good, bad = signed_messages.sign_request(about, body, key), sign_header(b"null", key)
    told = [
        build_responder({"node": str(folder / "client-0")}, {}, lambda text: None)(each)[0]
        for each in (good, bad, good)
    ]
    assert told == [signed_messages.ANSWERED, signed_messages.REFUSED, signed_messages.ANSWERED]


def test_a_node_that_can_not_start_leaves_its_folder_free(tmp_path: Path) -> None:
    copy_site(tmp_path, PLAIN)
    key = tmp_path / "client-0" / "noise.key"
    kept = key.read_bytes()
    key.unlink()
    with pytest.raises(Exception, match=r"noise\.key") as failed:
        ClientNode.open(tmp_path / "client-0", lambda text: None)
    key.write_bytes(kept)
    ClientNode.open(tmp_path / "client-0", lambda text: None)
    assert failed.tb is not None  # a stored exception does not keep the folder locked


def test_all_are_waited_for_but_once_enough_came_not_for_long() -> None:
    now = [0.0]
    over = ReplyDeadline(timeout=100, patience=10, clock=lambda: now[0]).start(asked=3, enough=2)
    assert not over(1)
    now[0] = 50
    assert not over(2)  # patience starts here
    now[0] = 59
    assert not over(2)
    assert over(3)
    now[0] = 60
    assert over(2)


def test_without_enough_waiting_ends_with_its_time() -> None:
    now = [0.0]
    over = ReplyDeadline(timeout=100, patience=10, clock=lambda: now[0]).start(asked=3, enough=2)
    assert not over(1)
    now[0] = 100
    assert over(1)


@pytest.mark.parametrize(("code", "left", "kind"), [(3, 3, "BudgetRefused"), (1, 1, "DiscreetError")])
def test_submit_says_how_the_run_ended_with_its_kind_and_exit_code(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    code: int,
    left: int,
    kind: str,
) -> None:
    """A process that writes the end of a run replaces what Flower would start."""
    site = copy_site(tmp_path, SECURE)
    (tmp_path / "end.json").write_text(json.dumps({"error": "It is spent.", "stopped": None, "exit_code": code}))
    site.end_file("first").parent.mkdir()
    played = ["cp", str(tmp_path / "end.json"), str(site.end_file("first"))]
    monkeypatch.setattr("discreet.deploy.flower_commands.run_command", lambda site, name, trusted: played)
    ended = cli.run(["deploy", "submit", str(site.folder), "--json"])
    said = json.loads(capfd.readouterr().err)["error"]
    assert (ended, said["kind"]) == (left, kind)
    assert said["message"].startswith("It is spent.")


def test_submit_of_a_run_that_was_stopped_ends_with_the_reason_below_the_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    site = copy_site(tmp_path, SECURE)
    end = {"error": None, "stopped": "Stopped after 1 of 3 rounds. It is spent.", "exit_code": 3}
    (tmp_path / "end.json").write_text(json.dumps(end))
    run, played_end = site.run("first"), site.end_file("first")
    script = f"mkdir {run} && echo Guarantee card > {run}/guarantee.txt && cp {tmp_path}/end.json {played_end}"
    played = ["sh", "-c", script]
    monkeypatch.setattr("discreet.deploy.flower_commands.run_command", lambda site, name, trusted: played)
    assert cli.run(["deploy", "submit", str(site.folder)]) == 3
    said = capfd.readouterr().out
    assert said.startswith("Guarantee card")
    assert said.rstrip().endswith(str(end["stopped"]))


def test_a_finished_name_is_refused_and_its_end_and_its_status_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site, heard = copy_site(tmp_path, PLAIN), list[str]()
    config = {"folder": str(site.folder), "name": "first"}
    main(lambda *_: connect_nodes(tmp_path, site, heard), config, heard.append)
    ended = site.end_file("first").read_bytes()
    monkeypatch.setattr("discreet.deploy.flower_commands.run_command", lambda site, name, trusted: ["true"])
    assert cli.run(["deploy", "submit", str(site.folder)]) == 2
    assert "Error: The run 'first' is finished. Use a new name" in capsys.readouterr().err
    with pytest.raises(InvalidInput, match="is finished"):  # as if it had finished a moment later
        main(lambda *_: Wire({}), config, heard.append)
    assert site.end_file("first").read_bytes() == ended
    site.end_file("first").write_text(json.dumps({"error": "The run 'first' is finished.", "exit_code": 2}))
    (run,) = read_status(site).runs  # of an older version, which wrote that
    assert (run.state, run.problems) == ("done", [])


@pytest.mark.parametrize(("answer", "code", "word"), [(None, 3, "Warning: "), (True, 3, ""), (False, 1, "")])
def test_a_second_run_says_that_it_spends_the_same_budgets(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    answer: bool | None,
    code: int,
    word: str,
) -> None:
    """Without a terminal nobody can be asked, and it starts."""
    site = copy_site(tmp_path, SECURE)
    (tmp_path / "end.json").write_text(json.dumps({"error": "It is spent.", "stopped": None, "exit_code": 3}))
    played = ["cp", str(tmp_path / "end.json"), str(site.end_file("second"))]
    monkeypatch.setattr("discreet.deploy.flower_commands.run_command", lambda site, name, trusted: played)
    monkeypatch.setattr(server_commands, "is_interactive", lambda: answer is not None)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: answer)
    said = "The run 'first' is going on, and the run 'second' would spend the same budgets of the clients.\n"
    with site.lock_run("first"):
        assert cli.run(["deploy", "submit", str(site.folder), "--name", "second"]) == code
    assert capfd.readouterr().err.startswith(f"{word}{said}")
    assert site.end_file("second").exists() == (answer is not False)
    cli.run(["deploy", "submit", str(site.folder), "--name", "second"])
    assert "the same budgets" not in capfd.readouterr().err


def test_flowers_log_has_no_traceback_of_our_own_refusals(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logging.getLogger("flwr")
    monkeypatch.setattr(log, "filters", [])
    monkeypatch.setattr(log, "propagate", True)
    site = copy_site(tmp_path, SECURE)
    (site.app / "clients" / "client-0.toml").unlink()
    with pytest.raises(InvalidInput, match="no card of 'client-0'") as refusal:
        main(lambda *_: Wire({}), {"folder": str(site.folder), "name": "first"}, lambda text: None)
    log.error("It raised an exception", exc_info=refusal.value)
    log.error("So did this", exc_info=ValueError("a fault"))
    assert "no card" not in caplog.text
    assert "Traceback" not in caplog.text.partition("So did this")[0]
    assert "ValueError: a fault" in caplog.text
