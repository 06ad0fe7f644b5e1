"""The ray engine without Ray: its workers run here, one after the other, and are lost where a test says so."""

import os
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.algorithms.aggregation import Median, TrimmedMean
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.population import Population
from discreet.algorithms.recipes.dp_fedavg import dp_fedavg
from discreet.algorithms.recipes.fedavg import fedavg
from discreet.algorithms.recipes.registry import RECIPES
from discreet.algorithms.sampling import FixedSize, Poisson
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import CohortSum, Simulation
from discreet.engines.ray import ray_cluster
from discreet.engines.ray import ray_engine as ray_engine
from discreet.engines.ray.data_portions import extract_portion, split_clients, with_portions, without_data
from discreet.engines.ray.ray_engine import RayEngine, group_blocks, worker_block_size
from discreet.engines.ray.work_split import WorkSplit
from discreet.engines.ray.worker import BroadcastArrays
from discreet.errors import DiscreetError, InvalidInput, Unsupported
from discreet.experiment.configuration import experiment_file
from discreet.experiment.loop import training_loop
from discreet.experiment.loop.job_builder import build_job
from discreet.models.user_module.supervised_module import SupervisedModule
from discreet.randomness.streams import RunKey
from tests.engines.ray_cluster import LocalWorkers
from tests.federations import cross_entropy, federation, linear

DATA = federation(7, 1, 12, 4, 9, 4, 30, 2)
EVERYONE = list(range(8))
PLAIN = dp_fedavg(learning_rate=0.3, batch_size=30, clip_norm=0.5, noise_multiplier=1.0)


def embedded(algorithm: Algorithm, block: int = 2, loss=cross_entropy) -> EmbeddedEngine:
    public = replace(DATA, sizes=(sum(DATA.sizes),))
    return EmbeddedEngine(Simulation(algorithm, DATA, loss, RunKey.from_seed(9), public), block)


def build_broadcast(engine: EmbeddedEngine, params=None) -> Broadcast:
    algorithm = engine.simulation.algorithm
    return algorithm.broadcast(algorithm.init(params or linear()), 3, engine.simulation.public_update)


def are_equal(left: CohortSum, right: CohortSum) -> bool:
    """Compare all bits, including the diagnostics."""
    tensors = [(getattr(left, name), getattr(right, name)) for name in ("norms", "kept", "signal")]
    tensors += [(left.total[name], right.total[name]) for name in left.total]
    return left.contributors == right.contributors and all(torch.equal(*pair) for pair in tensors)


EVERY = {
    name: recipe(**recipe.example).with_noise(1.0).for_population(DATA.population, 18)
    for name, recipe in RECIPES.items()
}
EVERY["median"] = replace(EVERY["pfl"], aggregation=Median())
EVERY["trimmed_mean"] = replace(EVERY["ldp_fedavg"], aggregation=TrimmedMean())


@pytest.mark.parametrize("name", EVERY)
def test_workers_make_the_same_bits_as_embedded(name: str) -> None:
    engine = embedded(EVERY[name])
    broadcast = build_broadcast(engine)
    cohort = [7, 0, 1, 2, 4, 6]
    found = RayEngine(engine, LocalWorkers(3, engine)).gather(broadcast, cohort)
    assert are_equal(found, engine.gather(broadcast, cohort))


@settings(max_examples=25)
@given(st.data())
def test_workers_that_are_slow_or_lost_change_no_bit_and_count_once(data: st.DataObject) -> None:
    engine = embedded(PLAIN)
    broadcast = build_broadcast(engine)
    losses = iter(data.draw(st.permutations([True, True, *[False] * 8])))  # no parcel is lost three times
    crew = LocalWorkers(
        data.draw(st.integers(1, 5)),
        engine,
        first=lambda calls: data.draw(st.integers(0, calls - 1)),
        lost=lambda: next(losses, False),
    )
    found = RayEngine(engine, crew).gather(broadcast, EVERYONE)
    assert sorted(found.contributors) == EVERYONE
    assert are_equal(found, engine.gather(broadcast, EVERYONE))


def test_a_network_that_draws_by_itself_draws_the_same_too() -> None:
    """Dropout depends on who is in the block, so blocks are the same on every worker."""
    torch.manual_seed(3)
    module = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 3)).double()
    model = SupervisedModule(module, "classification")
    engine = embedded(PLAIN, loss=model.loss)
    broadcast = build_broadcast(engine, model.params)
    found = RayEngine(engine, LocalWorkers(3, engine)).gather(broadcast, EVERYONE)
    assert are_equal(found, engine.gather(broadcast, EVERYONE))


def test_more_blocks_than_sums_are_added_up_in_rows_whoever_plays_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_engine, "MAX_PARCELS", 3)
    engine = embedded(PLAIN, block=1)
    broadcast = build_broadcast(engine)
    one, four = (RayEngine(engine, LocalWorkers(size, engine)).gather(broadcast, EVERYONE) for size in (1, 4))
    assert are_equal(one, four)
    slow = engine.gather(broadcast, EVERYONE)
    assert one.contributors == slow.contributors
    assert all((one.total[name] - slow.total[name]).abs().max() < 1e-10 for name in slow.total)


def test_as_few_blocks_are_joined_as_make_256_parcels() -> None:
    assert group_blocks([[1, 2], [3]]) == [[1, 2], [3]]
    blocks = [[client] for client in range(600)]
    assert group_blocks(blocks) == [[first, first + 1, first + 2] for first in range(0, 600, 3)]
    assert group_blocks([]) == []


def test_a_parcel_that_takes_three_workers_with_it_ends_the_round_and_the_workers() -> None:
    engine = embedded(PLAIN)
    crew = LocalWorkers(2, engine, lost=lambda: True)
    with pytest.raises(DiscreetError, match="3 workers were lost one after the other"):
        RayEngine(engine, crew).gather(build_broadcast(engine), EVERYONE)
    assert crew.ended == 1


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (None, "needs ray, which is not installed"),
        (SimpleNamespace(__version__="2.51.2"), "needs Ray 2.52 or later, and got 2.51.2"),
    ],
)
def test_without_ray_or_with_an_old_one_a_sentence_says_what_to_install_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: SimpleNamespace | None, said: str
) -> None:
    monkeypatch.setitem(sys.modules, "ray", found)
    job = build_job(
        experiment_file.load_experiment(None, ('engine={kind="ray"}', "rounds=1", "seed=1")), RunKey.from_seed(1)
    )
    with pytest.raises(InvalidInput, match=rf"{said}.*pip install 'discreet\[ray\]'"):
        training_loop.start(job, tmp_path / "run", None, tmp_path / "keys", lambda line: None)
    assert not (tmp_path / "run").exists()


def test_an_empty_cohort_asks_nobody() -> None:
    engine = embedded(PLAIN)
    found = RayEngine(engine, LocalWorkers(2, engine)).gather(build_broadcast(engine), [])
    assert (found.contributors, float(found.signal)) == ((), 0)


def test_a_worker_fetches_a_portion_once_and_hardly_more_than_its_own() -> None:
    """Equal clients, everyone in every round: each of two workers holds half of the data, and keeps it."""
    data = federation(*[4] * 20)
    engine = EmbeddedEngine(Simulation(PLAIN, data, cross_entropy, RunKey.from_seed(1)), 2)
    crew = LocalWorkers(2, engine)
    for _ in range(3):
        RayEngine(engine, crew).gather(build_broadcast(engine), list(range(20)))
    assert sorted(crew.fetched) == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 2),
        (1, 3),
        (1, 4),
    ]  # of five, one is across the middle


def test_portions_hold_every_client_once_and_shared_examples_once() -> None:
    """Clients 0 and 1 share example 2; sizes 2, 3, 1."""
    order = torch.tensor([0, 2, 2, 3, 4, 1])
    data = replace(federation(5), sizes=(2, 3, 1), max_multiplicity=2, order=order)
    groups = split_clients(data, 2)
    assert groups == [(2, 0), (1,)]
    whole = extract_portion(data, (0, 1))
    assert len(whole.inputs) == 4
    assert whole.places.tolist() == [0, 1, 1, 2, 3]
    held = with_portions(
        with_portions(without_data(data), [extract_portion(data, groups[1])]), [extract_portion(data, groups[0])]
    )
    for client in range(3):
        at = torch.arange(held.starts[client], held.starts[client] + held.sizes[client])
        for ours, theirs in zip(held.examples_at(at), data.examples_at(at), strict=True):
            assert torch.equal(ours, theirs)


def test_nobodys_data_is_nobodys_data() -> None:
    data = without_data(DATA)
    assert (len(data.inputs), data.sizes) == (0, DATA.sizes)
    assert data.inputs.untyped_storage().nbytes() == 0


def test_what_travels_keeps_its_shape_and_its_type() -> None:
    broadcast = Broadcast(2, {"w": torch.ones(2, 3).t()}, {"clip": torch.tensor(0.5, dtype=torch.float64)})
    sent = BroadcastArrays.from_broadcast(broadcast)
    assert (sent.params["w"].shape, sent.announced["clip"].shape) == ((3, 2), ())
    assert (sent.params["w"].dtype, sent.announced["clip"].dtype) == (np.float32, np.float64)


def test_each_worker_gets_a_stretch_of_like_cost_and_helps_when_it_is_done() -> None:
    shares = WorkSplit([1, 1, 1, 1, 2, 2], workers=2)
    assert [shares.take(0) for _ in range(4)] == [0, 1, 2, 3]
    assert shares.take(0) == 5  # the last of the other's
    shares.return_parcel(0, 5)
    assert [shares.take(1) for _ in range(3)] == [4, 5, None]


@given(st.lists(st.integers(1, 9), max_size=30), st.integers(1, 8), st.randoms(use_true_random=False))
def test_every_parcel_is_taken_once(costs: list[int], workers: int, random) -> None:
    shares = WorkSplit(costs, workers)
    taken = []
    while (found := shares.take(random.randrange(workers))) is not None:
        taken.append(found)
    assert sorted(taken) == list(range(len(costs)))


def test_blocks_are_so_small_that_every_worker_has_one() -> None:
    alike, differing = Population(examples=(5,) * 100), Population(examples=(5,) * 99 + (6,))
    everyone = fedavg(learning_rate=0.1, batch_size=2)
    assert worker_block_size(4096, everyone, alike, workers=2) == 50
    assert worker_block_size(4096, everyone, alike, workers=3) == 34
    assert worker_block_size(4096, everyone, differing, workers=2) == 13  # eight, so that they can be shared out
    assert worker_block_size(7, everyone, alike, workers=2) == 7  # what fits
    assert worker_block_size(4096, replace(everyone, sampling=FixedSize(cohort=10)), alike, workers=2) == 5
    assert worker_block_size(4096, replace(everyone, sampling=Poisson(rate=0.4)), alike, workers=2) == 5
    assert worker_block_size(4096, everyone, alike, workers=1000) == 1


@pytest.mark.parametrize(("failures", "started"), [(0, True), (2, True), (3, False)])
def test_a_cluster_that_does_not_start_in_time_is_started_again(failures: int, started: bool) -> None:
    tried: list[str] = []

    def init(address: str, **options: object) -> None:
        tried.append(address)
        if tried.count(address) <= failures:
            raise Exception("The current node timed out during startup.")

    ray = SimpleNamespace(init=init, shutdown=lambda: tried.append("shutdown"))
    expected = nullcontext() if started else pytest.raises(Unsupported, match="did not start on this machine: The cur")
    with expected:
        ray_cluster._start_local(ray, {})
    assert tried.count("local") == min(failures + 1, 3)
    assert tried.count("shutdown") == failures


@pytest.mark.parametrize(
    ("version", "decided", "expected"),
    [
        ("2.52.0", None, "token"),
        ("2.58.1", None, "token"),
        ("2.55.1", "disabled", "disabled"),
        ("2.59.0", None, None),  # Ray does it by itself
    ],
)
def test_a_cluster_of_an_older_ray_asks_for_a_token_unless_the_user_decided_otherwise(
    monkeypatch: pytest.MonkeyPatch, version: str, decided: str | None, expected: str | None
) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", decided or "")  # restored at the end, whatever happens to it
    if decided is None:
        del os.environ["RAY_AUTH_MODE"]
    read_again: list[str | None] = []
    config = SimpleNamespace(initialize=lambda settings: read_again.append(os.environ.get("RAY_AUTH_MODE")))
    ray = SimpleNamespace(__version__=version, _raylet=SimpleNamespace(Config=config))
    ray_cluster._ask_for_token(ray)
    assert os.environ.get("RAY_AUTH_MODE") == expected
    assert read_again == ([expected] if expected == "token" else [])
