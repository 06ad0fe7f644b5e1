"""A real SuperLink and three real clients, with TLS and keys, on this machine: what holds when processes die or lie.

The tests run one after the other on one deployment. `make test-deploy` runs them.
"""

import json
import runpy
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from discreet import api
from discreet.deploy import flower_commands, superlink
from discreet.deploy.certificates import write_node_key, write_signing_key
from discreet.experiment.configuration import experiment_file
from discreet.experiment.loop import training_loop
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.privacy.ledger import Ledger
from tests.deploy.example_sites import SECURE, create_site, with_long_waits, write_experiment
from tests.deploy.real_deployment import CLIENTS, QUIET, RealDeployment, run_server

pytest.importorskip("flwr")
pytestmark = pytest.mark.deploy

ROUNDS = 4
AGREED = with_long_waits(SECURE.replace("rounds = 3", f"rounds = {ROUNDS}"))
PLANNED = 2 * ROUNDS + 2  # rounds that the owners allow, and a tenth more: two runs, a stopped run, a lost round


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealDeployment]:
    with run_server(tmp_path_factory.mktemp("deployed"), AGREED, PLANNED) as made:
        made.join(*CLIENTS)
        yield made


def test_three_clients_train_the_reference_model_and_run_nothing_that_was_shipped(deployment: RealDeployment) -> None:
    mark = deployment.mark_bundle()
    deployment.submit("first")
    assert deployment.submit_exit_code("first") == 0, deployment.processes.output("submit-first")[-2000:]
    assert [line["clients"] for line in deployment.rounds("first")] == [3] * ROUNDS
    torch.set_num_threads(1)
    source = experiment_file.load_experiment(
        write_experiment(deployment.folder, AGREED), ('engine={kind="reference"}',)
    )
    training_loop.start(api.prepare_job(source), deployment.folder / "reference", None, None, lambda line: None)
    found, wanted = (
        RunRecord.open(deployment.site.run("first")).load_model(),
        RunRecord.open(deployment.folder / "reference").load_model(),
    )
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    assert not mark.exists()
    assert [deployment.count_releases(name) for name in CLIENTS] == [ROUNDS] * 3
    shutil.copy(deployment.site.app / "client_app.py", deployment.folder / "bundle.py")
    with pytest.raises(ImportError):
        runpy.run_path(str(deployment.folder / "bundle.py"))
    assert mark.exists()  # so it would have been seen


def test_whoever_reaches_the_open_port_can_neither_run_code_nor_register_a_node(deployment: RealDeployment) -> None:
    """The attacker has everything that a client has. The first of Flower's commands goes to the SuperLink itself, and
    shows that the open port refuses the others."""
    home = _make_folder(deployment.folder / "outside")
    authority = json.dumps(str(deployment.site.app / "ca.crt"))
    card = home / "node.pub"
    card.write_text(f"{write_node_key(home / 'node.key')}\n")
    inner, door = flower_commands.loopback_address(deployment.site), f"127.0.0.1:{deployment.port}"
    assert inner.startswith("127.0.0.1:")
    assert inner != door
    register, start = ("supernode", "register", str(card)), ("run", str(deployment.site.app))
    ended = []
    for address, asked in ((inner, ("list",)), (door, ("list",)), (door, register), (door, start)):
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "it"\n\n[superlink.it]\naddress = "{address}"\nroot-certificates = {authority}\n'
        )
        flwr = str(Path(sys.executable).with_name("flwr"))
        deployment.processes.start("outside", flwr, *asked, "it", settings={**QUIET, "FLWR_HOME": str(home)})
        ended.append(deployment.processes.exit_code("outside"))
    assert ended[0] == 0, deployment.processes.output("outside")
    assert 0 not in ended[1:], deployment.processes.output("outside")
    for call in ("list-runs", "register-node", "start-run"):
        assert f"404 Not Found' for url 'https://{door}/v1/control/{call}'" in deployment.processes.output("outside")
    known = superlink.list_nodes(deployment.site)
    assert known is not None
    assert len(known) == len(CLIENTS)


def test_a_client_may_work_for_a_stock_supernode_which_runs_nothing_that_was_shipped_either(
    deployment: RealDeployment,
) -> None:
    """Flower's own node fetches the bundle. Its rounds are slow, so that the run is stopped after one."""
    stock, mark, name = CLIENTS[2], deployment.folder / "written-by-the-bundle", "stock"
    mark.unlink()
    deployment.processes.end(stock)
    deployment.join_by_supernode(stock)
    deployment.submit(name)
    deployment.wait_for_rounds(name, 1)
    deployment.processes.end(f"submit-{name}", signal.SIGINT)
    assert [line["clients"] for line in deployment.rounds(name)] in ([3], [3, 3])
    assert deployment.count_releases(stock) > ROUNDS
    assert not mark.exists()
    for each in ("supernode", stock):
        deployment.processes.end(each)
    deployment.join(stock)


def test_a_client_and_then_the_server_die_in_mid_run_and_the_run_goes_on(deployment: RealDeployment) -> None:
    """The server counts the round that was under way and continues after it; a client may have counted it or not."""
    before = {name: deployment.count_releases(name) for name in CLIENTS}
    deployment.submit("second")
    deployment.wait_for_rounds("second", 1)
    deployment.processes.end("client-2", signal.SIGKILL)
    assert deployment.count_releases("client-2") - before["client-2"] in (1, 2)
    deployment.until_a_round_of("second", 2)  # the round it died in may still contain its masked update
    for name in ("server", "submit-second"):  # with all their processes, as when a machine goes down
        deployment.processes.kill_tree(name)
    kept = deployment.rounds("second")
    assert 1 < len(kept) < ROUNDS
    for name in CLIENTS[:2]:
        assert deployment.count_releases(name) - before[name] in (len(kept), len(kept) + 1)
    ledger = Ledger.open(deployment.site.run("second") / "ledger.jsonl").verify()["records"]
    deployment.processes.wait_for_words("client-0", "is away; waiting for it.")
    deployment.processes.discreet("server", "deploy", "server", "site")
    deployment.processes.wait_for_words("server", "The server is up")
    deployment.processes.wait_for_words("client-0", "is back.")
    deployment.processes.discreet("client-2", "deploy", "client", "client-2")
    deployment.submit("second")
    assert deployment.submit_exit_code("second") == 0, deployment.processes.output("submit-second")[-2000:]
    assert "Run 'second' goes on after round" in deployment.processes.output("submit-second")
    assert deployment.rounds("second")[: len(kept)] == kept
    assert len(deployment.rounds("second")) == ROUNDS
    assert Ledger.open(deployment.site.run("second") / "ledger.jsonl").verify()["records"] > ledger
    assert RunRecord.open(deployment.site.run("second")).is_finished()
    for name in CLIENTS[:2]:
        assert deployment.count_releases(name) - before[name] in (ROUNDS - 1, ROUNDS)


def test_a_strange_node_is_not_taken_in_and_a_strange_server_not_spoken_to(deployment: RealDeployment) -> None:
    """One node has an unregistered key; the other trusts a certificate authority that is not the server's."""
    shutil.copytree(deployment.folder / "client-0", deployment.folder / "stranger")
    (deployment.folder / "stranger" / "node.key").unlink()
    write_node_key(deployment.folder / "stranger" / "node.key")
    create_site(_make_folder(deployment.folder / "other"), SECURE, f"127.0.0.1:{deployment.port}")
    deployment.processes.discreet("stranger", "deploy", "client", "stranger", "--wait", "3")
    deployment.processes.discreet("deceived", "deploy", "client", "other/client-0")
    assert [deployment.processes.exit_code(name) for name in ("stranger", "deceived")] == [2, 2]
    assert "refuses this node: its key stranger/node.key is not registered" in deployment.processes.output("stranger")
    assert "is not signed by other/client-0/../site/app/ca.crt" in deployment.processes.output("deceived")


def test_a_server_that_signs_with_another_key_is_refused(deployment: RealDeployment) -> None:
    key = deployment.site.server / "server.key"
    own = key.read_bytes()
    key.unlink()
    write_signing_key(key)
    try:
        deployment.submit("forged")
        assert deployment.submit_exit_code("forged") == 1
    finally:
        key.write_bytes(own)
    assert "not signed by the server key that this node's policy allows" in deployment.processes.output("submit-forged")


def test_a_server_with_a_tampered_algorithm_is_refused(deployment: RealDeployment) -> None:
    path = deployment.site.app / "resolved.toml"
    agreed = path.read_text()
    path.write_text(agreed.replace("clip_norm = 0.5", "clip_norm = 50.0"))
    assert path.read_text() != agreed
    try:
        deployment.submit("tampered")
        assert deployment.submit_exit_code("tampered") == 1
    finally:
        path.write_text(agreed)
    assert "and this node has agreed to" in deployment.processes.output("submit-tampered")


def test_a_server_that_asks_for_more_than_the_budget_is_refused_by_the_clients(deployment: RealDeployment) -> None:
    deployment.submit("greedy")
    assert deployment.submit_exit_code("greedy") == 3  # the exit code of a spent budget
    assert "This node's own ledger refuses" in deployment.processes.output("submit-greedy")
    assert "Refused: This node's own ledger refuses" in deployment.processes.output("client-0")
    assert len(deployment.rounds("greedy")) < ROUNDS


def _make_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder
