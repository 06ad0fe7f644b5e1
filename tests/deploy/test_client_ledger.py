"""What a client's answers cost: which are new attempts with fresh noise, and what happens when the budget is spent."""

import json
import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from discreet.algorithms.sampling import FixedSize
from discreet.deploy.certificates import read_key
from discreet.deploy.client_ledger import ClientLedger
from discreet.deploy.client_node import ClientNode
from discreet.deploy.deployed_run import DeployedRun
from discreet.deploy.entry_points import main
from discreet.deploy.journal import KEPT_ROUNDS, Entry
from discreet.deploy.learner import Learner
from discreet.engines.flower import signed_messages
from discreet.errors import BudgetRefused
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.privacy.wording import round_up
from discreet.randomness.streams import RunKey
from tests.deploy.example_sites import PLAIN, SECURE, connect_nodes, copy_site, edit_policy
from tests.deploy.node_requests import RUN, RequestCase, are_equal, count_releases, refusal, restart

pytestmark = pytest.mark.usefixtures("one_thread")


def test_a_question_that_is_asked_again_gets_the_same_bytes_and_costs_nothing(tmp_path: Path) -> None:
    site, heard = copy_site(tmp_path, PLAIN), list[str]()
    wire = connect_nodes(tmp_path, site, heard)
    DeployedRun(site, "first").train(wire, heard.append)
    node = wire.nodes_at[101]
    before = node.ledger.open_ledger(node.day()).summary()["budgets"][0]["spent"]
    again = restart(node)
    for exchange in wire.passed[-KEPT_ROUNDS:]:
        question, answer = exchange[101]
        assert again.answer(question) == answer
    assert again.ledger.open_ledger(node.day()).summary()["budgets"][0]["spent"] == before


def test_replies_of_the_last_rounds_are_kept_and_older_ones_are_not_made_again(request_case: RequestCase) -> None:
    folder, _, node, about, body, key = request_case
    requests = [signed_messages.sign_request(replace(about, round=round), body, key) for round in range(3)]
    replies = [node.answer(request) for request in requests]
    assert len(list((folder / "client-0" / "runs").rglob("*.reply"))) == 2
    assert [node.answer(request) == reply for request, reply in zip(requests, replies, strict=True)][1:] == [True, True]
    assert "Round 1 was answered long ago, and the answer is no longer kept." in refusal(node, requests[0])
    assert count_releases(node) == 3


def test_another_question_in_the_same_round_is_a_new_attempt_with_fresh_noise(tmp_path: Path) -> None:
    """The same round from another model: the difference of two answers with one noise would contain no noise."""
    site, heard = copy_site(tmp_path, PLAIN), list[str]()
    wire = connect_nodes(tmp_path, site, heard)
    DeployedRun(site, "first").train(wire, heard.append)
    node, server = wire.nodes_at[100], read_key(site.server / "server.key")
    about, body = signed_messages.read_request(wire.passed[1][100][0], bytes.fromhex(site.deployment.server_key))
    params, announced = signed_messages.decode_broadcast(body, node.learner.params)
    other = signed_messages.encode_broadcast({name: value + 1 for name, value in params.items()}, announced)
    first = node.ledger.open_ledger(node.day()).summary()["releases"]["committed"]
    assert isinstance(
        signed_messages.read_reply(node.answer(signed_messages.sign_request(about, other, server))), bytes
    )
    assert node.ledger.open_ledger(node.day()).summary()["releases"]["committed"] == first + 1
    keys = [node.journal.find_attempt(about.run, 0, "something else").attempt]
    assert keys == [2]


def test_a_secure_round_that_is_made_again_is_a_new_attempt_and_counts_again(tmp_path: Path) -> None:
    """A masked update may have been opened by the others, so a second sum with its noise would show the difference."""
    site, heard = copy_site(tmp_path, SECURE), list[str]()
    wire = connect_nodes(tmp_path, site, heard)
    calls = DeployedRun(site, "first").prepare_job(RunKey.from_seed(7), wire, heard.append)
    assert calls.remote_engine is not None
    broadcast = calls.algorithm.broadcast(calls.algorithm.init(calls.params), 0)
    first = calls.remote_engine.gather(broadcast, [0, 1, 2])
    anew = DeployedRun(site, "first").prepare_job(RunKey.from_seed(7), wire, heard.append)
    assert anew.remote_engine is not None
    second = anew.remote_engine.gather(broadcast, [0, 1, 2])
    assert not are_equal(first.total, second.total)
    node = wire.nodes_at[100]
    assert node.ledger.open_ledger(node.day()).summary()["releases"]["committed"] == 2


def test_two_questions_are_two_charges_even_when_both_are_taken_for_the_first_attempt(
    request_case: RequestCase,
) -> None:
    _, _, node, about, _, _ = request_case
    for broadcast in ("one", "another", "one"):
        node._reserve(about, Entry(0, broadcast))
    assert count_releases(node) == 2


def test_a_node_counts_a_round_before_it_looks_at_its_data(
    request_case: RequestCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, node, about, body, key = request_case
    order: list[str] = []
    reserve, update = ClientLedger.reserve, Learner.update
    monkeypatch.setattr(ClientLedger, "reserve", lambda *given: order.append("reserve") or reserve(*given))
    monkeypatch.setattr(Learner, "update", lambda *given: order.append("update") or update(*given))
    assert isinstance(signed_messages.read_reply(node.answer(signed_messages.sign_request(about, body, key))), bytes)
    assert order == ["reserve", "update"]


def test_under_a_secret_draw_a_node_pays_for_rounds_that_it_was_not_asked_in(request_case: RequestCase) -> None:
    """Every client pays for every round of a secret draw; otherwise only those who were drawn would pay."""
    _, _, node, about, _, _ = request_case
    drawn = replace(node.learner, algorithm=replace(node.learner.algorithm, sampling=FixedSize(cohort=2)))
    replace(node, learner=drawn)._reserve(replace(about, round=2), Entry(0, "one"))
    assert count_releases(node) == 3


def test_the_noise_of_one_experiment_is_not_that_of_another(request_case: RequestCase) -> None:
    learner = request_case[2].learner
    broadcast = learner.algorithm.broadcast(learner.algorithm.init(learner.params), 0)
    one, again, other = (
        replace(learner, seed=None, experiment=each * 64).update(RUN, broadcast, Entry(0, ""))
        for each in ("0", "0", "1")
    )
    assert are_equal(one, again)
    assert not are_equal(one, other)


def test_a_spent_budget_ends_the_run_with_the_clients_own_words(tmp_path: Path) -> None:
    """The policy allows what one run takes and a tenth more; one round of the second run is affordable."""
    site, heard = copy_site(tmp_path, SECURE), list[str]()
    DeployedRun(site, "first").train(connect_nodes(tmp_path, site, heard), heard.append)
    outcome = DeployedRun(site, "second").train(connect_nodes(tmp_path, site, heard), heard.append)
    assert (outcome.completed, outcome.is_refused) == (1, True)
    assert re.search(r"This node's own ledger refuses: .*epsilon", outcome.stopped or "")
    assert not RunRecord.open(site.run("second")).is_finished()


def test_a_client_whose_budget_is_spent_is_left_out_and_the_others_go_on(tmp_path: Path) -> None:
    site, heard = copy_site(tmp_path, SECURE), list[str]()
    policy = tmp_path / "client-2" / "policy.toml"
    line = next(each for each in policy.read_text().splitlines() if each.startswith("epsilon"))
    edit_policy(tmp_path / "client-2", line, "epsilon = 0.1")
    outcome = DeployedRun(site, "first").train(connect_nodes(tmp_path, site, heard), heard.append)
    assert [each["clients"] for each in outcome.record.read_rounds()] == [2, 2, 2]
    assert any(each.startswith("client-2 refused round 1: This node's own ledger refuses") for each in heard)


def test_a_budget_that_the_clients_have_spent_keeps_its_exit_code(tmp_path: Path) -> None:
    """The policies allow one run and a tenth more, so too few rounds of a second one are affordable."""
    site, heard = copy_site(tmp_path, SECURE), list[str]()
    codes = []
    for name in ("first", "second"):
        settings = {"folder": str(site.folder), "name": name}
        main(lambda *_: connect_nodes(tmp_path, site, heard), settings, heard.append)
        codes.append(json.loads(site.end_file(name).read_text())["exit_code"])
    assert codes == [0, BudgetRefused.exit_code]


def test_a_ledger_that_is_away_is_not_begun_anew_and_a_clock_set_back_not_believed(request_case: RequestCase) -> None:
    folder, _, node, about, body, key = request_case
    assert isinstance(signed_messages.read_reply(node.answer(signed_messages.sign_request(about, body, key))), bytes)
    nextly = signed_messages.sign_request(replace(about, round=1), body, key)
    early = replace(restart(node), day=lambda: date(1970, 1, 1))
    assert "This machine's clock says 1970-01-01, and this node has counted on" in refusal(early, nextly)
    (ledger,) = (folder / "client-0").glob("ledger-*.jsonl")
    kept = ledger.read_bytes()
    ledger.unlink()
    again = restart(early)
    assert "in which this node has counted, is gone. Put it back" in refusal(again, nextly)
    assert not ledger.exists()
    ledger.write_bytes(kept)
    assert isinstance(signed_messages.read_reply(restart(again).answer(nextly)), bytes)


def test_a_node_tells_its_owner_of_each_round_that_it_answered_and_what_its_ledger_has_spent(
    request_case: RequestCase,
) -> None:
    """As `discreet ledger show` does, and once: a repeated request costs nothing."""
    _, _, node, about, body, key = request_case
    told = list[str]()
    watched = replace(node, report_answer=told.append)
    for round in (0, 0, 1):
        watched.answer(signed_messages.sign_request(replace(about, round=round), body, key))
    (budget,) = node.ledger.open_ledger(node.day()).summary()["budgets"]
    assert len(told) == 2
    name = f"ledger-{node.day().year}.jsonl"
    spent = f"ε {round_up(budget['spent'])} of {budget['epsilon']:g}"
    assert told[1] == f"Answered round 2 of 3 of run aaaaaaaa…; {name} has spent {spent}."
    assert told[0].startswith(f"Answered round 1 of 3 of run aaaaaaaa…; {name} has spent ε ")
    assert told[0] != told[1]


def test_a_round_of_a_secure_sum_is_told_of_once_however_often_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, heard, told = copy_site(tmp_path, SECURE), list[str](), list[str]()
    wire, answer = connect_nodes(tmp_path, site, heard), ClientNode.answer

    def twice(node: ClientNode, request: bytes) -> bytes:
        about, _ = signed_messages.read_request(request, bytes.fromhex(site.deployment.server_key))
        said = answer(node, request)
        if about.kind == "mask":
            assert answer(node, request) == said
        return said

    monkeypatch.setattr(ClientNode, "answer", twice)
    wire.nodes_at[100] = replace(wire.nodes_at[100], report_answer=told.append)
    DeployedRun(site, "first").train(wire, heard.append)
    assert [each.partition(" of run ")[0] for each in told] == [f"Answered round {each} of 3" for each in (1, 2, 3)]
