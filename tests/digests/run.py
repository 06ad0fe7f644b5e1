"""Run a case, in this process and on one thread."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from discreet import api
from discreet.deploy.deployed_run import DeployedRun
from discreet.engines.embedded import HOST_MEMORY
from discreet.engines.engine_table import Flower, Ray
from discreet.engines.ray import ray_workers
from discreet.engines.ray.ray_cluster import Cluster
from discreet.experiment.loop import training_loop
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.privacy.events import GaussianNoise, PoissonSampled
from discreet.privacy.ledger import Budget, Ledger
from discreet.privacy.release import Release
from discreet.secure_sums.secagg.session_messages import ROUND, SETUP
from tests.deploy.example_sites import connect_nodes, create_site
from tests.digests.cases import Case
from tests.engines.ray_cluster import LocalWorkers

SECOND_MASK = (
    1 + len(SETUP) + len(ROUND)
)  # the number of the exchange in which masked vectors of the second round are sent
SILENT_NODE = 102


@dataclass(frozen=True)
class FinishedRun:
    """The run directory, and every ledger that the run wrote to: its own or the shared one, then the clients'."""

    record: RunRecord
    ledgers: tuple[Path, ...]


class _Stop(Exception):
    """Stands for a process that ends after a round."""


def run_case(case: Case, folder: Path, *, real_ray: bool = False) -> FinishedRun:
    """Train in a new folder. A Ray cluster is started for `real_ray` only; otherwise its workers run here."""
    engine = case.load().experiment.engine
    with _one_thread():
        if isinstance(engine, Flower):
            return _deploy(case, folder)
        with _workers_here() if isinstance(engine, Ray) and not real_ray else nullcontext():
            return _simulate(case, folder)


def _simulate(case: Case, folder: Path) -> FinishedRun:
    out, keys = folder / "run", folder / "keys"
    shared = _used_ledger(folder / "shared.jsonl") if case.shared_ledger else None

    def stop(line: dict[str, Any]) -> None:
        if line["round"] == case.stop_after:
            raise _Stop

    with suppress(_Stop):
        training_loop.start(api.prepare_job(case.load()), out, shared, keys, stop)
    record = RunRecord.open(out)
    if case.stop_after is not None:
        job, record = api.reopen_run(out, keys)
        training_loop.resume(job, record, keys, lambda line: None)
    return FinishedRun(record, (record.ledger_path,) if record.ledger_path else ())


def _deploy(case: Case, folder: Path) -> FinishedRun:
    """Run a server and clients without a network; one client misses a message."""
    site = create_site(folder, case.path.read_text(encoding="utf-8"))
    wire = connect_nodes(folder, site, [])
    wire.lost = lambda node, number: (node, number) == (SILENT_NODE, SECOND_MASK)
    record = DeployedRun(site, "run").train(wire, lambda text: None).record
    assert record.ledger_path is not None
    own = [ledger for each in site.deployment.clients for ledger in (folder / each.name).glob("ledger-*.jsonl")]
    return FinishedRun(record, (record.ledger_path, *own))


def _used_ledger(path: Path) -> Path:
    """Return a ledger for clients from which an earlier run has spent something."""
    budget = Budget(unit="client", relation="add_or_remove", view="public", epsilon=20.0, delta=1e-2)
    ledger = Ledger.create(path, [budget], mode="filter")
    event = PoissonSampled(sampling_rate=0.5, event=GaussianNoise(noise_multiplier=2.0))
    earlier = [Release(unit="client", relation="add_or_remove", view="public", event=event)]
    ledger.commit(ledger.reserve("earlier run round 0", earlier), earlier)
    return path


@contextmanager
def _one_thread() -> Iterator[None]:
    """Use one thread, because the last bits of a sum depend on the number of threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def _workers_here() -> Iterator[None]:
    """Run the ray engine with its workers in this process, so that Ray need not be installed."""

    def join(address: str, workers: int, device: torch.device) -> Cluster:
        return Cluster(size=workers, gpus=0.0, memory=HOST_MEMORY, is_ours=False)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Cluster, "check", staticmethod(lambda address, workers, device: None))
        patch.setattr(Cluster, "join", staticmethod(join))
        patch.setattr(ray_workers, "RayWorkers", lambda cluster, embedded: LocalWorkers(cluster.size, embedded))
        yield
