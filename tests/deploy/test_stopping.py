"""What a run leaves when its clients end it, how it continues, and what its card says about where it ran."""

import json
import math
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from discreet import api
from discreet.cli import main as cli
from discreet.deploy.deployed_run import DeployedRun
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.entry_points import main
from discreet.engines.flower import signed_messages
from discreet.engines.flower.client_calls import ClientCalls, Member
from discreet.engines.flower.flower_errors import ClientsAway, ClientsRefused
from discreet.errors import BudgetRefused, InvalidInput
from discreet.experiment.configuration import experiment_file
from discreet.experiment.loop import round_player, training_loop
from discreet.experiment.loop.session import Session
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.privacy.ledger import Ledger
from discreet.randomness.streams import RunKey
from discreet.words import fill
from tests.deploy.example_sites import (
    PLAIN,
    SECURE,
    Replies,
    Wire,
    add_shared,
    connect_nodes,
    copy_site,
    write_experiment,
)
from tests.deploy.node_requests import are_equal

pytestmark = pytest.mark.usefixtures("one_thread")

DEPLOYED, REHEARSED, FIRST_RUN = (fill(f"assumes.{name}") for name in ("deployed", "rehearsed", "first_run"))
SECOND_ROUND = 2  # exchanges of an experiment in clear: who is there, and then one a round


@dataclass
class RefusingWire(Wire):
    """A network whose nodes refuse in one exchange, as with a spent budget; `silent` ones don't answer in it."""

    number: int = SECOND_ROUND
    silent: tuple[int, ...] = ()

    def exchange(
        self, requests: Mapping[int, bytes], enough: int, limit: float = math.inf, shared: bytes = b""
    ) -> Replies:
        requests = add_shared(requests, shared)
        if len(self.passed) != self.number:
            return super().exchange(requests, enough, limit)
        self.passed.append({})
        no = signed_messages.encode_refusal(signed_messages.Refusal("It is spent.", spent=True))
        return ((node, no) for node in requests if node not in self.silent)


class Crash(BaseException):
    """Stands for a machine that goes down: nothing catches it."""


@dataclass
class CrashingWire(Wire):
    """A network whose server dies when the replies of one exchange have arrived."""

    number: int = SECOND_ROUND

    def exchange(
        self, requests: Mapping[int, bytes], enough: int, limit: float = math.inf, shared: bytes = b""
    ) -> Replies:
        requests = add_shared(requests, shared)
        found = super().exchange(requests, enough, limit)
        if len(self.passed) == self.number + 1:
            raise Crash
        return found


def crash_server(folder: Path, site: DeploymentFolder, number: int) -> None:
    wire = CrashingWire(connect_nodes(folder, site, []).nodes_at, number=number)
    with pytest.raises(Crash):
        DeployedRun(site, "first").train(wire, lambda text: None)
    close_nodes(wire)


def server_epsilon(site: DeploymentFolder) -> float:
    """Return the ε that the server's own ledger has counted for the run."""
    ledger = RunRecord.open(site.run("first")).ledger_path
    assert ledger is not None
    found: float = Ledger.open(ledger).summary()["budgets"][0]["spent"]
    return found


def build_refusing_wire(folder: Path, site: DeploymentFolder, *silent: int, number: int = SECOND_ROUND) -> RefusingWire:
    return RefusingWire(connect_nodes(folder, site, []).nodes_at, number=number, silent=silent)


def close_nodes(wire: Wire) -> None:
    for node in wire.nodes_at.values():
        node.close()


def card(folder: Path) -> str:
    """Return the card's text on one line."""
    return " ".join((folder / "guarantee.txt").read_text().split())


def test_a_run_that_clients_refuse_midway_leaves_its_model_its_card_and_its_page(tmp_path: Path) -> None:
    site, heard = copy_site(tmp_path, PLAIN), list[str]()
    outcome = DeployedRun(site, "first").train(build_refusing_wire(tmp_path, site), heard.append)
    assert (outcome.completed, outcome.is_refused, outcome.exit_code) == (1, True, BudgetRefused.exit_code)
    assert outcome.stopped == heard[-1]
    assert outcome.stopped.startswith("Stopped after 1 of 3 rounds. 0 of 3 clients answered in round 2, and 1 are need")
    assert outcome.stopped.endswith("client-0, client-1, client-2: It is spent.")
    where = site.run("first")
    assert {"model.safetensors", "guarantee.txt", "report.html"} <= {each.name for each in where.iterdir()}
    assert api.load(where).model is not None
    one = api.prepare_job(experiment_file.load_experiment(write_experiment(tmp_path, PLAIN))).spent_epsilon(1)
    assert one is not None
    assert outcome.guarantees[0].epsilon == pytest.approx(one)


def test_a_run_that_clients_refused_goes_on_when_it_is_submitted_again(tmp_path: Path) -> None:
    site, heard = copy_site(tmp_path, PLAIN), list[str]()
    wire = build_refusing_wire(tmp_path, site)
    DeployedRun(site, "first").train(wire, heard.append)
    close_nodes(wire)
    outcome = DeployedRun(site, "first").train(connect_nodes(tmp_path, site, heard), heard.append)
    assert "Run 'first' goes on after round 1 of 3." in heard
    assert (outcome.completed, outcome.stopped, outcome.exit_code) == (3, None, 0)
    source = experiment_file.load_experiment(write_experiment(tmp_path, PLAIN), ('engine={kind="reference"}',))
    training_loop.start(api.prepare_job(source), tmp_path / "reference", None, None, lambda line: None)
    assert are_equal(
        RunRecord.open(site.run("first")).load_model(), RunRecord.open(tmp_path / "reference").load_model()
    )


def test_a_loop_over_real_clients_can_be_left_and_goes_on_when_it_is_submitted_again(tmp_path: Path) -> None:
    site = copy_site(tmp_path, PLAIN)
    wire, deployed = connect_nodes(tmp_path, site, []), DeployedRun(site, "first")
    job = deployed.prepare_job(RunKey.from_seed(7), wire, lambda text: None)
    with Session(
        training_loop.start_loop(job, deployed.folder, None, site.key_dir), lambda outcome: outcome
    ) as session:
        assert next(session)["clients"] == 3
    close_nodes(wire)
    assert session.run.completed == 1
    assert session.run.guarantees[0].epsilon == job.spent_epsilon(3)
    assert server_epsilon(site) == job.spent_epsilon(1)
    outcome = deployed.train(connect_nodes(tmp_path, site, []), lambda text: None)
    assert (outcome.completed, outcome.stopped) == (3, None)
    source = experiment_file.load_experiment(write_experiment(tmp_path, PLAIN), ('engine={kind="reference"}',))
    training_loop.start(api.prepare_job(source), tmp_path / "reference", None, None, lambda line: None)
    assert are_equal(outcome.record.load_model(), RunRecord.open(tmp_path / "reference").load_model())


def test_a_refused_round_that_a_silent_client_may_still_answer_counts_and_is_not_made_again(tmp_path: Path) -> None:
    """The server may already have its update, so the round was lost after something was revealed."""
    site, heard = copy_site(tmp_path, PLAIN), list[str]()
    wire = build_refusing_wire(tmp_path, site, 102)
    outcome = DeployedRun(site, "first").train(wire, heard.append)
    close_nodes(wire)
    assert (outcome.completed, outcome.exit_code) == (2, BudgetRefused.exit_code)
    assert [line.get("revealed") for line in outcome.record.read_rounds()] == [None, True]
    two = api.prepare_job(experiment_file.load_experiment(write_experiment(tmp_path, PLAIN))).spent_epsilon(2)
    assert two is not None
    assert outcome.guarantees[0].epsilon == pytest.approx(two)
    again = DeployedRun(site, "first").train(connect_nodes(tmp_path, site, heard), heard.append)
    assert "Run 'first' goes on after round 2 of 3." in heard
    assert [line["clients"] for line in again.record.read_rounds()] == [3, 0, 3]


def test_where_the_last_round_is_lost_so_the_run_is_done(tmp_path: Path) -> None:
    site, heard = copy_site(tmp_path, PLAIN), list[str]()
    outcome = DeployedRun(site, "first").train(build_refusing_wire(tmp_path, site, 102, number=3), heard.append)
    assert (outcome.completed, outcome.stopped, outcome.record.is_finished()) == (3, None, True)


@dataclass
class ListeningWire(Wire):
    """Records the handler of SIGTERM while the server waits for clients."""

    handlers: list[object] = field(default_factory=list)

    def exchange(
        self, requests: Mapping[int, bytes], enough: int, limit: float = math.inf, shared: bytes = b""
    ) -> Replies:
        requests = add_shared(requests, shared)
        self.handlers.append(signal.getsignal(signal.SIGTERM))
        return super().exchange(requests, enough, limit)


def test_sigterm_ends_a_run_with_real_clients_at_once(tmp_path: Path) -> None:
    """Its round may never end: without a SuperLink nobody answers, and the process would hold the run's lock."""
    site, heard = copy_site(tmp_path, PLAIN), list[str]()
    wire = ListeningWire(connect_nodes(tmp_path, site, heard).nodes_at)
    DeployedRun(site, "first").train(wire, heard.append)
    assert set(wire.handlers) == {signal.getsignal(signal.SIGTERM)}


def test_a_run_whose_first_round_is_refused_says_how_to_go_on_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is no model to keep. The command is that of the deployment, because `discreet run` reaches no clients."""
    site, heard = copy_site(tmp_path / "of ours", PLAIN), list[str]()
    with pytest.raises(ClientsRefused, match=r"It is spent\."):
        DeployedRun(site, "first").train(build_refusing_wire(tmp_path / "of ours", site, number=1), heard.append)
    command = f"discreet deploy submit '{site.folder}' --name first"
    with pytest.raises(InvalidInput) as refused:
        api.load(site.run("first"))
    assert refused.value.fix == f"Resume it: {command}"
    assert cli.run(["report", str(site.run("first"))]) == 2
    assert command in " ".join(capsys.readouterr().err.split())


def test_how_long_clients_are_waited_for_is_said_and_how_many_suffice() -> None:
    now, said = [0.0], list[str]()
    calls = ClientCalls(
        carrier=Wire({}),
        members=[Member(name, b"") for name in ("north", "south", "east")],
        run="",
        experiment="",
        key=b"",
        say=said.append,
        timeout=600,
        clock=lambda: now[0],
        pause=lambda seconds: now.__setitem__(0, now[0] + seconds),
    )
    with pytest.raises(ClientsAway, match="0 of 3 clients are online after 600 seconds, and 2 are needed"):
        calls.await_clients([0, 1, 2], 2, 0)
    assert said == [
        "Waiting for north, south, east, for at most 600 seconds (engine.timeout in resolved.toml); "
        "with 2 of 3 the round then goes on without the others."
    ]


def test_of_many_clients_that_are_awaited_a_few_are_named() -> None:
    said = list[str]()
    members = [Member(f"client-{number}", b"") for number in range(200)]
    calls = ClientCalls(Wire({}), members, "", "", b"", said.append, timeout=1, pause=lambda seconds: None)
    calls.clock = iter((0.0, 0.0, 2.0)).__next__
    with pytest.raises(ClientsAway):
        calls.await_clients(range(200), 2, 0)
    assert said[0].startswith(
        "Waiting for client-0, client-1, client-2, client-3, client-4 and 195 others, for at most"
    )


@pytest.mark.parametrize(("nodes", "said", "not_said"), [("", DEPLOYED, REHEARSED), ("clients", REHEARSED, DEPLOYED)])
def test_the_card_of_a_rehearsal_says_that_one_machine_played_all(
    tmp_path: Path, nodes: str, said: str, not_said: str
) -> None:
    site = copy_site(tmp_path, PLAIN)
    settings = {"folder": str(site.folder), "name": "first", "nodes": nodes}
    main(lambda *_: connect_nodes(tmp_path, site, []), settings, lambda text: None)
    assert json.loads(site.end_file("first").read_text())["exit_code"] == 0
    words = card(site.run("first"))
    assert said in words
    assert not_said not in words


def test_a_card_names_the_other_runs_of_its_deployment(tmp_path: Path) -> None:
    """The first run's card was written when there was no other; a run without a round has released nothing."""
    site, heard = copy_site(tmp_path, PLAIN), list[str]()
    for name, number in (("first", 9), ("empty", 1), ("second", SECOND_ROUND)):
        wire = build_refusing_wire(tmp_path, site, number=number)
        if name == "empty":
            with pytest.raises(ClientsRefused):
                DeployedRun(site, name).train(wire, heard.append)
        else:
            DeployedRun(site, name).train(wire, heard.append)
        close_nodes(wire)
    first, second = (card(site.run(name)) for name in ("first", "second"))
    assert FIRST_RUN in first
    assert "Other runs" not in first
    assert FIRST_RUN.partition(".")[0] not in second
    assert "Other runs of this deployment on the same data, 1 when this was written: first." in second


def test_a_sum_that_the_server_had_opened_when_it_died_counts_and_is_not_made_again(tmp_path: Path) -> None:
    """Exchanges: who is there, keys, shares; then mask, agree and reveal in each round: the ninth opens the second."""
    site, heard = copy_site(tmp_path, SECURE), list[str]()
    crash_server(tmp_path, site, 8)
    before = server_epsilon(site)
    wire = connect_nodes(tmp_path, site, heard)
    outcome = DeployedRun(site, "first").train(wire, heard.append)
    lines = outcome.record.read_rounds()
    assert [line["clients"] for line in lines] == [3, 0, 3]
    assert lines[1]["lost"] == round_player.DIED
    assert outcome.guarantees[0].epsilon == pytest.approx(server_epsilon(site))
    assert server_epsilon(site) > before
    assert all(node.journal.counted_rounds(node.app.digest) <= 3 for node in wire.nodes_at.values())


@pytest.mark.parametrize("experiment", [PLAIN, SECURE], ids=["clear", "secure"])
def test_a_server_that_dies_while_it_waits_for_clients_has_reserved_nothing(tmp_path: Path, experiment: str) -> None:
    site, heard = copy_site(tmp_path, experiment), list[str]()
    crash_server(tmp_path, site, 0)
    assert server_epsilon(site) == 0
    outcome = DeployedRun(site, "first").train(connect_nodes(tmp_path, site, heard), heard.append)
    assert [line["clients"] for line in outcome.record.read_rounds()] == [3, 3, 3]
    assert outcome.guarantees[0].epsilon == pytest.approx(server_epsilon(site))


def test_updates_that_lay_at_a_server_when_it_died_count_though_clients_refuse_them_later(tmp_path: Path) -> None:
    site, heard = copy_site(tmp_path, PLAIN), list[str]()
    crash_server(tmp_path, site, SECOND_ROUND)
    before = server_epsilon(site)
    outcome = DeployedRun(site, "first").train(build_refusing_wire(tmp_path, site, number=1), heard.append)
    assert [line.get("revealed") for line in outcome.record.read_rounds()] == [None, True]
    assert outcome.guarantees[0].epsilon == pytest.approx(server_epsilon(site)) == pytest.approx(before)


def test_in_clear_the_same_bytes_come_again_after_a_death_and_count_once(tmp_path: Path) -> None:
    site, heard = copy_site(tmp_path, PLAIN), list[str]()
    crash_server(tmp_path, site, SECOND_ROUND)
    outcome = DeployedRun(site, "first").train(connect_nodes(tmp_path, site, heard), heard.append)
    assert [line["clients"] for line in outcome.record.read_rounds()] == [3, 3, 3]
    assert outcome.guarantees[0].epsilon == pytest.approx(server_epsilon(site))


def test_a_round_that_all_refused_costs_nothing_on_the_card_and_in_the_ledger(tmp_path: Path) -> None:
    site = copy_site(tmp_path, PLAIN)
    outcome = DeployedRun(site, "first").train(build_refusing_wire(tmp_path, site), lambda text: None)
    assert outcome.guarantees[0].epsilon == pytest.approx(server_epsilon(site))


def test_a_refusal_before_any_sum_could_be_opened_loses_no_round(tmp_path: Path) -> None:
    """The third exchange is the set-up's last: nobody has touched data yet."""
    site = copy_site(tmp_path, SECURE)
    with pytest.raises(ClientsRefused):
        DeployedRun(site, "first").train(build_refusing_wire(tmp_path, site, 100, number=2), lambda text: None)
    assert RunRecord.open(site.run("first")).read_rounds() == []
    assert server_epsilon(site) == 0


def test_a_terminal_that_is_gone_costs_no_client_its_answer(tmp_path: Path) -> None:
    def fail(line: str) -> None:
        raise OSError(5, "Input/output error")

    site = copy_site(tmp_path, PLAIN)
    nodes = connect_nodes(tmp_path, site, []).nodes_at
    wire = Wire({number: replace(node, report_answer=fail) for number, node in nodes.items()})
    assert DeployedRun(site, "first").train(wire, lambda text: None).completed == 3


def test_a_run_that_died_in_its_first_round_is_another_run_on_the_next_card(tmp_path: Path) -> None:
    site = copy_site(tmp_path, PLAIN)
    crash_server(tmp_path, site, 1)
    DeployedRun(site, "second").train(connect_nodes(tmp_path, site, []), lambda text: None)
    assert "Other runs of this deployment on the same data, 1 when this was written: first." in card(site.run("second"))
