"""Which requests a client answers and which it refuses, whoever sent or changed them, and with which message."""

from dataclasses import replace
from pathlib import Path

import pytest

from discreet.algorithms.sampling import FixedSize
from discreet.deploy.certificates import read_key, write_signing_key
from discreet.deploy.client_node import ClientNode
from discreet.deploy.journal import Journal
from discreet.deploy.learner import Learner
from discreet.engines.flower import signed_messages
from discreet.engines.flower.flower_errors import RequestRefused
from discreet.errors import InvalidInput
from tests.deploy.node_requests import OpenSession, RequestCase, count_releases, open_request, refusal, sign_header

pytestmark = pytest.mark.usefixtures("one_thread")


def test_the_request_that_the_following_spoil_is_answered(request_case: RequestCase) -> None:
    _, _, node, about, body, key = request_case
    assert isinstance(signed_messages.read_reply(node.answer(signed_messages.sign_request(about, body, key))), bytes)


def test_a_model_that_all_clients_get_is_signed_with_each_request(request_case: RequestCase) -> None:
    _, _, node, about, model, key = request_case
    own = signed_messages.sign_request(about, b"", key, shared=model)
    changed = model[:-1] + bytes([model[-1] ^ 1])
    assert "not signed by the server key" in refusal(node, own + changed)
    assert "not signed by the server key" in refusal(node, own)
    assert isinstance(signed_messages.read_reply(node.answer(own + model)), bytes)


def test_a_server_with_another_key_is_not_heard(request_case: RequestCase) -> None:
    folder, _, node, about, body, _ = request_case
    write_signing_key(folder / "another.key")
    why = refusal(node, signed_messages.sign_request(about, body, read_key(folder / "another.key")))
    assert why.startswith("The request is not signed by the server key that this node's policy allows.")


def test_a_request_that_was_changed_on_its_way_is_not_heard(request_case: RequestCase) -> None:
    _, _, node, about, body, key = request_case
    request = bytearray(signed_messages.sign_request(about, body, key))
    request[-1] ^= 1
    assert "not signed" in refusal(node, bytes(request))


def test_another_experiment_than_the_agreed_one_is_refused(request_case: RequestCase) -> None:
    _, _, node, about, body, key = request_case
    why = refusal(node, signed_messages.sign_request(replace(about, experiment="0" * 64), body, key))
    assert why.startswith("The server asks for the experiment 000000000000…, and this node has agreed to ")


def test_another_clients_request_and_a_round_too_many_are_refused(request_case: RequestCase) -> None:
    _, _, node, about, body, key = request_case
    assert "is for client 1" in refusal(node, signed_messages.sign_request(replace(about, client=1), body, key))
    assert "has 3 rounds, and the server asks for round 4" in refusal(
        node, signed_messages.sign_request(replace(about, round=3), body, key)
    )


COHORTS = [
    ((7, 8, 9), "A cohort must be of the 3 clients"),
    ((0, 1, 2, 9), "A cohort must be of the 3 clients"),
    ((0, 1, 2, 2), "A cohort must be of the 3 clients, each at most once"),
    ((1, 2), "must include this client, number 0"),
    ((), "must include this client, number 0"),
    ((0, 1), "In round 1 it is the turn of [0, 1, 2], and the server names (0, 1)"),
]


@pytest.mark.parametrize(("cohort", "why"), COHORTS, ids=str)
def test_a_cohort_that_can_not_be_is_refused_and_costs_nothing(
    request_case: RequestCase, cohort: tuple[int, ...], why: str
) -> None:
    _, _, node, about, body, key = request_case
    assert why in refusal(node, signed_messages.sign_request(replace(about, cohort=cohort), body, key))
    assert count_releases(node) == 0


@pytest.mark.parametrize(("cohort", "why"), COHORTS, ids=str)
def test_no_session_is_begun_for_a_cohort_that_can_not_be(
    open_session: OpenSession, cohort: tuple[int, ...], why: str
) -> None:
    site, wire, engine, broadcast = open_session
    engine.gather(broadcast, [0, 1, 2])
    about, body, key = open_request(wire, 1, 100, site)
    assert why in refusal(wire.nodes_at[100], signed_messages.sign_request(replace(about, cohort=cohort), body, key))


def test_a_cohort_that_is_drawn_in_secret_may_be_any_with_this_client(request_case: RequestCase) -> None:
    learner = request_case[2].learner
    drawn = replace(learner, algorithm=replace(learner.algorithm, sampling=FixedSize(cohort=2)))
    drawn.check_cohort(0, (0, 1))
    with pytest.raises(RequestRefused, match="must include this client"):
        drawn.check_cohort(0, (1, 2))


def test_a_client_whose_budget_is_spent_is_in_no_cohort(request_case: RequestCase) -> None:
    """Client 2's budget lasts one round, which all can compute."""
    learner = replace(request_case[2].learner, last_rounds={2: 1})
    learner.check_cohort(0, (0, 1, 2))
    learner.check_cohort(1, (0, 1))
    with pytest.raises(RequestRefused, match=r"In round 2 it is the turn of \[0, 1\]"):
        learner.check_cohort(1, (0, 1, 2))


HEAD = '{{"kind": "train", "run": {run}, "experiment": "{digest}", "round": 0, "client": 0, "cohort": [{number}]}}'


@pytest.mark.parametrize(
    "head",
    [
        b"\xff\xfe",
        b"[]",
        b"null",
        b"[" * 100_000,
        HEAD.format(run='"' + "a" * 32 + '"', digest="\\ud800", number=0).encode(),
        HEAD.format(run='"' + "a" * 32 + '", "\\ud800": "', digest="0" * 64, number=0).encode(),
        HEAD.format(run='"' + "a" * 32 + '"', digest="0" * 64, number="9" * 5000).encode(),
    ],
    ids=lambda head: ascii(head[:12]),
)
def test_a_request_that_is_none_is_refused_in_a_sentence_and_the_node_stays(
    request_case: RequestCase, head: bytes
) -> None:
    _, _, node, about, body, key = request_case
    why = refusal(node, sign_header(head, key))
    assert why.endswith((".", ".)"))
    assert "could not be answered" not in why  # it is not a fault of the node
    assert isinstance(signed_messages.read_reply(node.answer(signed_messages.sign_request(about, body, key))), bytes)


def test_a_request_that_says_too_much_about_itself_is_not_read(request_case: RequestCase) -> None:
    _, _, node, _, _, key = request_case
    why = refusal(node, sign_header(b" " * (2**20 + 1), key))
    assert why.startswith("The message says in 1048577 bytes what it is about, and 1048576 are allowed.")


@pytest.mark.parametrize("run", ["a" * 300, "../../elsewhere", "é" * 32, ""])
def test_a_run_is_named_as_servers_name_them(request_case: RequestCase, run: str) -> None:
    """It names a folder on the client's disk."""
    _, _, node, _, _, key = request_case
    head = HEAD.format(run=f'"{run}"', digest=node.app.digest, number=0).encode()
    assert refusal(node, sign_header(head, key)).startswith("RequestHeader: run: ")


def test_a_run_that_names_a_folder_elsewhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="letters and digits"):
        Journal(tmp_path).counted_rounds("../elsewhere")


def test_a_fault_is_named_to_the_server_and_told_to_the_owner_alone(
    request_case: RequestCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, node, about, body, key = request_case

    def fail(*_: object) -> None:
        raise RuntimeError("row 17 is odd")

    heard = list[str]()
    monkeypatch.setattr(Learner, "update", fail)
    why = refusal(replace(node, say=heard.append), signed_messages.sign_request(about, body, key))
    assert why == "The request could not be answered (RuntimeError); the node's owner sees why."
    assert heard == ["Refused, after a fault of this node's own (RuntimeError): row 17 is odd"]


def test_a_node_whose_folder_can_not_be_written_does_not_start(
    request_case: RequestCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Permissions don't bind tests that run as root, so the system's answer is simulated."""
    folder, _, node, _, _, _ = request_case
    node.close()
    monkeypatch.setattr("os.access", lambda path, mode: path != folder / "client-0")
    with pytest.raises(InvalidInput, match="client-0 must be writable"):
        ClientNode.open(folder / "client-0", lambda text: None)
