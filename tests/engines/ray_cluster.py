"""Workers of the ray engine without Ray: they run in this process, one after the other."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.ray.data_portions import extract_portion, split_clients, without_data
from discreet.engines.ray.ray_engine import ParcelResult
from discreet.engines.ray.worker import BroadcastArrays, Worker


@dataclass
class LocalWorkers:
    """Workers whose calls are answered in the order that `first` chooses, and lost where `lost` says so."""

    size: int
    embedded: EmbeddedEngine
    first: Callable[[int], int] = lambda calls: 0
    lost: Callable[[], bool] = lambda: False
    ended: int = 0
    fetched: list[tuple[int, int]] = field(default_factory=list)  # which worker, which portion

    def __post_init__(self) -> None:
        data = self.embedded.simulation.federation
        self.groups = split_clients(data, 5)
        self.portions = [extract_portion(data, clients) for clients in self.groups]
        self.workers = {at: self._worker(at) for at in range(self.size)}
        self.calls: list[tuple[int, BroadcastArrays, int, list[int]]] = []

    def _worker(self, at: int) -> Worker:
        data = without_data(self.embedded.simulation.federation)
        portion_of = {client: place for place, clients in enumerate(self.groups) for client in clients}

        def fetch(place: int):
            self.fetched.append((at, place))
            return self.portions[place]

        return Worker(
            replace(self.embedded, simulation=replace(self.embedded.simulation, federation=data)), portion_of, fetch
        )

    def idle_workers(self) -> list[int]:
        return sorted(set(self.workers) - {call[0] for call in self.calls})

    def put_broadcast(self, told: BroadcastArrays) -> BroadcastArrays:
        return told

    def run_parcel(self, worker: int, told: BroadcastArrays, parcel: int, clients: list[int]) -> None:
        self.calls.append((worker, told, parcel, clients))

    def answer(self) -> ParcelResult | None:
        worker, told, parcel, clients = self.calls.pop(self.first(len(self.calls)))
        found = self.workers[worker].run_parcel(told, clients)
        return ParcelResult(worker, parcel, None if self.lost() else found)

    def replace(self, worker: int) -> None:
        self.workers[worker] = self._worker(worker)

    def end(self) -> None:
        self.ended += 1
