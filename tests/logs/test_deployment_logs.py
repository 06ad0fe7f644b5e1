"""What a server and its nodes log of a deployment: who refused, but not whom a secret draw asked."""

import json
import re
from pathlib import Path
from typing import Any

from discreet.deploy.deployed_run import DeployedRun
from discreet.log_output import write_logs
from tests.deploy.example_sites import CENTRAL, connect_nodes, copy_site, edit_policy
from tests.logs.test_private_values import public_part

TRUST = "trust_server_with_updates = false", "trust_server_with_updates = true"
SECRET_DRAW = CENTRAL.replace('{ kind = "everyone" }', '{ kind = "fixed_size", cohort = 2 }').replace("8.0", "50.0")


def train_with_refusals(folder: Path, text: str) -> list[dict[str, Any]]:
    """Train on nodes of which client-1 refuses every round. Return all log lines."""
    site = copy_site(folder, text)
    for client in range(3):
        edit_policy(folder / f"client-{client}", *TRUST)
    policy = folder / "client-1" / "policy.toml"
    policy.write_text(re.sub("minimum_cohort = .*", "minimum_cohort = 90", policy.read_text()))
    wire = connect_nodes(folder, site, [])
    with write_logs(verbose=2, file=str(folder / "log.jsonl")):
        DeployedRun(site, "first").train(wire, lambda _: None)
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def server_lines(folder: Path, text: str) -> list[dict[str, Any]]:
    """Return the public part of what the server logs: lines about a request are the nodes' own."""
    train_with_refusals(folder, text)
    return [line for line in public_part((folder / "log.jsonl").read_text()) if "request" not in line]


def test_a_server_does_not_log_whom_a_secret_draw_asked(tmp_path: Path):
    first, second = (
        server_lines(tmp_path / str(seed), SECRET_DRAW.replace("seed = 7", f"seed = {seed}")) for seed in (3, 11)
    )
    assert first == second
    assert {line["event"] for line in first if "client" in line} == {"client online"}


def test_a_server_logs_which_client_of_a_public_cohort_refused(tmp_path: Path):
    refusals = [line for line in server_lines(tmp_path / "site", CENTRAL) if line["event"] == "client left out"]
    assert [(line["client"], line["round"], line["error"]) for line in refusals] == [
        ("client-1", round, "RequestRefused") for round in (1, 2, 3)
    ]


def test_a_node_logs_each_request_and_what_became_of_it(tmp_path: Path):
    lines = [line for line in train_with_refusals(tmp_path / "site", CENTRAL) if line.get("request")]
    answered = [line for line in lines if line["client"] == "client-0"]
    sent = [(line["event"], line["kind"], line["round"]) for line in answered if line["level"] == "info"]
    assert [each for each in sent if each[0] == "round answered"] == [
        ("round answered", "train", each) for each in (1, 2, 3)
    ]
    events = [line["event"] for line in answered]
    assert events.count("request received") == events.count("request answered") == 4
    assert len({line["request"] for line in answered}) == 4
    refused = [line for line in lines if line["client"] == "client-1" and line["level"] == "warning"]
    assert [(line["event"], line["error"]) for line in refused] == [("request refused", "PolicyRefusal")] * 3


def test_a_request_that_comes_again_is_logged_as_replayed(tmp_path: Path):
    site = copy_site(tmp_path, CENTRAL)
    for client in range(3):
        edit_policy(tmp_path / f"client-{client}", *TRUST)
    wire = connect_nodes(tmp_path, site, [])
    DeployedRun(site, "first").train(wire, lambda _: None)
    request, _ = wire.passed[-1][100]
    with write_logs(file=str(tmp_path / "log.jsonl")):
        wire.nodes_at[100].answer(request)
    events = [json.loads(line)["event"] for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert events == ["reply replayed"]
