"""What a client answers and what it refuses, with the whole protocol in one process and no network."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from discreet.broadcast import Broadcast
from discreet.deploy.app import App
from discreet.deploy.certificates import key_from, write_signing_key
from discreet.deploy.entries import answering
from discreet.deploy.journal import Entry
from discreet.deploy.learner import Learner
from discreet.deploy.node import Node
from discreet.deploy.policy import Owned, Refused
from discreet.deploy.server import prepared, serve
from discreet.deploy.site import Site
from discreet.engines.flower import messages
from discreet.engines.flower.engine import FlowerEngine
from discreet.engines.flower.errors import ClientsRefused, NotOurs
from discreet.engines.flower.messages import About
from discreet.errors import InvalidInput
from discreet.experiment import api, config, run
from discreet.experiment.record import Record
from discreet.params import Params
from discreet.randomness import RunKey
from discreet.sampling import FixedSize
from discreet.secagg import keys
from discreet.secagg.errors import TooFewClients
from discreet.secagg.terms import Terms
from discreet.secagg.wire import Writer
from tests.deploy.sites import PLAIN, SECURE, Wire, changed, copied, founded, wired, written


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


RUN = "a" * 32  # a run's name, as servers make them


def started_anew(node: Node) -> Node:
    """The node of the same folder after its process ended."""
    node.close()
    return Node.open(node.owned.folder, lambda text: None)


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
    again = started_anew(node)
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
    about = About(kind="train", run=RUN, experiment=app.digest, round=0, client=0, cohort=(0, 1, 2))
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
    with pytest.raises(Refused, match="The policy does not allow the algorithm"):
        started_anew(node)
    strict = replace(node, owned=Owned.open(folder / "client-0"))
    assert "The policy does not allow the algorithm" in refusal(strict, messages.request(about, body, key))


def test_another_clients_request_and_a_round_too_many_are_refused(asked: Asked) -> None:
    _, _, node, about, body, key = asked
    assert "is for client 1" in refusal(node, messages.request(replace(about, client=1), body, key))
    assert "has 3 rounds, and round 4" in refusal(node, messages.request(replace(about, round=3), body, key))


def test_an_update_in_clear_is_refused_where_the_owner_asks_for_a_secure_sum(asked: Asked) -> None:
    folder, _, node, about, body, key = asked
    changed(folder / "client-0", "secure_sum = false", "secure_sum = true")
    again = started_anew(node)
    assert "The policy asks for a secure sum" in refusal(again, messages.request(about, body, key))


def test_an_update_in_clear_is_refused_where_the_noise_is_enough_only_for_sums(tmp_path: Path) -> None:
    site, heard = copied(tmp_path, SECURE), list[str]()
    node, key = Node.open(tmp_path / "client-0", heard.append), key_from(site.server / "server.key")
    about = About(kind="train", run=RUN, experiment=App.open(site.app).digest, round=0, client=0, cohort=(0, 1, 2))
    assert "enough only for sums" in refusal(node, messages.request(about, b"", key))


def test_a_cohort_below_the_owners_minimum_is_refused(asked: Asked) -> None:
    folder, _, node, about, body, key = asked
    changed(folder / "client-0", "minimum_cohort = 2", "minimum_cohort = 4")
    again = started_anew(node)
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
    for node in wire.nodes_at.values():
        node.close()
    outcome = serve(site, "first", wired(tmp_path, site, heard), heard.append)
    assert "Run 'first' goes on after round 1 of 3." in heard
    assert outcome.done == 3
    assert same(trained(site, "first"), reference(tmp_path, PLAIN))


def counted(node: Node) -> int:
    """How many releases its own ledger holds, made or only announced."""
    return sum(node.spending.ledger(node.day()).summary()["releases"].values())


def test_python_that_the_owner_did_not_allow_is_not_run(tmp_path: Path) -> None:
    own = "import torch\ndef loss(outputs, targets):\n    return torch.nn.functional.cross_entropy(outputs, targets)\n"
    (tmp_path / "losses.py").write_text(own)
    site = founded(tmp_path, PLAIN.replace("seed = 7\n", 'seed = 7\nloss = "losses.py:loss"\n'))
    mark = tmp_path / "it-ran"
    (site.app / "losses.py").write_text(f"open({str(mark)!r}, 'w').close()\n" + own)
    with pytest.raises(Refused, match="The policy does not allow the algorithm"):
        Node.open(tmp_path / "client-0", lambda text: None)
    assert not mark.exists()


def test_two_processes_can_not_work_on_one_folder(asked: Asked) -> None:
    folder, _, node, _, _, _ = asked
    with pytest.raises(InvalidInput, match="client-0 is already running"):
        Node.open(folder / "client-0", lambda text: None)
    started_anew(node)


def test_flowers_own_process_opens_the_folder_for_each_message_and_leaves_it(asked: Asked) -> None:
    folder, _, node, about, body, key = asked
    node.close()
    good, bad = messages.request(about, body, key), signed(b"null", key)
    told = [answering({"node": str(folder / "client-0")}, lambda text: None)(each)[0] for each in (good, bad, good)]
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


def test_two_questions_are_two_charges_even_when_both_are_taken_for_the_first_attempt(asked: Asked) -> None:
    _, _, node, about, _, _ = asked
    for broadcast in ("one", "another", "one"):
        node._count(about, Entry(0, broadcast))
    assert counted(node) == 2


def test_the_noise_of_one_experiment_is_not_that_of_another(asked: Asked) -> None:
    learner = asked[2].learner
    broadcast = learner.algorithm.broadcast(learner.algorithm.init(learner.params), 0)
    one, again, other = (
        replace(learner, seed=None, experiment=each * 64).update(RUN, broadcast, 0) for each in ("0", "0", "1")
    )
    assert same(one, again)
    assert not same(one, other)


Begun = tuple[Site, Wire, FlowerEngine, Broadcast]


@pytest.fixture
def begun(tmp_path: Path) -> Begun:
    """A secure sum whose session serves two more rounds."""
    site, heard = copied(tmp_path, SECURE), list[str]()
    wire = wired(tmp_path, site, heard)
    job = prepared(site, App.open(site.app), "first", RunKey.seed(7), wire, heard.append)
    assert job.remote is not None
    engine = job.remote()
    assert isinstance(engine, FlowerEngine)
    return site, wire, engine, job.algorithm.broadcast(job.algorithm.init(job.params), 0)


def anew(wire: Wire) -> None:
    wire.nodes_at = {number: started_anew(node) for number, node in wire.nodes_at.items()}


def test_a_secure_session_of_one_experiment_does_not_serve_another(begun: Begun) -> None:
    site, wire, engine, broadcast = begun
    engine.gather(broadcast, [0, 1, 2])
    before, agreed = engine.calls.experiment, site.app / "resolved.toml"
    agreed.write_text(agreed.read_text().replace("learning_rate = 2.0", "learning_rate = 1.0"))
    engine.calls.experiment = App.open(site.app).digest
    assert engine.calls.experiment != before
    for node in wire.nodes_at.values():
        changed(node.owned.folder, before, engine.calls.experiment)
    anew(wire)
    with pytest.raises(ClientsRefused, match="No secure sum was begun with this node"):
        engine.gather(replace(broadcast, round=1), [0, 1, 2])
    for node in wire.nodes_at.values():  # nor where its file lies in the other's place
        runs = node.owned.folder / "runs"
        shutil.copytree(runs / before, runs / engine.calls.experiment, dirs_exist_ok=True)
    with pytest.raises(ClientsRefused, match="was begun for another experiment"):
        engine.gather(replace(broadcast, round=2), [0, 1, 2])


def test_a_session_that_was_begun_is_held_to_the_policy_of_today(begun: Begun) -> None:
    _, wire, engine, broadcast = begun
    engine.gather(broadcast, [0, 1, 2])
    for node in wire.nodes_at.values():
        changed(node.owned.folder, "minimum_cohort = 2", "minimum_cohort = 3")
    anew(wire)
    with pytest.raises(ClientsRefused, match="sums of at least 3 clients, and the server would make one of 2"):
        engine.gather(replace(broadcast, round=1), [0, 1, 2])


def sent(wire: Wire, exchange: int, node: int, site: Site) -> tuple[About, bytes, bytes]:
    """A request that passed, opened, and the key to sign another one with."""
    about, body = messages.parsed(wire.passed[exchange][node][0], bytes.fromhex(site.deployment.server_key))
    return about, body, key_from(site.server / "server.key")


def test_a_mask_that_is_asked_for_again_is_the_same_and_another_question_gets_none(begun: Begun) -> None:
    """Exchanges: who is there, keys, shares, mask; nothing passes after it, so this is where the clients are."""
    site, wire, engine, broadcast = begun
    wire.lost = lambda node, number: number > 3
    with pytest.raises(TooFewClients):
        engine.gather(broadcast, [0, 1, 2])
    request, reply = wire.passed[3][100]
    node = started_anew(wire.nodes_at[100])
    assert node.answer(request) == reply
    about, body, key = sent(wire, 3, 100, site)
    number, members, spread = messages.masked(body)
    params, announced = messages.gathered(spread, node.learner.params)
    other = messages.spread({name: value + 1 for name, value in params.items()}, announced)
    question = messages.request(about, messages.mask(number, members, other), key)
    assert "the question was another one" in refusal(node, question)
    assert counted(node) == 1


def test_a_mask_that_can_not_be_made_costs_nothing(begun: Begun) -> None:
    """Before the keys are exchanged; under a number that was used, or that the session does not have."""
    site, wire, engine, broadcast = begun
    wire.lost = lambda node, number: number > 1
    with pytest.raises(TooFewClients):
        engine.gather(broadcast, [0, 1, 2])
    spread = messages.spread(broadcast.params, broadcast.announced)
    about, _, key = sent(wire, 1, 100, site)
    about, node = replace(about, kind="mask"), wire.nodes_at[100]
    why = refusal(node, messages.request(about, messages.mask(0, b"", spread), key))
    assert "masked when the set-up is done" in why
    assert counted(node) == 0
    wire.lost = lambda node, number: False
    engine.gather(broadcast, [0, 1, 2])
    assert counted(node) == 1
    for number in (0, 3):
        why = refusal(node, messages.request(replace(about, round=1), messages.mask(number, b"", spread), key))
        assert f"and got {number}: a round's keys serve once" in why
    assert counted(node) == 1


def test_a_session_that_is_aborted_at_its_first_mask_stays_so(begun: Begun) -> None:
    """The server hands client 0 the shares that are for client 1."""
    site, wire, engine, broadcast = begun
    wire.lost = lambda node, number: number > 3 or (number == 3 and node == 100)
    with pytest.raises(TooFewClients):
        engine.gather(broadcast, [0, 1, 2])
    about, body, key = sent(wire, 3, 101, site)
    node, mine = wire.nodes_at[100], replace(about, client=0)
    assert "The secure sum was left" in refusal(node, messages.request(mine, body, key))
    assert "was aborted, and its secrets are erased" in refusal(node, messages.request(mine, body, key))
    assert counted(node) == 0


@pytest.mark.parametrize(
    ("terms", "why"),
    [
        ({"length": 2**31}, "The secure sum has other numbers than this algorithm."),
        ({"bits": 40}, "The secure sum has other numbers than this algorithm."),
        ({"rounds": 4}, "The secure sum is for 4 rounds, and the experiment has 3 left."),
    ],
    ids=str,
)
def test_a_session_of_other_numbers_is_not_begun(begun: Begun, terms: dict[str, int], why: str) -> None:
    site, wire, engine, broadcast = begun
    engine.gather(broadcast, [0, 1, 2])
    about, body, key = sent(wire, 1, 100, site)
    spoiled = replace(Terms.from_bytes(body), **terms)
    assert refusal(wire.nodes_at[100], messages.request(about, spoiled.to_bytes(), key)) == why


COHORTS = [
    ((7, 8, 9), "A cohort is of the 3 clients here"),
    ((0, 1, 2, 9), "A cohort is of the 3 clients here"),
    ((0, 1, 2, 2), "A cohort is of the 3 clients here, each once"),
    ((1, 2), "has no part for this client, which is client 0"),
    ((), "has no part for this client, which is client 0"),
    ((0, 1), "In round 1 it is the turn of [0, 1, 2], and the server names (0, 1)"),
]


@pytest.mark.parametrize(("cohort", "why"), COHORTS, ids=str)
def test_a_cohort_that_can_not_be_is_refused_and_costs_nothing(asked: Asked, cohort: tuple[int, ...], why: str) -> None:
    _, _, node, about, body, key = asked
    assert why in refusal(node, messages.request(replace(about, cohort=cohort), body, key))
    assert counted(node) == 0


@pytest.mark.parametrize(("cohort", "why"), COHORTS, ids=str)
def test_no_session_is_begun_for_a_cohort_that_can_not_be(begun: Begun, cohort: tuple[int, ...], why: str) -> None:
    site, wire, engine, broadcast = begun
    engine.gather(broadcast, [0, 1, 2])
    about, body, key = sent(wire, 1, 100, site)
    assert why in refusal(wire.nodes_at[100], messages.request(replace(about, cohort=cohort), body, key))


def test_a_cohort_that_is_drawn_in_secret_may_be_any_with_this_client(asked: Asked) -> None:
    learner = asked[2].learner
    drawn = replace(learner, algorithm=replace(learner.algorithm, sampling=FixedSize(cohort=2)))
    drawn.check_cohort(0, (0, 1))
    with pytest.raises(NotOurs, match="no part for this client"):
        drawn.check_cohort(0, (1, 2))


def test_a_client_whose_budget_is_spent_is_in_no_cohort(asked: Asked) -> None:
    """Client 2's budget lasts one round, which all can compute."""
    learner = replace(asked[2].learner, lasting={2: 1})
    learner.check_cohort(0, (0, 1, 2))
    learner.check_cohort(1, (0, 1))
    with pytest.raises(NotOurs, match=r"In round 2 it is the turn of \[0, 1\]"):
        learner.check_cohort(1, (0, 1, 2))


def signed(head: bytes, key: bytes) -> bytes:
    said = Writer().blob(head).done()
    return keys.sign(key, messages.PURPOSE + said) + said


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
def test_a_request_that_is_none_is_refused_in_a_sentence_and_the_node_stays(asked: Asked, head: bytes) -> None:
    _, _, node, about, body, key = asked
    why = refusal(node, signed(head, key))
    assert why.endswith((".", ".)"))
    assert "could not be answered" not in why  # it is no fault of the node's
    assert messages.told(node.answer(messages.request(about, body, key)))[0] is not None


def test_a_request_that_says_too_much_about_itself_is_not_read(asked: Asked) -> None:
    _, _, node, _, _, key = asked
    why = refusal(node, signed(b" " * (2**20 + 1), key))
    assert why.startswith("The message says in 1048577 bytes what it is about, and 1048576 are allowed.")


@pytest.mark.parametrize("run", ["a" * 300, "../../elsewhere", "é" * 32, ""])
def test_a_run_is_named_as_servers_name_them(asked: Asked, run: str) -> None:
    """It names a folder on the client's disk."""
    _, _, node, _, _, key = asked
    head = HEAD.format(run=f'"{run}"', digest=node.app.digest, number=0).encode()
    assert refusal(node, signed(head, key)).startswith("About: run: ")


def test_a_fault_is_named_to_the_server_and_told_to_the_owner_alone(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, node, about, body, key = asked

    def broken(*_: object) -> None:
        raise RuntimeError("row 17 is odd")

    heard = list[str]()
    monkeypatch.setattr(Learner, "update", broken)
    why = refusal(replace(node, say=heard.append), messages.request(about, body, key))
    assert why == "The request could not be answered (RuntimeError); the node's owner sees why."
    assert heard == ["Refused, after a fault of this node's own (RuntimeError): row 17 is odd"]
