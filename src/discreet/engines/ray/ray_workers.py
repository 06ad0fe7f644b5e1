"""The workers on a Ray cluster: start them, give them parcels, collect sums, and replace lost workers."""

import weakref
from dataclasses import replace
from typing import Any

import torch

from discreet import user_code
from discreet.code_version import read_code_version
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.ray.data_portions import extract_portion, split_clients, without_data
from discreet.engines.ray.ray_cluster import Cluster, load_ray
from discreet.engines.ray.ray_engine import ParcelResult
from discreet.engines.ray.worker import BroadcastArrays, Worker
from discreet.errors import DiscreetError
from discreet.logs import get_log

log = get_log(__name__)

PORTIONS_PER_WORKER = 8  # into which the data is divided for sending
START_SECONDS = 300.0  # in which the first worker must be ready


class RemoteWorker:
    """A worker as a Ray actor."""

    def __init__(self, embedded: EmbeddedEngine, portion_of: Any, portions: list[Any]) -> None:
        self._worker = Worker(embedded, portion_of, lambda at: load_ray().get(portions[at]))

    def ready(self) -> str:
        return versions()

    def run_parcel(self, broadcast: BroadcastArrays, clients: list[int]) -> Any:
        return self._worker.run_parcel(broadcast, clients)


def versions() -> str:
    """Describe the versions that all machines must share."""
    return f"discreet {read_code_version().public} and torch {torch.__version__}"


class RayWorkers:
    """Workers on a Ray cluster, by number. They end when this object is deleted, and so does a cluster of our own."""

    def __init__(self, cluster: Cluster, embedded: EmbeddedEngine) -> None:
        self._ray = load_ray()
        self.size = cluster.size
        self._actors: dict[int, Any] = {}
        self.end = weakref.finalize(self, _end_workers, self._ray, self._actors, cluster.is_ours)
        self._starting: dict[Any, int] = {}  # by the call that returns when the worker is ready
        self._running: dict[Any, tuple[int, int]] = {}
        self._ready: set[int] = set()
        self._last_error = ""
        options = {"num_cpus": 1, "num_gpus": cluster.gpus, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
        self._actor_class = self._ray.remote(**options)(RemoteWorker)
        try:
            self._shared_objects = self._put(embedded)
            for worker in range(self.size):
                self._start(worker)
            log.info("ray workers started", workers=self.size)
        except BaseException:
            self.end()
            raise

    def _put(self, embedded: EmbeddedEngine) -> list[Any]:
        """Put what workers are built from into Ray's store, each portion of the data once, and return references."""
        federation = embedded.simulation.federation
        groups = split_clients(federation, min(PORTIONS_PER_WORKER * self.size, len(federation.sizes)))
        portion_of = torch.empty(len(federation.sizes), dtype=torch.int32)
        for at, clients in enumerate(groups):
            portion_of[list(clients)] = at
        simulation = replace(embedded.simulation, federation=without_data(federation), public=None)
        pickle = self._ray.cloudpickle
        own = user_code.modules_from_files()
        for module in own:  # the user's own files, which workers can't import
            pickle.register_pickle_by_value(module)
        try:
            engine = self._ray.put(replace(embedded, simulation=simulation))
        finally:
            for module in own:
                pickle.unregister_pickle_by_value(module)
        return [
            engine,
            self._ray.put(portion_of.numpy()),
            [self._ray.put(extract_portion(federation, clients)) for clients in groups],
        ]

    def _start(self, worker: int) -> None:
        self._actors[worker] = self._actor_class.remote(*self._shared_objects)
        self._starting[self._actors[worker].ready.remote()] = worker

    def idle_workers(self) -> list[int]:
        return sorted(self._ready - {worker for worker, _ in self._running.values()})

    def put_broadcast(self, broadcast: BroadcastArrays) -> Any:
        return self._ray.put(broadcast)

    def run_parcel(self, worker: int, broadcast: Any, parcel: int, clients: list[int]) -> None:
        self._running[self._actors[worker].run_parcel.remote(broadcast, clients)] = worker, parcel

    def answer(self) -> ParcelResult | None:
        calls = [*self._running, *self._starting]
        if not calls:
            raise DiscreetError(
                f"No worker is left on the Ray cluster. {self._last_error}".rstrip(), fix="Look into Ray's logs."
            )
        ready, _ = self._ray.wait(calls, num_returns=1, timeout=None if self._ready else START_SECONDS)
        if not ready:
            raise DiscreetError(
                f"No worker was ready on the Ray cluster within {START_SECONDS:g} seconds.",
                fix="Other jobs may occupy its CPUs: look at `ray status`.",
            )
        result = self._read_result(ready[0])
        if ready[0] in self._starting:
            self._mark_started(self._starting.pop(ready[0]), result)
            return None
        worker, parcel = self._running.pop(ready[0])
        return ParcelResult(worker, parcel, result)

    def _read_result(self, call: Any) -> Any:
        """Return the result of a call, None if the worker was lost. An error in a client's step is raised here."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(call)
        except errors.RayTaskError as error:
            raise error.cause from None
        except errors.RayError as error:
            self._last_error = str(error).strip().splitlines()[-1].strip()
            return None

    def _mark_started(self, worker: int, worker_versions: str | None) -> None:
        """Mark a worker as ready. One that could not start is not tried again: the others do its work."""
        if worker_versions is None:
            log.warning("ray worker did not start", worker=worker)
            del self._actors[worker]
        elif worker_versions != versions():
            raise DiscreetError(
                f"A worker has {worker_versions}, and this machine has {versions()}.",
                fix="Install the same versions on every machine.",
            )
        else:
            log.debug("ray worker ready", worker=worker)
            self._ready.add(worker)

    def replace(self, worker: int) -> None:
        log.warning("ray worker lost", worker=worker)
        self._ready.discard(worker)
        self._ray.kill(self._actors.pop(worker))  # it may only be unreachable, and must not go on
        self._start(worker)


def _end_workers(ray: Any, actors: dict[int, Any], ours: bool) -> None:
    if not ray.is_initialized():
        return
    for actor in actors.values():
        ray.kill(actor)
    if ours:
        ray.shutdown()
