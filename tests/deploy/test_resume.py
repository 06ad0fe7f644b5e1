"""A deployed run continues only as agreed, and a client's noise and ledger depend on its data."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from discreet.data.tasks.task import Task
from discreet.deploy import learner
from discreet.deploy.app_folder import AppFolder
from discreet.deploy.certificates import read_key
from discreet.deploy.client_node import ClientNode
from discreet.deploy.deployed_run import DeployedRun
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.key_renewal import renew_keys
from discreet.deploy.membership_change import take_card
from discreet.engines.flower import signed_messages
from discreet.engines.flower.signed_messages import RequestHeader
from discreet.errors import InvalidInput
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.randomness.purposes import Purpose
from tests.deploy.example_sites import PLAIN, Wire, connect_nodes, copy_site, edit_policy
from tests.deploy.hospital_sites import accept_all, join_hospitals
from tests.deploy.node_requests import RUN, are_equal, count_releases, restart

pytestmark = pytest.mark.usefixtures("one_thread")

HOSPITALS = ("north", "south", "east")
UNSEEDED = PLAIN.replace("seed = 7\n", "")


class Crash(BaseException):
    """Stands for a machine that goes down: nothing catches it."""


def crash_in_round_two(folder: Path) -> DeploymentFolder:
    """Start a run whose server dies in its second round."""
    site = copy_site(folder, UNSEEDED)
    wire = connect_nodes(folder, site, [])

    def die(node: int, number: int) -> bool:
        if number == 2:
            raise Crash
        return False

    wire.lost = die
    with pytest.raises(Crash):
        DeployedRun(site, "first").train(wire, lambda text: None)
    for node in wire.nodes_at.values():
        node.close()
    return site


@pytest.mark.parametrize("identity", [False, True], ids=["node key", "signing key"])
def test_a_run_does_not_go_on_after_its_clients_agreed_to_other_keys(tmp_path: Path, identity: bool) -> None:
    """The nodes would answer the repeated round with fresh noise: two sums, of which the server's ledger counts one."""
    site = join_hospitals(tmp_path, *HOSPITALS)
    for name in HOSPITALS:
        widen_budget(tmp_path / name)
    wire, lines = connect_nodes(tmp_path, site, []), list[str]()

    def stop(line: str) -> None:
        if line.startswith("round 1"):
            raise Crash

    with pytest.raises(Crash):
        DeployedRun(site, "first").train(wire, stop)
    for node in wire.nodes_at.values():
        node.close()
    renew_keys(tmp_path / "north", identity=identity)
    take_card(site, tmp_path / "north" / "north.toml")
    accept_all(tmp_path, site, *HOSPITALS)
    wire = connect_nodes(tmp_path, site, [])
    if identity:
        with pytest.raises(InvalidInput, match="another membership of its clients, or other keys of theirs"):
            DeployedRun(site, "first").train(wire, lines.append)
    else:
        assert DeployedRun(site, "first").train(wire, lines.append).completed == 2
    for node in wire.nodes_at.values():
        node.close()


def widen_budget(node: Path) -> None:
    line = next(each for each in (node / "policy.toml").read_text().splitlines() if each.startswith("epsilon"))
    edit_policy(node, line, "epsilon = 40.0")


def edit_experiment(site: DeploymentFolder, old: str, new: str) -> None:
    path = site.app / "resolved.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_of_the_same_name_does_not_go_on_with_another_experiment(tmp_path: Path) -> None:
    site = crash_in_round_two(tmp_path)
    edit_experiment(site, "clip_norm = 0.5", "clip_norm = 5.0")
    before, silent = files(tmp_path), Wire({})
    with pytest.raises(
        InvalidInput, match=r"was started with another experiment .*clip_norm: 0\.5, now 5\.0.*, and can't go on"
    ):
        DeployedRun(site, "first").train(silent, lambda text: None)
    assert files(tmp_path) == before
    assert not silent.passed


def test_how_long_the_server_waits_may_be_changed_while_a_run_is_stopped(tmp_path: Path) -> None:
    site = crash_in_round_two(tmp_path)
    edit_experiment(site, "timeout = 60", "timeout = 30")
    assert DeployedRun(site, "first").train(connect_nodes(tmp_path, site, []), lambda text: None).completed == 3


def test_a_run_of_another_version_is_refused_for_its_version(tmp_path: Path) -> None:
    site = crash_in_round_two(tmp_path)
    path = site.run("first") / "run.json"
    before = RunRecord.open(site.run("first")).identity.fingerprint
    assert before is not None
    path.write_text(path.read_text().replace(f'"discreet": "{before.versions["discreet"]}"', '"discreet": "0.0.9"'))
    with pytest.raises(InvalidInput, match=r"was started by discreet 0\.0\.9, and this is discreet"):
        DeployedRun(site, "first").train(Wire({}), lambda text: None)


def with_one_other_label(held_by: Any) -> Any:
    def load_task(*arguments: Any) -> Task:
        found: Task = held_by(*arguments)
        targets = found.train.targets.clone()
        at = 0 if found.train.order is None else int(found.train.order[0])
        targets[at] = (targets[at] + 1) % 10
        return replace(found, train=replace(found.train, targets=targets))

    return load_task


def test_the_same_question_about_other_data_is_counted_and_gets_other_noise_though_the_journal_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same noise, the difference of the two answers would be the effect of the changed example."""
    site = copy_site(tmp_path, UNSEEDED)
    node = ClientNode.open(tmp_path / "client-0", lambda text: None)
    about = RequestHeader(
        kind="train", run=RUN, experiment=AppFolder.open(site.app).digest, round=0, client=0, cohort=(0, 1, 2)
    )
    broadcast = node.learner.algorithm.broadcast(node.learner.algorithm.init(node.learner.params), 0)
    body = signed_messages.encode_broadcast(broadcast.params, broadcast.announcement)
    request = signed_messages.sign_request(about, body, read_key(site.server / "server.key"))
    first = node.answer(request)
    shutil.rmtree(tmp_path / "client-0" / "runs")

    unchanged = restart(node)
    assert unchanged.answer(request) == first
    assert count_releases(unchanged) == 1
    shutil.rmtree(tmp_path / "client-0" / "runs")

    monkeypatch.setattr(learner, "load_client_data", with_one_other_label(learner.load_client_data))
    changed = restart(unchanged)
    assert isinstance(signed_messages.read_reply(changed.answer(request)), bytes)
    assert count_releases(changed) == 2
    like = {name: value[None] for name, value in broadcast.params.items()}
    drawn = [
        each.learner._noise_rows(RUN, broadcast).for_purpose(Purpose.NOISE).open().normal(like)
        for each in (unchanged, changed)
    ]
    assert not are_equal(*drawn)
