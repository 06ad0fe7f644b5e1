"""The one file that speaks to Ray: joins or starts a cluster, keeps workers on it, and asks them."""

import os
import socket
import weakref
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import torch

from discreet import user_code
from discreet.engines.embedded import HOST_MEMORY, EmbeddedEngine
from discreet.engines.ray.data_portions import extract_portion, split_clients, without_data
from discreet.engines.ray.ray_engine import ParcelResult
from discreet.engines.ray.worker import BroadcastArrays, Worker
from discreet.errors import DiscreetError, InvalidInput, Unsupported

LOCAL = "local"
OLDEST_RAY = (
    2,
    60,
)  # whose clusters ask for a token by themselves; those that earlier ones start are open to the network
PORTIONS_PER_WORKER = 8  # a worker: so finely is data cut that it is sent around in
CONNECT_SECONDS = 10.0  # seconds in which a cluster that is named must answer
START_SECONDS = 300.0  # seconds in which some worker must get ready


@dataclass(frozen=True)
class Cluster:
    """What was joined: its workers-to-be, what each gets of it, and whether it is left or ended with us."""

    size: int
    gpus: float
    memory: int | None  # bytes for the blocks of one worker; None where a GPU's own are measured
    is_ours: bool

    @classmethod
    def join(cls, address: str, workers: int | None, device: torch.device) -> "Cluster":
        """By an address, or the one that runs here ("auto"), or one that is started here ("local")."""
        ray = load_ray()
        ours = not ray.is_initialized()
        if ours:
            _connect(ray, address, workers)
        try:
            return cls._of(ray.cluster_resources(), workers, "GPU" if device.type == "cuda" else "CPU", ours)
        except BaseException:
            if ours:
                ray.shutdown()
            raise

    @classmethod
    def check(cls, address: str, workers: int | None, device: torch.device) -> None:
        """Join a cluster and leave it; one that is to be started here will be there."""
        ray = load_ray()
        if address != LOCAL and cls.join(address, workers, device).is_ours:
            ray.shutdown()

    @classmethod
    def _of(cls, found: dict[str, float], workers: int | None, kind: str, ours: bool) -> "Cluster":
        """GPUs may be shared, by workers that were asked for; a CPU is one worker's."""
        there = int(found.get(kind, 0))
        size = workers or max(1, there)
        if not there or (kind == "CPU" and size > there):
            raise InvalidInput(
                f"The Ray cluster has {there} {kind}s for {size} workers.",
                fix="Ask for fewer workers, or start Ray with more of them.",
            )
        if kind == "GPU":
            return cls(size, min(1.0, there / size), None, ours)
        return cls(size, 0.0, min(HOST_MEMORY, int(found.get("memory", 2 * HOST_MEMORY * size) / (2 * size))), ours)


def load_ray() -> Any:
    try:
        import ray
    except ModuleNotFoundError:
        raise InvalidInput(
            'engine = { kind = "ray" } needs Ray, which is not installed.',
            fix="Install it: pip install 'discreet[ray]'",
        ) from None
    if tuple(map(int, ray.__version__.split(".")[:2])) < OLDEST_RAY:
        raise InvalidInput(
            f'engine = {{ kind = "ray" }} needs Ray {OLDEST_RAY[0]}.{OLDEST_RAY[1]} or later, '
            f"and got {ray.__version__}.",
            fix="Install it: pip install 'discreet[ray]'",
        )
    return ray


def _connect(ray: Any, address: str, workers: int | None) -> None:
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == LOCAL:
        # RAY_AUTH_MODE is left to Ray, which asks for a token unless the user said otherwise: once Ray is imported, to
        # set it here would change it for the cluster alone, and not for this process
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody is told of it
        _start_local(ray, {"num_cpus": max(workers or 1, os.cpu_count() or 1), "include_dashboard": False, **quiet})
        return
    try:
        _check_reachable(address)
        ray.init(address, **quiet)
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        raise InvalidInput(
            f"No Ray cluster answers at address = {address!r}, or it asks for a token that is not set here.",
            fix="Start one with: ray start --head; set RAY_AUTH_MODE=token and its RAY_AUTH_TOKEN here; or use "
            'address = "local".',
        ) from error


def _start_local(ray: Any, options: dict[str, Any], attempts: int = 3) -> None:
    """Start a cluster on this machine. Ray gives itself 30 seconds, which a busy machine may not meet at first."""
    try:
        ray.init(LOCAL, **options)
    except Exception as error:  # Ray raises a plain one
        ray.shutdown()
        if attempts == 1:
            raise Unsupported(
                f"Ray did not start on this machine: {' '.join(str(error).split())[:200].rstrip('.')}.",
                fix='Try again when the machine is less busy, or use engine = { kind = "embedded" }.',
            ) from error
        _start_local(ray, options, attempts - 1)


def _check_reachable(address: str) -> None:
    """Ray tries for minutes to reach a machine that isn't there."""
    host, colon, port = address.rpartition(":")
    if colon and "/" not in address:
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()


class RemoteWorker:
    """A worker as an actor: what Ray makes, calls and loses."""

    def __init__(self, embedded: EmbeddedEngine, portion_of: Any, portions: list[Any]) -> None:
        self._worker = Worker(embedded, portion_of, lambda at: load_ray().get(portions[at]))

    def ready(self) -> str:
        return versions()

    def run_parcel(self, told: BroadcastArrays, clients: list[int]) -> Any:
        return self._worker.run_parcel(told, clients)


def versions() -> str:
    return f"discreet {version('discreet')} and torch {torch.__version__}"


class RayWorkers:
    """Workers by number. They end with whoever holds this, and so does a cluster that was joined for it."""

    def __init__(self, cluster: Cluster, embedded: EmbeddedEngine) -> None:
        self._ray = load_ray()
        self.size = cluster.size
        self._actors: dict[int, Any] = {}
        self.end = weakref.finalize(self, _end_workers, self._ray, self._actors, cluster.is_ours)
        self._starting: dict[Any, int] = {}  # the call that says when it is ready
        self._running: dict[Any, tuple[int, int]] = {}
        self._ready: set[int] = set()
        self._last_error = ""
        options = {"num_cpus": 1, "num_gpus": cluster.gpus, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
        self._actor_class = self._ray.remote(**options)(RemoteWorker)
        try:
            self._shared_objects = self._put(embedded)
            for worker in range(self.size):
                self._start(worker)
        except BaseException:
            self.end()
            raise

    def _put(self, embedded: EmbeddedEngine) -> list[Any]:
        """What every worker is made from: each portion of the data is put once, and fetched by whoever needs it."""
        federation = embedded.simulation.federation
        groups = split_clients(federation, min(PORTIONS_PER_WORKER * self.size, len(federation.sizes)))
        portion_of = torch.empty(len(federation.sizes), dtype=torch.int32)
        for at, clients in enumerate(groups):
            portion_of[list(clients)] = at
        simulation = replace(embedded.simulation, federation=without_data(federation), public=None)
        pickle = self._ray.cloudpickle
        own = user_code.modules_from_files()
        for module in own:  # a file of the user's own, which no worker could import
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

    def put_broadcast(self, told: BroadcastArrays) -> Any:
        return self._ray.put(told)

    def run_parcel(self, worker: int, told: Any, parcel: int, clients: list[int]) -> None:
        self._running[self._actors[worker].run_parcel.remote(told, clients)] = worker, parcel

    def answer(self) -> ParcelResult | None:
        calls = [*self._running, *self._starting]
        if not calls:
            raise DiscreetError(
                f"No worker is left on the Ray cluster. {self._last_error}".rstrip(), fix="Look into Ray's logs."
            )
        ready, _ = self._ray.wait(calls, num_returns=1, timeout=None if self._ready else START_SECONDS)
        if not ready:
            raise DiscreetError(
                f"No worker got ready on the Ray cluster within {START_SECONDS:g} seconds.",
                fix="Others may have taken its CPUs: look at `ray status`.",
            )
        found = self._read_result(ready[0])
        if ready[0] in self._starting:
            self._mark_started(self._starting.pop(ready[0]), found)
            return None
        worker, parcel = self._running.pop(ready[0])
        return ParcelResult(worker, parcel, found)

    def _read_result(self, call: Any) -> Any:
        """What was answered; None where the worker was lost. What went wrong in a client's step is raised here."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(call)
        except errors.RayTaskError as error:
            raise error.cause from None
        except errors.RayError as error:
            self._last_error = str(error).strip().splitlines()[-1].strip()
            return None

    def _mark_started(self, worker: int, found: str | None) -> None:
        """One that can't start is not tried again; the others do its work."""
        if found is None:
            del self._actors[worker]
        elif found != versions():
            raise DiscreetError(
                f"A worker has {found}, and here it is {versions()}.", fix="Install the same on every machine."
            )
        else:
            self._ready.add(worker)

    def replace(self, worker: int) -> None:
        self._ready.discard(worker)
        self._ray.kill(self._actors.pop(worker))  # it may only be out of reach, and must not work on
        self._start(worker)


def _end_workers(ray: Any, actors: dict[int, Any], ours: bool) -> None:
    if not ray.is_initialized():
        return
    for actor in actors.values():
        ray.kill(actor)
    if ours:
        ray.shutdown()
