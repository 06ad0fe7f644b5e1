"""One round on a Ray cluster of this machine: embedded on one thread, one worker, more, and bare processes, in turns.

Clients of 50 images of 3×32×32, one epoch in batches of 10 through a small convolutional network, updates clipped.
The blocks are the same for all, so the sums are too, bit for bit; that is checked. Others may be at work on the
machine, so the load is printed beside the times, and as many bare processes, each of which plays its share of the
blocks and sends nothing, show what the cores allow at that moment.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

import results
import torch
from torch import nn

from discreet.algorithms.recipes.dp_fedavg import dp_fedavg
from discreet.data.federation import Federation
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import Engine, Simulation
from discreet.engines.ray.ray_cluster import Cluster
from discreet.engines.ray.ray_engine import RayEngine
from discreet.engines.ray.ray_workers import RayWorkers
from discreet.models.user_module.supervised_module import SupervisedModule
from discreet.params import Params
from discreet.randomness.streams import RunKey

EXAMPLES, BATCH = 50, 10
EMBEDDED, BARE = "embedded", "bare processes"

HERE: list[tuple[EmbeddedEngine, Params]] = []  # a bare process's own workload


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--workers", type=int, default=2, help="beside a crew of one (2)")
    parser.add_argument("--clients", type=int, default=64, help="all of them join (64)")
    parser.add_argument("--turns", type=int, default=7, help="medians are shown; one more warms up (7)")
    options = parser.parse_args()
    torch.set_num_threads(1)  # as Ray's workers have
    before = os.getloadavg()[0]
    found = race(options.workers, options.clients, options.turns)
    medians = {name: statistics.median(seconds) for name, seconds in found.items()}
    one, more = medians[worker_label(1)], medians[worker_label(options.workers)]
    seconds = {name: [round(each, 3) for each in values] for name, values in found.items()}
    print(
        json.dumps(
            {
                "machine": results.machine(),
                "versions": results.versions("discreet", "ray", "torch"),
                "load": [round(before, 2), round(os.getloadavg()[0], 2)],
                "clients": options.clients,
                "seconds": seconds,
                "median": {name: round(value, 3) for name, value in medians.items()},
                "times_as_fast_as_one_worker": round(one / more, 2),
                "times_as_fast_as_embedded": round(medians[EMBEDDED] / more, 2),
                "of_what_bare_processes_reach": round(medians[BARE] / more, 2),
            },
            indent=2,
        )
    )


def race(workers: int, clients: int, turns: int) -> dict[str, list[float]]:
    """Seconds a round of each, in turns, so that all meet the same machine."""
    import ray

    block = -(-clients // (4 * workers))
    engine, params = workload(clients, block)
    algorithm = engine.simulation.algorithm
    ray.init("local", num_cpus=1 + workers, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    racers: dict[str, Engine] = {EMBEDDED: engine}
    for size in (1, workers):  # those who wait take no time
        racers[worker_label(size)] = RayEngine(
            engine, RayWorkers(Cluster.join("local", size, torch.device("cpu")), engine)
        )
    found: dict[str, list[float]] = {name: [] for name in (*racers, BARE)}
    with bare(workers, clients, block) as pool:
        for turn in range(turns + 1):
            broadcast, sums = algorithm.broadcast(algorithm.init(params), turn), []
            for name, racer in racers.items():
                began = time.perf_counter()
                sums.append(racer.gather(broadcast, list(range(clients))).total)
                found[name].append(time.perf_counter() - began)
            began = time.perf_counter()
            list(pool.map(play, [workers] * workers, range(workers)))
            found[BARE].append(time.perf_counter() - began)
            assert all(torch.equal(sums[0][name], each[name]) for each in sums for name in params)
    ray.shutdown()
    return {name: seconds[1:] for name, seconds in found.items()}  # the first starts workers, and brings them data


@contextmanager
def bare(workers: int, clients: int, block: int) -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(workers, get_context("spawn"), prepare, (clients, block)) as pool:
        yield pool


def prepare(clients: int, block: int) -> None:
    torch.set_num_threads(1)
    HERE.append(workload(clients, block))


def play(shares: int, share: int) -> None:
    """Every so manyth block."""
    engine, params = HERE[0]
    algorithm = engine.simulation.algorithm
    broadcast = algorithm.broadcast(algorithm.init(params), 0)
    for block in list(engine.blocks(list(range(engine.simulation.population.clients))))[share::shares]:
        engine.gather(broadcast, block)


def workload(clients: int, block: int) -> tuple[EmbeddedEngine, Params]:
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2)]
    model = SupervisedModule(nn.Sequential(*layers, nn.Flatten(), nn.Linear(1152, 10)), "classification")
    inputs, targets = torch.randn(clients * EXAMPLES, 3, 32, 32), torch.randint(10, (clients * EXAMPLES,))
    algorithm = dp_fedavg(learning_rate=0.1, batch_size=BATCH, clip_norm=0.4, noise_multiplier=0.5)
    data = Federation(inputs, targets, (EXAMPLES,) * clients)
    return EmbeddedEngine(Simulation(algorithm, data, model.loss, RunKey.from_seed(0)), block), model.params


def worker_label(workers: int) -> str:
    return f"{workers} worker{'s' if workers > 1 else ''}"


if __name__ == "__main__":
    main()
