"""What a client answers and what it refuses, with the whole protocol in one process and no network."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from discreet.deploy.app import App
from discreet.deploy.certificates import key_from, write_signing_key
from discreet.deploy.node import Node
from discreet.deploy.server import prepared, serve
from discreet.deploy.site import Site
from discreet.engines.flower import messages
from discreet.engines.flower.errors import ClientsRefused
from discreet.engines.flower.messages import About
from discreet.experiment import api, config, run
from discreet.experiment.record import Record
from discreet.params import Params
from discreet.randomness import RunKey
from tests.deploy.sites import PLAIN, SECURE, changed, copied, wired, written


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def trained(site: Site, name: str) -> Params:
    return Record.open(site.run(name)).model()


def reference(folder: Path, text: str) -> Params:
    source = config.load(written(folder, text), ('engine={kind="reference"}',))
    run.start(api.prepared(source), folder / "reference", None, None, lambda line: None)
    return Record.open(folder / "reference").model()


def same(left: Params, right: Params) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


@pytest.mark.parametrize("text", [PLAIN, SECURE], ids=["in clear", "secure"])
def test_real_clients_train_the_model_of_the_reference_engine_bit_for_bit(tmp_path: Path, text: str) -> None:
    site, heard = copied(tmp_path, text), list[str]()
    outcome = serve(site, "first", wired(tmp_path, site, heard), heard.append)
    assert outcome.done == 3
    assert same(trained(site, "first"), reference(tmp_path, text))
    assert not {"norms", "kept", "clipped", "signal_to_noise"} & set(outcome.record.rounds()[0])  # they tell nobody


def test_a_client_that_goes_in_mid_round_is_made_up_for(tmp_path: Path) -> None:
    """Exchanges: who is there, keys, shares; then mask, agree, reveal. Node 102 is silent from the second mask on."""
    site, heard = copied(tmp_path, SECURE), list[str]()
    wire = wired(tmp_path, site, heard)
    wire.lost = lambda node, number: node == 102 and number >= 6
    outcome = serve(site, "first", wire, heard.append)
    assert [line["clients"] for line in outcome.record.rounds()] == [3, 2, 2]


def test_a_client_that_goes_after_its_mask_was_sent_is_still_in_the_sum(tmp_path: Path) -> None:
    site, heard = copied(tmp_path, SECURE), list[str]()
    wire = wired(tmp_path, site, heard)
    wire.lost = lambda node, number: node == 102 and number in (7, 8)
    outcome = serve(site, "first", wire, heard.append)
    assert [line["clients"] for line in outcome.record.rounds()] == [3, 3, 3]
    assert same(trained(site, "first"), reference(tmp_path, SECURE))


def test_with_too_few_left_the_round_is_lost_and_the_run_goes_on(tmp_path: Path) -> None:
    site, heard = copied(tmp_path, SECURE), list[str]()
    wire = wired(tmp_path, site, heard)
    wire.lost = lambda node, number: node != 100 and number == 6
    outcome = serve(site, "first", wire, heard.append)
    lines = outcome.record.rounds()
    assert [line["clients"] for line in lines] == [3, 0, 3]
    assert "1 clients sent a masked vector" in lines[1]["lost"]


def test_a_question_that_is_asked_again_gets_the_same_bytes_and_costs_nothing(tmp_path: Path) -> None:
    site, heard = copied(tmp_path, PLAIN), list[str]()
    wire = wired(tmp_path, site, heard)
    serve(site, "first", wire, heard.append)
    node = wire.nodes_at[101]
    before = node.spending.ledger(node.day()).summary()["budgets"][0]["spent"]
    again = Node.open(tmp_path / "client-1", heard.append)  # it was started anew in the meantime
    for exchange in wire.passed[1:]:
        question, answer = exchange[101]
        assert again.answer(question) == answer
    assert again.spending.ledger(node.day()).summary()["budgets"][0]["spent"] == before


def test_another_question_in_the_same_round_is_a_new_attempt_with_fresh_noise(tmp_path: Path) -> None:
    """The same round from another model: two answers under one noise would differ by the updates alone."""
    site, heard = copied(tmp_path, PLAIN), list[str]()
    wire = wired(tmp_path, site, heard)
    serve(site, "first", wire, heard.append)
    node, server = wire.nodes_at[100], key_from(site.server / "server.key")
    about, body = messages.parsed(wire.passed[1][100][0], bytes.fromhex(site.deployment.server_key))
    params, announced = messages.gathered(body, node.learner.params)
    other = messages.spread({name: value + 1 for name, value in params.items()}, announced)
    first = node.spending.ledger(node.day()).summary()["releases"]["committed"]
    assert messages.told(node.answer(messages.request(about, other, server)))[0] is not None
    assert node.spending.ledger(node.day()).summary()["releases"]["committed"] == first + 1
    keys = [node.journal.attempt(about.run, 0, "something else").attempt]
    assert keys == [2]


def test_a_secure_round_that_is_made_again_is_a_new_attempt_and_counts_again(tmp_path: Path) -> None:
    """A masked update may have been opened by the others, so a second sum with its noise would show the difference."""
    site, heard = copied(tmp_path, SECURE), list[str]()
    wire = wired(tmp_path, site, heard)
    calls = prepared(site, App.open(site.app), "first", RunKey.seed(7), wire, heard.append)
    assert calls.remote is not None
    broadcast = calls.algorithm.broadcast(calls.algorithm.init(calls.params), 0)
    first = calls.remote().gather(broadcast, [0, 1, 2])
    anew = prepared(site, App.open(site.app), "first", RunKey.seed(7), wire, heard.append)
    assert anew.remote is not None
    second = anew.remote().gather(broadcast, [0, 1, 2])
    assert not same(first.total, second.total)
    node = wire.nodes_at[100]
    assert node.spending.ledger(node.day()).summary()["releases"]["committed"] == 2


Asked = tuple[Path, Site, Node, About, bytes, bytes]


def refusal(node: Node, request: bytes) -> str:
    answer, why = messages.told(node.answer(request))
    assert answer is None
    return why


@pytest.fixture
def asked(tmp_path: Path) -> tuple[Path, Site, Node, About, bytes, bytes]:
    """A node, and a request that it would answer."""
    site, heard = copied(tmp_path, PLAIN), list[str]()
    node, app, key = (
        Node.open(tmp_path / "client-0", heard.append),
        App.open(site.app),
        key_from(site.server / "server.key"),
    )
    about = About(kind="train", run="a", experiment=app.digest, round=0, client=0, cohort=(0, 1, 2))
    broadcast = node.learner.algorithm.broadcast(node.learner.algorithm.init(node.learner.params), 0)
    return tmp_path, site, node, about, messages.spread(broadcast.params, broadcast.announced), key


def test_the_request_that_the_following_spoil_is_answered(asked: Asked) -> None:
    _, _, node, about, body, key = asked
    assert messages.told(node.answer(messages.request(about, body, key)))[0] is not None


def test_a_server_with_another_key_is_not_heard(asked: Asked) -> None:
    folder, _, node, about, body, _ = asked
    write_signing_key(folder / "another.key")
    why = refusal(node, messages.request(about, body, key_from(folder / "another.key")))
    assert why.startswith("The request is not signed by the server key that this node's policy allows.")


def test_a_request_that_was_changed_on_its_way_is_not_heard(asked: Asked) -> None:
    _, _, node, about, body, key = asked
    request = bytearray(messages.request(about, body, key))
    request[-1] ^= 1
    assert "not signed" in refusal(node, bytes(request))


def test_another_experiment_than_the_agreed_one_is_refused(asked: Asked) -> None:
    _, _, node, about, body, key = asked
    why = refusal(node, messages.request(replace(about, experiment="0" * 64), body, key))
    assert why.startswith("The server asks for the experiment 000000000000…, and this node has agreed to ")


def test_a_changed_algorithm_has_another_digest(asked: Asked) -> None:
    _, site, _, _, _, _ = asked
    before, path = App.open(site.app).digest, site.app / "resolved.toml"
    path.write_text(path.read_text().replace("clip_norm = 0.5", "clip_norm = 5.0"))
    assert App.open(site.app).digest != before


def test_an_algorithm_that_the_owner_did_not_allow_is_refused(asked: Asked) -> None:
    folder, _, node, about, body, key = asked
    changed(folder / "client-0", node.app.digest, "f" * 64)
    again = Node.open(folder / "client-0", lambda text: None)
    assert "The policy does not allow the algorithm" in refusal(again, messages.request(about, body, key))


def test_another_clients_request_and_a_round_too_many_are_refused(asked: Asked) -> None:
    _, _, node, about, body, key = asked
    assert "is for client 1" in refusal(node, messages.request(replace(about, client=1), body, key))
    assert "has 3 rounds, and round 4" in refusal(node, messages.request(replace(about, round=3), body, key))


def test_an_update_in_clear_is_refused_where_the_owner_asks_for_a_secure_sum(asked: Asked) -> None:
    folder, _, _, about, body, key = asked
    changed(folder / "client-0", "secure_sum = false", "secure_sum = true")
    again = Node.open(folder / "client-0", lambda text: None)
    assert "The policy asks for a secure sum" in refusal(again, messages.request(about, body, key))


def test_an_update_in_clear_is_refused_where_the_noise_is_enough_only_for_sums(tmp_path: Path) -> None:
    site, heard = copied(tmp_path, SECURE), list[str]()
    node, key = Node.open(tmp_path / "client-0", heard.append), key_from(site.server / "server.key")
    about = About(kind="train", run="a", experiment=App.open(site.app).digest, round=0, client=0, cohort=(0, 1, 2))
    assert "enough only for sums" in refusal(node, messages.request(about, b"", key))


def test_a_cohort_below_the_owners_minimum_is_refused(asked: Asked) -> None:
    folder, _, _, about, body, key = asked
    changed(folder / "client-0", "minimum_cohort = 2", "minimum_cohort = 4")
    again = Node.open(folder / "client-0", lambda text: None)
    assert "sums of at least 4 clients, and the server would make one of 3" in refusal(
        again, messages.request(about, body, key)
    )


def test_a_seed_is_refused_unless_the_owner_allows_it(tmp_path: Path) -> None:
    copied(tmp_path, PLAIN)
    changed(tmp_path / "client-0", "seeds = true", "seeds = false")
    with pytest.raises(Exception, match="The experiment has a seed"):
        Node.open(tmp_path / "client-0", lambda text: None)


def test_an_announced_clip_that_would_let_more_out_is_refused(tmp_path: Path) -> None:
    site, heard = copied(tmp_path, SECURE), list[str]()
    wire = wired(tmp_path, site, heard)
    job = prepared(site, App.open(site.app), "first", RunKey.seed(7), wire, heard.append)
    assert job.remote is not None
    broadcast = job.algorithm.broadcast(job.algorithm.init(job.params), 0)
    loud = replace(broadcast, announced={name: value / 100 for name, value in broadcast.announced.items()})
    with pytest.raises(ClientsRefused, match="announced another 'clip' than this algorithm has"):
        job.remote().gather(loud, [0, 1, 2])


def test_a_spent_budget_ends_the_run_with_the_clients_own_words(tmp_path: Path) -> None:
    """The policy allows what one run takes and a tenth more; of the second run's rounds none is affordable."""
    site, heard = copied(tmp_path, SECURE), list[str]()
    serve(site, "first", wired(tmp_path, site, heard), heard.append)
    with pytest.raises(ClientsRefused, match=r"This node's own ledger refuses: .*epsilon"):
        serve(site, "second", wired(tmp_path, site, heard), heard.append)
    assert not Record.open(site.run("second")).finished()


def test_a_client_whose_budget_is_spent_is_left_out_and_the_others_go_on(tmp_path: Path) -> None:
    site, heard = copied(tmp_path, SECURE), list[str]()
    policy = tmp_path / "client-2" / "policy.toml"
    line = next(each for each in policy.read_text().splitlines() if each.startswith("epsilon"))
    changed(tmp_path / "client-2", line, "epsilon = 0.1")
    outcome = serve(site, "first", wired(tmp_path, site, heard), heard.append)
    assert [each["clients"] for each in outcome.record.rounds()] == [2, 2, 2]
    assert any(each.startswith("client-2 refused round 1: This node's own ledger refuses") for each in heard)


def test_a_node_that_can_not_prove_who_it_is_is_nobody(tmp_path: Path) -> None:
    """It has the right folder but for the key that its card names."""
    site, heard = copied(tmp_path, SECURE), list[str]()
    (tmp_path / "client-2" / "identity.key").unlink()
    write_signing_key(tmp_path / "client-2" / "identity.key")
    wire = wired(tmp_path, site, heard)
    job = prepared(site, App.open(site.app), "first", RunKey.seed(7), wire, heard.append)
    assert job.remote is not None
    engine = job.remote()
    engine.calls.timeout = 0.0  # type: ignore[attr-defined]
    found = engine.gather(job.algorithm.broadcast(job.algorithm.init(job.params), 0), [0, 1, 2])
    assert found.contributors == (0, 1)
    assert "A node could not prove which client it is, and is left out." in heard


def test_a_run_that_was_stopped_goes_on_with_its_model_and_its_ledger(tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    site, heard = copied(tmp_path, PLAIN), list[str]()
    wire = wired(tmp_path, site, heard)

    def killed(node: int, number: int) -> bool:
        if number == 2:
            raise Killed
        return False

    wire.lost = killed
    with pytest.raises(Killed):
        serve(site, "first", wire, heard.append)
    outcome = serve(site, "first", wired(tmp_path, site, heard), heard.append)
    assert "Run 'first' goes on after round 1 of 3." in heard
    assert outcome.done == 3
    assert same(trained(site, "first"), reference(tmp_path, PLAIN))
