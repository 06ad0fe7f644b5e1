"""The ray engine on a real cluster of this machine, with workers in separate processes."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.recipes.dp_fedavg import dp_fedavg
from discreet.algorithms.recipes.registry import RECIPES
from discreet.algorithms.training import Loss
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import Simulation
from discreet.engines.ray.ray_cluster import Cluster
from discreet.engines.ray.ray_engine import RayEngine
from discreet.engines.ray.ray_workers import RayWorkers
from discreet.errors import InvalidInput
from discreet.experiment.configuration import experiment_file
from discreet.experiment.job import Job
from discreet.experiment.loop import training_loop
from discreet.experiment.loop.job_builder import build_job
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.params import Params
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey
from discreet.trust import Trust
from tests.federations import CPU, cross_entropy, federation, linear

pytestmark = pytest.mark.deploy

DATA = federation(7, 1, 12, 4, 9, 4, 30, 2)
DP_FEDAVG = dp_fedavg(learning_rate=0.3, batch_size=4, clip_norm=0.5, noise_multiplier=1.0)
RECIPE = RECIPES["ddp_fedavg"]
DDP_FEDAVG = RECIPE(**{**RECIPE.example, "noise": "skellam"}).with_noise(1.0).for_population(DATA.population, 18)
SEEDED, SECRET = RunKey.from_seed(9), RunKey(bytes(range(32)))  # with the second, noise depends on the broadcast's bits
DIGITS = ("rounds=4", "seed=7", 'dtype="float64"', "evaluate_every=4")
ON_RAY = 'engine={kind="ray", address="local", workers=2}'
NET = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))

    def forward(self, inputs):
        return self.layers(inputs)
"""


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[Any]:
    """A cluster of two CPUs, which represent two machines; the driver computes on one thread, as the workers do."""
    import ray

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setattr(os, "cpu_count", lambda: 2)
        patch.delenv("RAY_AUTH_MODE", raising=False)
        assert Cluster.join("local", 2, CPU).is_ours
    yield ray
    ray.shutdown()
    torch.set_num_threads(threads)


def embedded(algorithm: Algorithm, loss: Loss = cross_entropy, key: RunKey = SEEDED) -> EmbeddedEngine:
    return EmbeddedEngine(Simulation(algorithm, DATA, loss, key), block_size=2)


def on_ray(engine: EmbeddedEngine) -> RayEngine:
    return RayEngine(engine, RayWorkers(Cluster.join("auto", 2, CPU), engine))


def train(engine: RayEngine | EmbeddedEngine, params: Params, rounds: int) -> Params:
    simulation = engine.embedded.simulation if isinstance(engine, RayEngine) else engine.simulation
    algorithm, key = simulation.algorithm, simulation.key
    state = algorithm.init(params)
    for round in range(rounds):
        cohort = algorithm.sampling.sample(engine.simulation.population, round, key.generator(Purpose.SAMPLING, round))
        broadcast = algorithm.broadcast(state, round)
        found = engine.gather(broadcast, cohort)
        assert sorted(found.contributors) == sorted(cohort)
        noise = simulation.rows(broadcast, [-1]).for_purpose(Purpose.SERVER)
        state = algorithm.server_step(state, broadcast, found.total, len(cohort), engine.simulation.population, noise)
    return state.params


def are_equal(left: Params, right: Params) -> bool:
    return all(torch.equal(left[name], right[name]) for name in left)


def test_two_workers_train_the_same_model_as_embedded_bit_for_bit() -> None:
    engine = embedded(DDP_FEDAVG, key=SECRET)
    assert are_equal(train(on_ray(engine), linear(), 2), train(engine, linear(), 2))


def test_a_worker_that_is_killed_is_replaced_and_counts_once_and_an_error_ends_them_all(
    cluster: Any, tmp_path: Path
) -> None:
    """The first process that trains kills itself half-way: the sum is what it would have been. Then a step fails."""
    driver, killed, failing = os.getpid(), tmp_path / "killed", tmp_path / "failing"

    def moody(params: Params, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        if os.getpid() != driver and not killed.exists():
            killed.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        if failing.exists():
            raise InvalidInput(f"A sentence from {os.getpid()}.", fix="And what to do.")
        return cross_entropy(params, inputs, targets)

    engine = embedded(DP_FEDAVG, moody)
    remote = on_ray(engine)
    assert are_equal(train(remote, linear(), 2), train(engine, linear(), 2))
    assert not alive(int(killed.read_text()))

    failing.touch()
    with pytest.raises(InvalidInput, match="A sentence from") as caught:
        train(remote, linear(), 1)
    assert caught.value.fix == "And what to do."
    assert str(driver) not in caught.value.problem
    assert not remote.workers.end.alive  # type: ignore[attr-defined]
    assert cluster.is_initialized()  # a cluster that the run did not start is left unchanged


def test_a_cluster_that_was_started_here_answers_only_to_those_who_have_its_token(cluster: Any) -> None:
    """Anybody on the network could call it, since Ray accepts such calls on all addresses of the machine."""
    grpc = pytest.importorskip("grpc")
    from ray._raylet import AuthenticationTokenLoader  # type: ignore[attr-defined]
    from ray.core.generated.gcs_service_pb2 import GetAllNodeInfoRequest
    from ray.core.generated.gcs_service_pb2_grpc import NodeInfoGcsServiceStub

    def code(token: str | None) -> Any:
        shown = None if token is None else [("authorization", f"Bearer {token}")]
        with grpc.insecure_channel(cluster.get_runtime_context().gcs_address) as channel:
            ask = NodeInfoGcsServiceStub(channel).GetAllNodeInfo
            return ask.with_call(GetAllNodeInfoRequest(), metadata=shown, timeout=30)[1].code()

    held = AuthenticationTokenLoader.instance().get_raw_token()
    assert code(held) is grpc.StatusCode.OK
    for token in (None, "0" * 64):
        with pytest.raises(grpc.RpcError, match="UNAUTHENTICATED"):
            code(token)


def test_more_workers_than_there_are_cpus_are_refused() -> None:
    with pytest.raises(InvalidInput, match="2 CPUs for 3 workers"):
        Cluster.join("auto", 3, CPU)


def job(net: Path, *settings: str) -> Job:
    overrides = (*DIGITS, f'model={{kind="{net}:Net"}}', *settings)
    source = experiment_file.load_experiment(None, overrides, trust=Trust.all_code())
    return build_job(source, RunKey.from_seed(7))


def quiet(line: Any) -> None:
    pass


def test_a_run_that_is_stopped_and_resumed_is_embeddeds_own_bit_for_bit(tmp_path: Path) -> None:
    """pfl on digits, with a network from the user's own file, which no worker can import."""
    net = tmp_path / "net.py"
    net.write_text(NET)

    def stop(line: Any) -> None:
        if line["round"] == 2:
            os.kill(os.getpid(), signal.SIGINT)

    first = training_loop.start(job(net, ON_RAY), tmp_path / "run", None, tmp_path / "keys", stop)
    assert first.completed == 2
    second = training_loop.resume(job(net, ON_RAY), RunRecord.open(tmp_path / "run"), tmp_path / "keys", quiet)
    assert second.completed == 4
    kept, here = second.record.load_checkpoint(second.state), job(net)
    assert kept is not None
    engine = EmbeddedEngine(Simulation(here.algorithm, here.data, here.model.loss, here.key), kept.block_size)
    assert are_equal(second.state.params, train(engine, here.params, rounds=4))


def test_the_same_block_size_gives_the_same_bits_on_one_worker_on_two_and_without_ray(tmp_path: Path) -> None:
    net = tmp_path / "net.py"
    net.write_text(NET)
    engines = (
        '{kind="embedded", block_size=3}',
        '{kind="ray", address="auto", workers=1, block_size=3}',
        '{kind="ray", address="auto", workers=2, block_size=3}',
    )
    trained = []
    for at, engine in enumerate(engines):
        wanted = job(net, f"engine={engine}", "rounds=2")
        trained.append(training_loop.start(wanted, tmp_path / f"run{at}", None, tmp_path / f"keys{at}", quiet).state)
    assert are_equal(trained[0].params, trained[1].params)
    assert are_equal(trained[0].params, trained[2].params)


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{process}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
