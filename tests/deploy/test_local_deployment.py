"""A deployment simulated on one machine: next to the real one, with public draws equal for all clients."""

import re
from pathlib import Path

import pytest
import torch

from discreet.deploy.app_folder import AppFolder
from discreet.deploy.deployed_run import DeployedRun
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.entry_points import build_responder
from discreet.deploy.flower_simulation import simulate
from discreet.deploy.learner import Learner
from discreet.deploy.local_deployment import CLIENTS_FOLDER, prepare_rehearsal
from discreet.deploy.policy import ClientFolder
from discreet.errors import InvalidInput
from discreet.trust import Trust
from tests.deploy.example_sites import PLAIN, SECURE, connect_nodes, copy_site

UNSEEDED = PLAIN.replace("seed = 7\n", "")


def learners(site: DeploymentFolder) -> list[Learner]:
    app = AppFolder.open(site.app)
    folders = [site.folder / CLIENTS_FOLDER / each.name for each in app.deployment.clients]
    return [Learner.load(app, ClientFolder.open(folder), bytes(32), Trust.no_code()) for folder in folders]


def test_a_rehearsal_leaves_the_deployment_as_it_is_and_is_gone_on_with(tmp_path: Path) -> None:
    site = copy_site(tmp_path, SECURE)
    before = {path: path.read_bytes() for path in sorted(site.app.rglob("*")) if path.is_file()}
    made = prepare_rehearsal(site, "first")
    key = (made.server / "server.key").read_bytes()
    assert {path: path.read_bytes() for path in sorted(site.app.rglob("*")) if path.is_file()} == before
    assert made.deployment.server_key != site.deployment.server_key
    assert AppFolder.open(made.app).digest == AppFolder.open(site.app).digest
    assert (prepare_rehearsal(site, "first").server / "server.key").read_bytes() == key
    assert (prepare_rehearsal(site, "second").server / "server.key").read_bytes() != key


def test_a_finished_rehearsal_is_refused_before_anything_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_thread: None
) -> None:
    site = copy_site(tmp_path, PLAIN)
    made = prepare_rehearsal(site, "first")
    wire = connect_nodes(made.folder / CLIENTS_FOLDER, made, [])
    outcome = DeployedRun(made, "first", is_rehearsal=True).train(wire, lambda text: None)
    command = f"discreet deploy simulate {site.folder} --name"
    assert outcome.record.resume_command == f"{command} first"
    monkeypatch.delattr("discreet.deploy.flower_simulation._superlink")
    with pytest.raises(InvalidInput, match="The run 'first' is finished") as refused:
        simulate(site, "first", Trust.no_code(), print)
    assert refused.value.fix == f"Use a new name: {command} …"


def test_a_rehearsal_of_what_was_agreed_before_is_refused(tmp_path: Path) -> None:
    site = copy_site(tmp_path, SECURE)
    prepare_rehearsal(site, "first")
    path = site.app / "resolved.toml"
    path.write_text(path.read_text().replace("clip_norm = 0.5", "clip_norm = 0.6"))
    with pytest.raises(InvalidInput, match=r"was made for an earlier version of .*\. Remove it, or use another --name"):
        prepare_rehearsal(site, "first")


def test_clients_with_tables_of_their_own_are_not_played(tmp_path: Path) -> None:
    site = copy_site(tmp_path, SECURE)
    path = site.app / "resolved.toml"
    table = '[task]\nkind = "csv"\npath = "rows.csv"\nlabel = "readmitted"\nclient = "hospital"\nranges = {}\n'
    path.write_text(re.sub(r"\[task\].*?(?=\n\[(?!task))", table, path.read_text(), flags=re.DOTALL))
    with pytest.raises(InvalidInput, match="hold the rows themselves"):
        prepare_rehearsal(site, "first")


def test_in_a_simulation_each_node_plays_the_client_of_its_number(tmp_path: Path) -> None:
    made = prepare_rehearsal(copy_site(tmp_path, SECURE), "first")
    run = {"folder": str(made.folder), "nodes": str(made.folder / CLIENTS_FOLDER)}
    heard: list[str] = []
    replies = [build_responder({"partition-id": number}, run, heard.append)(b"no request") for number in range(3)]
    assert len(heard) == 3
    assert len(set(replies)) == 1  # each node opened its folder and refused
    with pytest.raises(InvalidInput, match="The client's folder is not named"):
        build_responder({"partition-id": 0}, {}, heard.append)


def test_without_a_seed_the_clients_of_a_rehearsal_share_out_one_task_and_one_first_model(tmp_path: Path) -> None:
    """Each client takes its own place in the same order, so that no two clients hold the same example."""
    first, *others = learners(prepare_rehearsal(copy_site(tmp_path, UNSEEDED), "first"))
    order = first.data.order
    assert order is not None
    for each in others:
        assert torch.equal(each.data.inputs[each.data.order], first.data.inputs[order])
        assert all(torch.equal(each.params[name], first.params[name]) for name in first.params)
    assert sorted(each.place for each in (first, *others)) == [0, 1, 2]
