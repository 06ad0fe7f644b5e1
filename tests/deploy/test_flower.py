"""A real SuperLink and three real clients, with TLS and keys, on this machine: what holds when processes die or lie.

The tests follow one another on one deployment, as a day of it would. `make test-deploy` runs them.
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
PLANNED = 2 * ROUNDS + 2  # that the owners allow, and a tenth more: two runs, one that is stopped, a round that is lost


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealDeployment]:
    with run_server(tmp_path_factory.mktemp("deployed"), AGREED, PLANNED) as made:
        made.join(*CLIENTS)
        yield made


def test_three_clients_train_the_reference_model_and_run_nothing_that_was_shipped(deployed: RealDeployment) -> None:
    mark = deployed.marked()
    deployed.submit("first")
    assert deployed.ended("first") == 0, deployed.processes.said("submit-first")[-2000:]
    assert [line["clients"] for line in deployed.rounds("first")] == [3] * ROUNDS
    torch.set_num_threads(1)
    source = experiment_file.load_experiment(write_experiment(deployed.folder, AGREED), ('engine={kind="reference"}',))
    training_loop.start(api.prepare_job(source), deployed.folder / "reference", None, None, lambda line: None)
    found, wanted = (
        RunRecord.open(deployed.site.run("first")).load_model(),
        RunRecord.open(deployed.folder / "reference").load_model(),
    )
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    assert not mark.exists()
    assert [deployed.counted(name) for name in CLIENTS] == [ROUNDS] * 3
    shutil.copy(deployed.site.app / "client_app.py", deployed.folder / "bundle.py")
    with pytest.raises(ImportError):
        runpy.run_path(str(deployed.folder / "bundle.py"))
    assert mark.exists()  # so it would have been seen


def test_whoever_reaches_the_open_port_can_neither_run_code_nor_register_a_node(deployed: RealDeployment) -> None:
    """With all that a client has. The first of Flower's commands goes to the SuperLink itself, and shows that it is
    the open port which refuses the others."""
    home = _made(deployed.folder / "outside")
    authority = json.dumps(str(deployed.site.app / "ca.crt"))
    card = home / "node.pub"
    card.write_text(f"{write_node_key(home / 'node.key')}\n")
    inner, door = flower_commands.loopback_address(deployed.site), f"127.0.0.1:{deployed.port}"
    assert inner.startswith("127.0.0.1:")
    assert inner != door
    register, start = ("supernode", "register", str(card)), ("run", str(deployed.site.app))
    ended = []
    for address, asked in ((inner, ("list",)), (door, ("list",)), (door, register), (door, start)):
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "it"\n\n[superlink.it]\naddress = "{address}"\nroot-certificates = {authority}\n'
        )
        flwr = str(Path(sys.executable).with_name("flwr"))
        deployed.processes.start("outside", flwr, *asked, "it", settings={**QUIET, "FLWR_HOME": str(home)})
        ended.append(deployed.processes.exit_code("outside"))
    assert ended[0] == 0, deployed.processes.said("outside")
    assert 0 not in ended[1:], deployed.processes.said("outside")
    for call in ("list-runs", "register-node", "start-run"):
        assert f"404 Not Found' for url 'https://{door}/v1/control/{call}'" in deployed.processes.said("outside")
    known = superlink.list_nodes(deployed.site)
    assert known is not None
    assert len(known) == len(CLIENTS)


def test_a_client_may_work_for_a_stock_supernode_which_runs_nothing_that_was_shipped_either(
    deployed: RealDeployment,
) -> None:
    """Flower's own node fetches the bundle. Its rounds are slow, so that the run is stopped after one."""
    stock, mark, name = CLIENTS[2], deployed.folder / "written-by-the-bundle", "stock"
    mark.unlink()
    deployed.processes.end(stock)
    deployed.join_by_supernode(stock)
    deployed.submit(name)
    deployed.after(name, 1)
    deployed.processes.end(f"submit-{name}", signal.SIGINT)
    assert [line["clients"] for line in deployed.rounds(name)] in ([3], [3, 3])
    assert deployed.counted(stock) > ROUNDS
    assert not mark.exists()
    for each in ("supernode", stock):
        deployed.processes.end(each)
    deployed.join(stock)


def test_a_client_and_then_the_server_die_in_mid_run_and_the_run_goes_on(deployed: RealDeployment) -> None:
    """The server counts the round that was under way, and goes on after it; a client may have counted it or not."""
    before = {name: deployed.counted(name) for name in CLIENTS}
    deployed.submit("second")
    deployed.after("second", 1)
    deployed.processes.end("client-2", signal.SIGKILL)
    assert deployed.counted("client-2") - before["client-2"] in (1, 2)
    deployed.until_a_round_of("second", 2)  # the one that it died in may still have had its mask
    for name in ("server", "submit-second"):  # with all their processes, as when a machine goes down
        deployed.processes.kill_tree(name)
    kept = deployed.rounds("second")
    assert 1 < len(kept) < ROUNDS
    for name in CLIENTS[:2]:
        assert deployed.counted(name) - before[name] in (len(kept), len(kept) + 1)
    ledger = Ledger.open(deployed.site.run("second") / "ledger.jsonl").verify()["records"]
    deployed.processes.until("client-0", "is away; waiting for it.")
    deployed.processes.discreet("server", "deploy", "server", "site")
    deployed.processes.until("server", "The server is up")
    deployed.processes.until("client-0", "is back.")
    deployed.processes.discreet("client-2", "deploy", "client", "client-2")
    deployed.submit("second")
    assert deployed.ended("second") == 0, deployed.processes.said("submit-second")[-2000:]
    assert "Run 'second' goes on after round" in deployed.processes.said("submit-second")
    assert deployed.rounds("second")[: len(kept)] == kept
    assert len(deployed.rounds("second")) == ROUNDS
    assert Ledger.open(deployed.site.run("second") / "ledger.jsonl").verify()["records"] > ledger
    assert RunRecord.open(deployed.site.run("second")).is_finished()
    for name in CLIENTS[:2]:
        assert deployed.counted(name) - before[name] in (ROUNDS - 1, ROUNDS)


def test_a_strange_node_is_not_taken_in_and_a_strange_server_not_spoken_to(deployed: RealDeployment) -> None:
    """One node has a key that nobody registered; the other trusts another authority than the server's."""
    shutil.copytree(deployed.folder / "client-0", deployed.folder / "stranger")
    (deployed.folder / "stranger" / "node.key").unlink()
    write_node_key(deployed.folder / "stranger" / "node.key")
    create_site(_made(deployed.folder / "other"), SECURE, f"127.0.0.1:{deployed.port}")
    deployed.processes.discreet("stranger", "deploy", "client", "stranger", "--wait", "3")
    deployed.processes.discreet("deceived", "deploy", "client", "other/client-0")
    assert [deployed.processes.exit_code(name) for name in ("stranger", "deceived")] == [2, 2]
    assert "refuses this node: its key stranger/node.key is not registered" in deployed.processes.said("stranger")
    assert "is not signed by other/client-0/../site/app/ca.crt" in deployed.processes.said("deceived")


def test_a_server_that_signs_with_another_key_is_refused(deployed: RealDeployment) -> None:
    key = deployed.site.server / "server.key"
    own = key.read_bytes()
    key.unlink()
    write_signing_key(key)
    try:
        deployed.submit("forged")
        assert deployed.ended("forged") == 1
    finally:
        key.write_bytes(own)
    assert "not signed by the server key that this node's policy allows" in deployed.processes.said("submit-forged")


def test_a_server_with_a_tampered_algorithm_is_refused(deployed: RealDeployment) -> None:
    path = deployed.site.app / "resolved.toml"
    agreed = path.read_text()
    path.write_text(agreed.replace("clip_norm = 0.5", "clip_norm = 50.0"))
    assert path.read_text() != agreed
    try:
        deployed.submit("tampered")
        assert deployed.ended("tampered") == 1
    finally:
        path.write_text(agreed)
    assert "and this node has agreed to" in deployed.processes.said("submit-tampered")


def test_a_server_that_asks_for_more_than_the_budget_is_refused_by_the_clients(deployed: RealDeployment) -> None:
    deployed.submit("greedy")
    assert deployed.ended("greedy") == 3  # the exit code of a spent budget
    assert "This node's own ledger refuses" in deployed.processes.said("submit-greedy")
    assert "Refused: This node's own ledger refuses" in deployed.processes.said("client-0")
    assert len(deployed.rounds("greedy")) < ROUNDS


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
