"""Real clients sum the moments of their numbers before the first round: counted, journalled, and never repeated."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.input_scale import CENTRE, SPREAD
from discreet.algorithms.standardisation import PREPARATION, drop_out_factor
from discreet.deploy.app_folder import AppFolder
from discreet.deploy.certificates import read_key
from discreet.deploy.client_ledger import round_releases
from discreet.deploy.client_node import ClientNode
from discreet.deploy.deployed_run import DeployedRun
from discreet.deploy.deployment import CARDS_FOLDER, DeclaredClient
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.enrolment import enroll
from discreet.deploy.new_deployment import create_deployment
from discreet.deploy.peer_cards import PeerCards
from discreet.engines.engine import CohortSum, RoundRefused
from discreet.engines.flower import signed_messages
from discreet.engines.flower.flower_engine import FlowerEngine
from discreet.engines.flower.signed_messages import RequestHeader
from discreet.experiment.configuration import experiment_file
from discreet.privacy.events import Composed, GaussianNoise, steps
from discreet.privacy.ledger import Ledger
from discreet.secure_sums.secagg.session_errors import BadMessage
from tests.deploy.example_sites import Replies, Wire, add_shared, connect_nodes, edit_policy, write_experiment
from tests.deploy.node_requests import RUN, refusal

EXPERIMENT = """\
rounds = 2
model = { kind = "linear" }
engine = { kind = "flower", timeout = 60, patience = 4 }

[task]
kind = "csv"
path = "table.csv"
client = "hospital"
label = "ill"
ranges = { age = { min = 0, max = 200 }, ward = { values = ["a", "b"] }, ill = { values = ["no", "yes"] } }
test_fraction = 0.0

[privacy]
unit = "example"
against = "server"
epsilon = 20.0
delta = 1e-4

[algorithm]
recipe = "pfl"
sampling_rate = 0.5
clip_norm = 1.0
learning_rate = 1.0
"""
SECURE = EXPERIMENT.replace('recipe = "pfl"', 'recipe = "ddp_fedavg"\ndropouts = 1')
NAMES, ROWS = ("north", "south", "west"), 400


def write_table(path: Path, hospital: str, seed: int, rows: int = ROWS) -> Path:
    """Write a table whose ages fill little of their range: around 45 of 200."""
    ages = np.random.default_rng(seed).normal(45, 12, rows)
    lines = [f"{hospital},{age:.2f},{'ab'[row % 2]},{'yes' if age > 45 else 'no'}" for row, age in enumerate(ages)]
    path.write_text("\n".join(["hospital,age,ward,ill", *lines]) + "\n")
    return path


def create_site(folder: Path, text: str) -> DeploymentFolder:
    write_table(folder / "table.csv", "nowhere", 9, 20)
    source = experiment_file.load_experiment(write_experiment(folder, text))
    declared = [DeclaredClient(name=name, examples=ROWS) for name in NAMES]
    create_deployment(folder / "site", source, declared, "127.0.0.1:1", ["127.0.0.1"])
    app = AppFolder.open(folder / "site" / "app")
    for seed, name in enumerate(NAMES):
        enroll(app, name, folder / name, write_table(folder / f"{name}.csv", name, seed))
        (app.folder / CARDS_FOLDER / f"{name}.toml").write_text((folder / name / f"{name}.toml").read_text())
    for name in NAMES:
        cards = PeerCards.open(folder / name)
        cards.pin(cards.code)
    return DeploymentFolder(folder / "site")


def run_ages(folder: Path, names: tuple[str, ...] = NAMES) -> torch.Tensor:
    """Return the ages of these hospitals as numbers in [-1, 1]."""
    rows = [line.split(",") for name in names for line in (folder / f"{name}.csv").read_text().splitlines()[1:]]
    return torch.tensor([float(age) / 100 - 1 for _, age, *_ in rows], dtype=torch.float64)


def open_header(wire: Wire, request: bytes) -> RequestHeader:
    key = next(iter(wire.nodes_at.values())).policy.server_key
    return signed_messages.read_request(request, bytes.fromhex(key))[0]


def asked_rounds(wire: Wire) -> list[int]:
    """Return the rounds in which clients were asked for an update, in their order."""
    requests = [request for exchange in wire.passed for request, _ in exchange.values()]
    asked = [about.round for about in (open_header(wire, each) for each in requests) if about.kind in ("train", "mask")]
    return list(dict.fromkeys(asked))


@pytest.mark.parametrize("text", [EXPERIMENT, SECURE], ids=["pfl", "ddp_fedavg"])
def test_real_clients_sum_their_moments_and_every_ledger_counts_them(text: str, tmp_path: Path) -> None:
    site, heard = create_site(tmp_path, text), list[str]()
    wire = connect_nodes(tmp_path, site, heard)
    ended = DeployedRun(site, "first").train(wire, heard.append)
    assert ended.completed == 2, heard
    model = load_file(site.run("first") / "model.safetensors")
    ages = run_ages(tmp_path)
    assert float(model[CENTRE][0]) == pytest.approx(float(ages.mean()), abs=0.05)
    assert float(model[SPREAD][0]) == pytest.approx(float(ages.std()), abs=0.12)
    assert model[CENTRE][1:].tolist() == [0, 0, 0]
    assert "standardised by means and spreads" in " ".join((site.run("first") / "guarantee.txt").read_text().split())
    assert ended.guarantees[0].epsilon <= 20
    for name in NAMES:
        (ledger,) = (tmp_path / name).glob("*.jsonl")
        assert Ledger.open(ledger).summary()["releases"]["committed"] == 3  # the moments and two rounds
    assert asked_rounds(wire) == [PREPARATION, 0, 1]


class StoppedServer(BaseException):
    """Stands for a server that is stopped: nothing catches it."""


@dataclass
class StoppedWire(Wire):
    """A network whose server is stopped while it waits for clients."""

    def nodes(self) -> list[int]:
        raise StoppedServer


@pytest.mark.parametrize("text", [EXPERIMENT, SECURE], ids=["pfl", "ddp_fedavg"])
def test_a_run_that_is_stopped_while_it_waits_for_clients_goes_on(text: str, tmp_path: Path) -> None:
    """Nobody was asked for the sum of moments, so it can't have been seen."""
    site, heard = create_site(tmp_path, text), list[str]()
    with pytest.raises(StoppedServer):
        DeployedRun(site, "first").train(StoppedWire({}), heard.append)
    assert DeployedRun(site, "first").train(connect_nodes(tmp_path, site, heard), heard.append).completed == 2, heard


def test_a_policy_that_was_written_for_the_experiment_pays_for_the_moments_too(tmp_path: Path) -> None:
    site, heard = create_site(tmp_path, EXPERIMENT), list[str]()
    node = ClientNode.open(tmp_path / "north", heard.append)
    node.check_ready()
    assert node.learner.algorithm.standardisation is not None
    assert node.learner.for_moments().algorithm.standardisation is None
    assert site.deployment.clients[0].examples == ROWS


def test_a_node_counts_the_moments_at_their_own_price(tmp_path: Path) -> None:
    """The moments see every row, without sampling; the rounds see samples, at another noise."""
    learner = ClientNode.open(_north(tmp_path), lambda line: None).learner
    assert learner.algorithm.standardisation is not None
    noise = learner.algorithm.standardisation.noise_multiplier
    assert noise is not None
    (before,) = round_releases(learner.algorithm, learner.population, 0, PREPARATION)
    assert steps(before.event) == {GaussianNoise(noise_multiplier=noise): 1}
    (first,), (second,) = (round_releases(learner.algorithm, learner.population, 0, round) for round in (0, 1))
    assert first == second
    (planned,) = learner.algorithm.planned_releases(2, learner.population)
    assert steps(planned.event) == steps(Composed(events=(before.event, first.event, second.event)))


def test_the_same_request_for_moments_gets_the_same_bytes_and_is_counted_once(tmp_path: Path) -> None:
    site, heard = create_site(tmp_path, EXPERIMENT), list[str]()
    wire = connect_nodes(tmp_path, site, heard)
    DeployedRun(site, "first").train(wire, heard.append)
    replayed = 0
    for node, (request, reply) in ((node, sent) for exchange in wire.passed for node, sent in exchange.items()):
        if (about := open_header(wire, request)).kind == "train" and about.round == PREPARATION:
            assert wire.nodes_at[node].answer(request) == reply
            replayed += 1
    assert replayed == 3
    (ledger,) = (tmp_path / "north").glob("*.jsonl")
    assert Ledger.open(ledger).summary()["releases"]["committed"] == 3


@dataclass
class LossyWire(Wire):
    """A network that loses one node's updates of the sum of moments."""

    silent: int = 102

    def exchange(
        self, requests: Mapping[int, bytes], enough: int, limit: float = math.inf, shared: bytes = b""
    ) -> Replies:
        requests = add_shared(requests, shared)
        kept = {node: each for node, each in requests.items() if not (node == self.silent and self._is_lost(each))}
        return super().exchange(kept, enough, limit)

    def _is_lost(self, request: bytes) -> bool:
        about = open_header(self, request)
        return about.round == PREPARATION and about.kind in ("train", "mask")


@pytest.mark.parametrize("text", [EXPERIMENT, SECURE], ids=["pfl", "ddp_fedavg"])
def test_clients_that_drop_out_of_the_moments_do_not_bias_them(text: str, tmp_path: Path) -> None:
    """What west would add to the moments is lost; it trains in the rounds."""
    site, heard = create_site(tmp_path, text), list[str]()
    wire = LossyWire(connect_nodes(tmp_path, site, heard).nodes_at)
    ended = DeployedRun(site, "first").train(wire, heard.append)
    assert ended.completed == 2, heard
    ages = run_ages(tmp_path, ("north", "south"))
    model = load_file(site.run("first") / "model.safetensors")
    assert float(model[CENTRE][0]) == pytest.approx(float(ages.mean()), abs=0.06)


def test_the_mean_of_fewer_clients_is_divided_by_their_examples(tmp_path: Path) -> None:
    node = ClientNode.open(_north(tmp_path), lambda line: None)
    moments, population = node.learner.for_moments().algorithm, node.learner.population
    assert drop_out_factor(moments, population, (0, 1, 2)) == 1
    assert drop_out_factor(moments, population, (0, 1)) == pytest.approx(1.5)


def _north(folder: Path) -> Path:
    create_site(folder, EXPERIMENT)
    return folder / "north"


class ServerKilled(BaseException):
    """Stands for SIGKILL."""


@contextmanager
def kill_after(monkeypatch: pytest.MonkeyPatch, round: int) -> Iterator[None]:
    """Let the server die as soon as it has the sum of this round."""
    gather = FlowerEngine.gather

    def gather_and_die(self: FlowerEngine, broadcast: Broadcast, cohort: list[int]) -> CohortSum:
        done = gather(self, broadcast, cohort)
        if broadcast.round == round:
            raise ServerKilled
        return done

    with monkeypatch.context() as patch:
        patch.setattr(FlowerEngine, "gather", gather_and_die)
        yield


@pytest.mark.parametrize("round", [PREPARATION, 0])
def test_a_server_that_died_goes_on_with_the_same_numbers_in_clear(
    round: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, heard = create_site(tmp_path, EXPERIMENT), list[str]()
    wire = connect_nodes(tmp_path, site, heard)
    with kill_after(monkeypatch, round), pytest.raises(ServerKilled):
        DeployedRun(site, "first").train(wire, heard.append)
    ended = DeployedRun(site, "first").train(wire, heard.append)
    assert ended.completed == 2, heard
    (ledger,) = (tmp_path / "north").glob("*.jsonl")
    assert Ledger.open(ledger).summary()["releases"]["committed"] == 3  # nothing was counted twice


def test_secure_moments_that_a_dead_server_may_have_seen_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, heard = create_site(tmp_path, SECURE), list[str]()
    wire = connect_nodes(tmp_path, site, heard)
    with kill_after(monkeypatch, PREPARATION), pytest.raises(ServerKilled):
        DeployedRun(site, "first").train(wire, heard.append)
    with pytest.raises(RoundRefused, match="The server stopped in it, and may have seen it") as refused:
        DeployedRun(site, "first").train(wire, heard.append)
    assert refused.value.revealed


def test_a_run_of_which_all_nodes_refuse_the_moments_ends_before_a_round(tmp_path: Path) -> None:
    site, heard = create_site(tmp_path, EXPERIMENT), list[str]()
    for name in NAMES:
        edit_policy(tmp_path / name, "minimum_cohort = 2", "minimum_cohort = 9")
    wire = connect_nodes(tmp_path, site, heard)
    with pytest.raises(RoundRefused, match="answered in the sum of moments"):
        DeployedRun(site, "first").train(wire, heard.append)
    assert not list((tmp_path / "north").glob("ledger*.jsonl"))


@pytest.mark.parametrize(
    ("place", "value", "which"),
    [(0, 3.0, CENTRE), (0, 0.0, SPREAD), (0, 100.0, SPREAD), (1, 0.5, SPREAD), (1, 0.5, CENTRE)],
)
def test_a_server_that_announces_another_scale_than_moments_give_is_refused(
    place: int, value: float, which: str, tmp_path: Path
) -> None:
    learner = ClientNode.open(_north(tmp_path), lambda line: None).learner
    state = learner.algorithm.init(learner.params)
    broadcast = learner.algorithm.broadcast(state, 0)
    sent = signed_messages.encode_broadcast(broadcast.params, broadcast.announcement)
    assert learner.decode_broadcast(0, sent).digest == broadcast.digest
    scale = {name: tensor.clone() for name, tensor in state.input_scale.items()}
    scale[which][place] = value
    lied = learner.algorithm.broadcast(state._replace(input_scale=scale), 0)
    with pytest.raises(BadMessage, match="centres and spreads that no sum of moments gives"):
        learner.decode_broadcast(0, signed_messages.encode_broadcast(lied.params, lied.announcement))


def test_an_experiment_without_moments_refuses_a_request_for_them(tmp_path: Path) -> None:
    text, heard = EXPERIMENT.replace("test_fraction", "standardise = false\ntest_fraction"), list[str]()
    site = create_site(tmp_path, text)
    wire = connect_nodes(tmp_path, site, heard)
    assert DeployedRun(site, "first").train(wire, heard.append).completed == 2
    assert asked_rounds(wire) == [0, 1]
    node = wire.nodes_at[100]
    about = RequestHeader(
        kind="train", run=RUN, experiment=node.app.digest, round=PREPARATION, client=0, cohort=(0, 1, 2)
    )
    asked = signed_messages.sign_request(about, b"", read_key(site.server / "server.key"))
    assert "standardises nothing" in refusal(node, asked)
