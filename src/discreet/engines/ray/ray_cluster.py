"""Join or start a Ray cluster, and find what each worker gets of it. The only file that imports ray."""

import os
import socket
from dataclasses import dataclass
from typing import Any

import torch

from discreet.engines.embedded import HOST_MEMORY
from discreet.errors import InvalidInput, Unsupported
from discreet.extras import missing_extra

LOCAL = "local"
OLDEST_RAY = (2, 52)  # earlier versions know no tokens, and their clusters are open to the network
ASKS_FOR_TOKEN = (2, 59)  # from this version on, a cluster that is started here asks for a token by default
CONNECT_SECONDS = 10.0  # in which a cluster at a given address must answer


@dataclass(frozen=True)
class Cluster:
    """A Ray cluster that this process has joined.

    Attributes:
        size: Number of workers.
        gpus: Share of a GPU for each worker.
        memory: Bytes for the blocks of one worker. None: the memory of its GPU is measured.
        is_ours: Whether this process connected to the cluster, and disconnects from it at the end.
    """

    size: int
    gpus: float
    memory: int | None
    is_ours: bool

    @classmethod
    def join(cls, address: str, workers: int | None, device: torch.device) -> "Cluster":
        """Join the cluster at an address, the one that runs on this machine ("auto"), or start one here ("local").

        Raises:
            InvalidInput: No cluster answers, or it has too few CPUs or GPUs.
        """
        ray = load_ray()
        ours = not ray.is_initialized()
        if ours:
            _connect(ray, address, workers)
        try:
            return cls._from_resources(
                ray.cluster_resources(), workers, "GPU" if device.type == "cuda" else "CPU", ours
            )
        except BaseException:
            if ours:
                ray.shutdown()
            raise

    @classmethod
    def check(cls, address: str, workers: int | None, device: torch.device) -> None:
        """Check that the cluster can be joined, and leave it again. A local cluster is not started for that."""
        ray = load_ray()
        if address != LOCAL and cls.join(address, workers, device).is_ours:
            ray.shutdown()

    @classmethod
    def _from_resources(cls, resources: dict[str, float], workers: int | None, kind: str, ours: bool) -> "Cluster":
        """Divide the cluster's resources: workers may share a GPU if their number was asked for; each needs a CPU."""
        there = int(resources.get(kind, 0))
        size = workers or max(1, there)
        if not there or (kind == "CPU" and size > there):
            raise InvalidInput(
                f"The Ray cluster has {there} {kind}s for {size} workers.",
                fix="Ask for fewer workers, or start Ray with more CPUs or GPUs.",
            )
        if kind == "GPU":
            return cls(size, min(1.0, there / size), None, ours)
        return cls(size, 0.0, min(HOST_MEMORY, int(resources.get("memory", 2 * HOST_MEMORY * size) / (2 * size))), ours)


def load_ray() -> Any:
    try:
        import ray
    except ModuleNotFoundError as error:
        raise missing_extra(error, 'engine = { kind = "ray" }') or error from None
    if _version(ray) < OLDEST_RAY:
        raise InvalidInput(
            f'engine = {{ kind = "ray" }} needs Ray {OLDEST_RAY[0]}.{OLDEST_RAY[1]} or later, '
            f"and got {ray.__version__}.",
            fix="Install it: pip install 'discreet[ray]'",
        )
    return ray


def _version(ray: Any) -> tuple[int, ...]:
    return tuple(map(int, ray.__version__.split(".")[:2]))


def _connect(ray: Any, address: str, workers: int | None) -> None:
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == LOCAL:
        _ask_for_token(ray)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
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


def _ask_for_token(ray: Any) -> None:
    """Let a cluster that is started here ask for a token, unless the user decided otherwise.

    Newer versions do the same by themselves. The cluster's processes read the variable; this process has read it when
    Ray was imported, and reads it again. If it did not, it could not join the cluster.
    """
    if _version(ray) < ASKS_FOR_TOKEN and "RAY_AUTH_MODE" not in os.environ:
        os.environ["RAY_AUTH_MODE"] = "token"
        ray._raylet.Config.initialize("")


def _start_local(ray: Any, options: dict[str, Any], attempts: int = 3) -> None:
    """Start a cluster on this machine. Try again if it fails: Ray's 30 seconds may be too short on a busy machine."""
    try:
        ray.init(LOCAL, **options)
    except Exception as error:  # Ray raises a plain Exception
        ray.shutdown()
        if attempts == 1:
            raise Unsupported(
                f"Ray did not start on this machine: {' '.join(str(error).split())[:200].rstrip('.')}.",
                fix='Try again when the machine is less busy, or use engine = { kind = "embedded" }.',
            ) from error
        _start_local(ray, options, attempts - 1)


def _check_reachable(address: str) -> None:
    """Fail at once if nobody listens at the address: Ray would try for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and "/" not in address:
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
