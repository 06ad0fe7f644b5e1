"""Whole runs in one process, without a network: the model that they train, and what happens when a client drops out."""

from pathlib import Path
from typing import Any

import pytest

from discreet import api
from discreet.deploy.certificates import write_signing_key
from discreet.deploy.deployed_run import DeployedRun
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.policy import ClientFolder
from discreet.engines.flower import signed_messages
from discreet.experiment.configuration import experiment_file
from discreet.experiment.job import Job
from discreet.experiment.loop import training_loop
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.params import Params
from discreet.randomness.streams import RunKey
from discreet.secure_sums.secagg.session_messages import ROUND, SETUP
from tests.deploy.example_sites import CENTRAL, PLAIN, SECURE, connect_nodes, copy_site, edit_policy, write_experiment
from tests.deploy.node_requests import are_equal, count_releases

SECOND_MASK = 1 + len(SETUP) + len(ROUND)  # the number of the exchange of the second round's masked vectors

pytestmark = pytest.mark.usefixtures("one_thread")


def load_model(site: DeploymentFolder, name: str) -> Params:
    return RunRecord.open(site.run(name)).load_model()


def reference(folder: Path, text: str) -> Params:
    source = experiment_file.load_experiment(write_experiment(folder, text), ('engine={kind="reference"}',))
    training_loop.start(api.prepare_job(source), folder / "reference", None, None, lambda line: None)
    return RunRecord.open(folder / "reference").load_model()


def trust_server(folder: Path) -> None:
    """Let the server see updates in all policies; only noise that the server adds needs that."""
    for client in range(3):
        edit_policy(
            folder / f"client-{client}", "trust_server_with_updates = false", "trust_server_with_updates = true"
        )


MEDIAN = PLAIN + 'aggregation = { kind = "median" }\n'


@pytest.mark.parametrize("text", [PLAIN, CENTRAL, SECURE, MEDIAN], ids=["in clear", "central", "secure", "median"])
def test_real_clients_train_the_model_of_the_reference_engine_bit_for_bit(tmp_path: Path, text: str) -> None:
    site, heard = copy_site(tmp_path, text), list[str]()
    trust_server(tmp_path)
    outcome = DeployedRun(site, "first").train(connect_nodes(tmp_path, site, heard), heard.append)
    assert outcome.completed == 3
    assert are_equal(load_model(site, "first"), reference(tmp_path, text))
    assert not {"norms", "kept", "clipped", "signal_to_noise"} & set(
        outcome.record.read_rounds()[0]
    )  # they print nothing


def test_a_client_that_goes_in_mid_round_is_made_up_for(tmp_path: Path) -> None:
    """Exchanges: who is there, keys, shares; then mask, agree, reveal. Node 102 is silent from the second mask on."""
    site, heard = copy_site(tmp_path, SECURE), list[str]()
    wire = connect_nodes(tmp_path, site, heard)
    wire.lost = lambda node, number: node == 102 and number >= SECOND_MASK
    outcome = DeployedRun(site, "first").train(wire, heard.append)
    assert [line["clients"] for line in outcome.record.read_rounds()] == [3, 2, 2]


def test_a_client_that_goes_after_its_mask_was_sent_is_still_in_the_sum(tmp_path: Path) -> None:
    site, heard = copy_site(tmp_path, SECURE), list[str]()
    wire = connect_nodes(tmp_path, site, heard)
    wire.lost = lambda node, number: node == 102 and SECOND_MASK < number < SECOND_MASK + len(ROUND)
    outcome = DeployedRun(site, "first").train(wire, heard.append)
    assert [line["clients"] for line in outcome.record.read_rounds()] == [3, 3, 3]
    assert are_equal(load_model(site, "first"), reference(tmp_path, SECURE))


def test_with_too_few_left_the_round_is_lost_and_the_run_goes_on(tmp_path: Path) -> None:
    site, heard = copy_site(tmp_path, SECURE), list[str]()
    wire = connect_nodes(tmp_path, site, heard)
    wire.lost = lambda node, number: node != 100 and number == SECOND_MASK
    outcome = DeployedRun(site, "first").train(wire, heard.append)
    lines = outcome.record.read_rounds()
    assert [line["clients"] for line in lines] == [3, 0, 3]
    assert "1 clients sent a masked vector" in lines[1]["lost"]


def test_after_two_lost_rounds_in_a_row_the_run_stops_and_can_be_resumed(tmp_path: Path) -> None:
    """Clients pay for a masked update whether its round is lost or not, so a third one would be paid for nothing."""
    text = SECURE.replace("rounds = 3", "rounds = 5")
    site, heard = copy_site(tmp_path, text), list[str]()
    wire = connect_nodes(tmp_path, site, heard)
    wire.lost = lambda node, number: number > SECOND_MASK  # nobody signs the survivor list from the second round on
    stopped = DeployedRun(site, "first").train(wire, heard.append)
    assert [line["clients"] for line in stopped.record.read_rounds()] == [3, 0, 0]
    assert stopped.stopped is not None
    assert stopped.stopped.startswith("Stopped after 3 of 5 rounds. 2 rounds in a row were lost, the last one because:")
    assert stopped.exit_code == 1
    assert [count_releases(node) for node in wire.nodes_at.values()] == [2, 2, 2]
    wire.lost = lambda node, number: False
    outcome = DeployedRun(site, "first").train(wire, heard.append)
    assert [line["clients"] for line in outcome.record.read_rounds()] == [3, 0, 0, 3, 3]
    assert outcome.stopped is None


def test_two_lost_rounds_that_are_not_in_a_row_do_not_stop_a_run(tmp_path: Path) -> None:
    site, heard = copy_site(tmp_path, SECURE.replace("rounds = 3", "rounds = 5")), list[str]()
    wire = connect_nodes(tmp_path, site, heard)
    fourth_mask = SECOND_MASK + 1 + len(SETUP) + len(ROUND)  # a lost round is followed by a new session
    wire.lost = lambda node, number: node != 100 and number in (SECOND_MASK, fourth_mask)
    outcome = DeployedRun(site, "first").train(wire, heard.append)
    assert [line["clients"] for line in outcome.record.read_rounds()] == [3, 0, 3, 0, 3]


def test_a_run_stops_when_it_has_lost_more_rounds_than_budgets_have_to_spare(tmp_path: Path) -> None:
    """Two, or a tenth of all. Otherwise a client that is silent in every second round has the others pay for half."""
    site, heard = copy_site(tmp_path, SECURE.replace("rounds = 3", "rounds = 8")), list[str]()
    wire = connect_nodes(tmp_path, site, heard)
    apart = 1 + len(SETUP) + len(ROUND)
    lost = (SECOND_MASK, SECOND_MASK + apart, SECOND_MASK + 2 * apart)
    wire.lost = lambda node, number: node != 100 and number in lost
    outcome = DeployedRun(site, "first").train(wire, heard.append)
    assert [line["clients"] for line in outcome.record.read_rounds()] == [3, 0, 3, 0, 3, 0]
    assert outcome.stopped is not None
    assert outcome.stopped.startswith(
        "Stopped after 6 of 8 rounds. 3 rounds were lost, and a run of 8 rounds may lose 2; the last one because: "
    )


def test_a_node_that_can_not_prove_who_it_is_is_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the right folder except for the key that its card names, and doesn't mind."""
    monkeypatch.setattr(ClientFolder, "check_own_card", lambda self, cards: None)
    site, heard = copy_site(tmp_path, SECURE), list[str]()
    (tmp_path / "client-2" / "identity.key").unlink()
    write_signing_key(tmp_path / "client-2" / "identity.key")
    wire = connect_nodes(tmp_path, site, heard)
    job = DeployedRun(site, "first").prepare_job(RunKey.from_seed(7), wire, heard.append)
    assert job.remote_engine is not None
    engine = job.remote_engine
    engine.calls.timeout = 0.0  # type: ignore[attr-defined]
    found = engine.gather(job.algorithm.broadcast(job.algorithm.init(job.params), 0), [0, 1, 2])
    assert found.contributors == (0, 1)
    assert "A node could not prove which client it is, and is ignored." in heard


def test_no_round_that_was_broadcast_from_is_made_again(tmp_path: Path) -> None:
    """Independently of `checkpoint_every`: if a round were repeated without client 2 and with the same server noise,
    the two models would differ by that client's update."""
    site, heard = copy_site(tmp_path, CENTRAL.replace("seed = 7\n", "checkpoint_every = 3\n")), list[str]()
    trust_server(tmp_path)
    wire = connect_nodes(tmp_path, site, heard)

    class Crash(BaseException):
        pass

    def say(text: str) -> None:
        heard.append(text)
        if text.startswith("round 2 of 3"):
            raise Crash

    with pytest.raises(Crash):
        DeployedRun(site, "first").train(wire, say)
    DeployedRun(site, "first").train(wire, heard.append)
    assert "Run 'first' goes on after round 2 of 3." in heard
    key = bytes.fromhex(site.deployment.server_key)
    asked = [signed_messages.read_request(exchange[100][0], key)[0] for exchange in wire.passed]
    assert [about.round for about in asked if about.kind == "train"] == [0, 1, 2]


def test_a_run_that_was_stopped_goes_on_with_its_model_and_its_ledger(tmp_path: Path) -> None:
    class Crash(BaseException):
        pass

    site, heard = copy_site(tmp_path, PLAIN), list[str]()
    wire = connect_nodes(tmp_path, site, heard)

    def crash_in_exchange_two(node: int, number: int) -> bool:
        if number == 2:
            raise Crash
        return False

    wire.lost = crash_in_exchange_two
    with pytest.raises(Crash):
        DeployedRun(site, "first").train(wire, heard.append)
    for node in wire.nodes_at.values():
        node.close()
    outcome = DeployedRun(site, "first").train(connect_nodes(tmp_path, site, heard), heard.append)
    assert "Run 'first' goes on after round 1 of 3." in heard
    assert outcome.completed == 3
    assert are_equal(load_model(site, "first"), reference(tmp_path, PLAIN))


def test_a_run_without_a_seed_goes_on_with_its_own_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With another key the clients would take it for another run and answer a round again with other noise."""

    class Crash(BaseException):
        pass

    site, heard, keys = copy_site(tmp_path, PLAIN.replace("seed = 7\n", "")), list[str](), list[RunKey]()
    wire = connect_nodes(tmp_path, site, heard)

    def crash_in_exchange_two(node: int, number: int) -> bool:
        if number == 2:
            raise Crash
        return False

    prepare_job = DeployedRun.prepare_job

    def note_key(run: DeployedRun, key: RunKey, *given: Any) -> Job:
        keys.append(key)
        return prepare_job(run, key, *given)

    monkeypatch.setattr(DeployedRun, "prepare_job", note_key)
    wire.lost = crash_in_exchange_two
    with pytest.raises(Crash):
        DeployedRun(site, "first").train(wire, heard.append)
    for node in wire.nodes_at.values():
        node.close()
    again = connect_nodes(tmp_path, site, heard)
    assert DeployedRun(site, "first").train(again, heard.append).completed == 3
    assert keys[0] == keys[1]
    assert not keys[0].is_seeded
    assert {count_releases(node) for node in again.nodes_at.values()} == {3}


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_is_printed_as_such_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loss: float
) -> None:
    site, said = copy_site(tmp_path, SECURE), list[str]()
    monkeypatch.setattr(Job, "evaluate", lambda job, state: {"accuracy": 0.25, "loss": loss})
    assert DeployedRun(site, "first").train(connect_nodes(tmp_path, site, []), said.append).completed == 3
    assert sum(f"accuracy 0.25, loss {loss}, ε " in line for line in said) == 3
