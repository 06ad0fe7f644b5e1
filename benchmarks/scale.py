"""How memory, bytes and time grow with clients, parameters and rounds, and what that says of a million and a billion
clients: measured here up to ten thousand clients who all join every round, and up to a million of whom every tenth
joins, each size in a process of its own.

What is said of larger numbers is the fitted model's, and the page says so.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import results
from scipy import optimize

from discreet.report.number_format import format_bytes

PAGE = results.FOLDER.parent / "scale.md"
DATA = results.FOLDER / "scale.json"
INPUTS, CLASSES, EXAMPLES = 20, 10, 10  # of every client
ROUNDS = 6  # of which the first warms up
DELTA = 1e-7
CROWDS = ((100_000, 10_000), (1_000_000, 100_000))  # clients, and how many of them join a round on average
POPULATIONS = (10_000, 100_000, 1_000_000)
WIDE, PRECISION = 100_000, 4  # parameters of what is extrapolated, and the bytes of each
LARGE = ((1_000_000, 1_000), (1_000_000, 10_000), (1_000_000_000, 10_000), (1_000_000_000, 100_000))


class Cell(NamedTuple):
    """One run: so many clients, a network of about so many parameters, so many rounds."""

    clients: int
    parameters: int
    rounds: int = ROUNDS


CELLS = [
    *(Cell(clients, 10_000) for clients in (10, 100, 1_000, 10_000)),
    *(Cell(1_000, parameters) for parameters in (1_000, 100_000, 1_000_000)),
    *(Cell(10_000, parameters) for parameters in (1_000, 100_000)),
    *(Cell(100, 1_000, rounds) for rounds in (10, 100, 1_000)),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the measurements as one object")
    parser.add_argument("--write", action="store_true", help="also write docs/scale.md anew")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the page from what is kept")
    parser.add_argument("--crowds", action="store_true", help="measure large cohorts alone, and keep the rest")
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    parser.add_argument("--crowd", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell or options.crowd:
        found = run(Cell(*json.loads(options.cell))) if options.cell else run_crowd(*json.loads(options.crowd))
        print(json.dumps(found))
        return
    if options.page or options.crowds:
        entry = json.loads(DATA.read_text()) | ({} if options.page else {"crowds": measure_crowds()})
    else:
        entry = measure()
    if options.write:
        DATA.write_text(json.dumps(entry, indent=2) + "\n")
    if options.write or options.page:
        PAGE.write_text(page(entry))
    print(json.dumps(entry) if options.json else page(entry))


def measure() -> results.Entry:
    cells = [_in_a_process("--cell", cell) for cell in CELLS]
    return {
        "machine": results.machine(),
        "versions": results.versions("discreet", "torch"),
        "load": os.getloadavg()[0],
        "cells": cells,
        "populations": [_population(size) for size in POPULATIONS],
        "ray": _ray(),
        "crowds": measure_crowds(),
    }


def measure_crowds() -> dict[str, Any]:
    import torch

    return {
        "threads": torch.get_num_threads(),
        "versions": results.versions("discreet", "torch"),
        "load": os.getloadavg()[0],
        "cells": [_in_a_process("--crowd", crowd) for crowd in CROWDS],
        "load_after": os.getloadavg()[0],
    }


def _in_a_process(option: str, case: Any) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, option, json.dumps(case)], check=True, capture_output=True
    )
    found: dict[str, Any] = json.loads(ran.stdout)
    print(found, file=sys.stderr)
    return found


def _ray() -> dict[str, Any] | None:
    """Two workers against one, where Ray is installed."""
    if find_spec("ray") is None:
        return None
    script = Path(__file__).with_name("ray_speed.py")
    ran = subprocess.run([sys.executable, "-W", "ignore", script], check=True, capture_output=True)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def run(cell: Cell) -> dict[str, Any]:
    """One run from start to card, in this process: its peak of memory, and the middle of its rounds."""
    import torch

    import discreet as d
    from discreet.algorithms.message_sizes import message_bits

    hidden = max(1, round((cell.parameters - CLASSES) / (INPUTS + 1 + CLASSES)))
    model = torch.nn.Sequential(torch.nn.Linear(INPUTS, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, CLASSES))
    algorithm = d.dp_fedavg(clip_norm=1.0, learning_rate=0.1, batch_size=EXAMPLES, epochs=1)
    measured = _train(model, algorithm, cell.clients, cell.rounds)
    sent = message_bits(algorithm, {name: value.detach() for name, value in model.named_parameters()})
    return cell._asdict() | {
        "parameters": sum(value.numel() for value in model.parameters()),
        "up": sent.up // 8,
        "down": sent.down // 8,
        **measured,
    }


def run_crowd(clients: int, cohort: int) -> dict[str, Any]:
    """One run of a linear model, whose rounds each client joins with the same probability."""
    import torch

    import discreet as d

    algorithm = d.dp_fedavg(
        clip_norm=1.0, learning_rate=0.1, batch_size=EXAMPLES, epochs=1, sampling_rate=cohort / clients
    )
    return {"clients": clients, "cohort": cohort, **_train(torch.nn.Linear(INPUTS, CLASSES), algorithm, clients)}


def _train(model: Any, algorithm: Any, clients: int, rounds: int = ROUNDS) -> dict[str, Any]:
    """The seconds of a round, and the peak of memory, in all and before training."""
    import discreet as d

    chance = np.random.default_rng(0)
    inputs = chance.standard_normal((clients * EXAMPLES, INPUTS), dtype=np.float32)
    task = d.clients_from_arrays(
        inputs, chance.integers(0, CLASSES, len(inputs)), sizes=[EXAMPLES] * clients, classes=CLASSES
    )
    processor: list[float] = []
    before, began = _peak(), time.perf_counter()
    with TemporaryDirectory() as folder:
        trained = d.train(
            model,
            task,
            rounds=rounds,
            algorithm=algorithm,
            privacy=d.Privacy(unit="client", against="public", epsilon=8.0, delta=DELTA),
            out=Path(folder) / "run",
            key_dir=Path(folder) / "keys",
            progress=False,
            evaluate_every=rounds,
            callbacks=[lambda record: processor.append(time.process_time())],
        )
        seconds = time.perf_counter() - began
        each = [line["seconds"] for line in trained.history[1:]]
        kept = {name: (trained.directory / name).stat().st_size for name in ("ledger.jsonl", "rounds.jsonl")}
    return {
        "round": statistics.median(each),
        "least": min(each),
        "processor": min(float(seconds) for seconds in np.diff(processor)),
        "seconds": seconds,
        "peak": _peak(),
        "before": before,
        "kept": kept,
    }


def _population(size: int) -> dict[str, float]:
    """What it takes to know how much each client has, and to toss a coin for each."""
    import torch

    from discreet.algorithms.population import Population
    from discreet.algorithms.sampling import Poisson

    began = time.perf_counter()
    clients = Population(examples=(EXAMPLES,) * size)
    built = time.perf_counter() - began
    began = time.perf_counter()
    Poisson(rate=0.001).sample(clients, 0, torch.Generator().manual_seed(0))
    return {"clients": size, "built": built, "drawn": time.perf_counter() - began}


def _peak() -> float:
    """Bytes, of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


# The page.


class Model(NamedTuple):
    """Seconds of a round: a + b·clients + c·clients·parameters."""

    start: float
    client: float
    parameter: float
    off: float  # the largest factor by which it misses a cell

    def round(self, clients: float, parameters: float) -> float:
        return self.start + self.client * clients + self.parameter * clients * parameters


def fit_model(cells: list[dict[str, Any]]) -> Model:
    """By least squares on relative errors, with no negative costs."""
    rows = np.array([[1.0, cell["clients"], cell["clients"] * cell["parameters"]] for cell in cells])
    seconds = np.array([cell["round"] for cell in cells])
    costs, _ = optimize.nnls(rows / seconds[:, None], np.ones(len(cells)))
    ratios = rows @ costs / seconds
    start, client, parameter = costs.tolist()
    return Model(start, client, parameter, float(max(ratios.max(), 1 / ratios.min())))


class Memory(NamedTuple):
    """Bytes that a simulation takes: a + b·clients for all clients and their data, and a full block of clients."""

    start: float
    client: float
    block: float

    def predict(self, clients: float) -> float:
        return self.start + self.client * clients + self.block


def fit_memory(cells: list[dict[str, Any]]) -> Memory:
    """Fit a line to the memory before training, and add what training took with most clients of a wide model."""
    rows = np.array([[1.0, cell["clients"]] for cell in cells])
    (start, client), _ = optimize.nnls(rows, np.array([cell["before"] for cell in cells]))
    full = max((cell for cell in cells if cell["parameters"] > WIDE / 2), key=lambda cell: cell["clients"])
    return Memory(float(start), float(client), full["peak"] - full["before"])


def page(entry: results.Entry) -> str:
    return "\n".join(_lines(entry)) + "\n"


def _lines(entry: results.Entry) -> Iterator[str]:
    cells = entry["cells"]
    wide = [cell for cell in cells if cell["rounds"] == ROUNDS]
    long = [cell for cell in cells if cell["rounds"] != ROUNDS]
    model = fit_model(wide)
    yield "# How it scales"
    yield ""
    yield (
        "`benchmarks/scale.py --write` wrote this page. Measured on one machine up to ten thousand clients that join "
        "every round, and up to a million with a linear model; other numbers for more clients are extrapolated by the "
        "model below, and marked as such."
    )
    yield f"{results.provenance(entry['machine'], entry['versions'])} The load was {entry['load']:.1f} at the end."
    yield ""
    yield (
        f"Every client has {EXAMPLES} examples of {INPUTS} numbers, takes one step per round, and joins every round. "
        "The network has one hidden layer. The noise is Gaussian and protects whole clients (`dp_fedavg`, engine "
        "`embedded`)."
    )
    yield ""
    yield "## Clients and parameters"
    yield ""
    yield (
        "| clients | parameters | s per round | peak memory, GB | of that before training | upload per client | "
        "download |"
    )
    yield "|---:|---:|---:|---:|---:|---:|---:|"
    for cell in wide:
        yield (
            f"| {cell['clients']:,} | {cell['parameters']:,} | {cell['round']:.3g} | {cell['peak'] / 1e9:.2f} | "
            f"{cell['before'] / 1e9:.2f} | {format_bytes(cell['up'])} | {format_bytes(cell['down'])} |"
        )
    yield ""
    yield (
        f"Model: a round takes {model.start:.2g} s + {model.client:.2g} s per client + {model.parameter:.2g} s per "
        f"client and parameter. It is within a factor of {model.off:.2g} of every row above."
    )
    yield (
        "Memory holds the data and one block of clients at a time, at most 1.5 GB, so it stops growing with the cohort "
        "once a block is full."
    )
    yield ""
    yield from _crowds(entry["crowds"])
    yield "## Rounds"
    yield ""
    yield "| rounds | total, s | s per round | ledger, bytes per round | rounds.jsonl, bytes per round |"
    yield "|---:|---:|---:|---:|---:|"
    for cell in long:
        ledger, lines = (cell["kept"][name] / cell["rounds"] for name in ("ledger.jsonl", "rounds.jsonl"))
        each = cell["seconds"] / cell["rounds"]
        yield f"| {cell['rounds']:,} | {cell['seconds']:.3g} | {each:.3g} | {ledger:,.0f} | {lines:,.0f} |"
    yield ""
    yield "## Listing and drawing clients"
    yield ""
    yield "| clients | to list them, s | to draw a coin for each, s |"
    yield "|---:|---:|---:|"
    for each in entry["populations"]:
        yield f"| {each['clients']:,} | {each['built']:.2g} | {each['drawn']:.2g} |"
    yield ""
    if entry["ray"] is not None:
        yield from _workers(entry["ray"])
    yield from _extrapolation(model, fit_memory(wide), entry["populations"][-1])


def _crowds(found: dict[str, Any]) -> Iterator[str]:
    yield "## Large cohorts of a linear model"
    yield ""
    yield (
        f"{INPUTS} inputs, {CLASSES} classes, {EXAMPLES} examples per client and one local step; every tenth client "
        f"joins a round, by a coin of its own. By `benchmarks/scale.py --crowds --write`, discreet "
        f"{found['versions']['discreet']}, with {found['threads']} thread(s); the load was {found['load']:.1f} before "
        f"and {found['load_after']:.1f} after. Other work on the machine adds to the seconds of a clock, and less to "
        "those of the processor."
    )
    yield ""
    yield (
        "| clients | cohort | s per round, median | quickest | processor, s per round | whole run, s | "
        "peak memory, GB | of that before training |"
    )
    yield "|---:|---:|---:|---:|---:|---:|---:|---:|"
    for cell in found["cells"]:
        yield (
            f"| {cell['clients']:,} | {cell['cohort']:,} | {cell['round']:.3g} | {cell['least']:.3g} | "
            f"{cell['processor']:.3g} | {cell['seconds']:.3g} | {cell['peak'] / 1e9:.2f} | {cell['before'] / 1e9:.2f} |"
        )
    yield ""


def _workers(found: dict[str, Any]) -> Iterator[str]:
    """Medians of one interleaved run; the load says whether the second core was free."""
    yield "## Workers"
    yield ""
    before, after = found["load"]
    yield (
        f"A round of {found['clients']} clients with a small convolutional network, by `benchmarks/ray_speed.py`; the "
        f"load was {before:.1f} before and {after:.1f} after. Plain processes compute the same blocks without Ray, "
        "which shows what the cores can do at that moment."
    )
    yield ""
    yield "| | s per round |"
    yield "|---|---:|"
    for name, seconds in found["median"].items():
        yield f"| {name} | {seconds:.3f} |"
    yield ""
    yield f"Two workers were {found['times_as_fast_as_one_worker']:.2f} times as fast as one ([how](guides/ray.md))."
    yield ""


def _extrapolation(model: Model, memory: Memory, largest: dict[str, float]) -> Iterator[str]:
    secure = json.loads((results.FOLDER / "secagg.json").read_text())["cpu"]["cohorts"]["default"]
    yield "## A million and a billion clients: extrapolated"
    yield ""
    yield (
        f"A cohort of the given size joins each round; {WIDE:,} parameters, {PRECISION} bytes each. One machine like "
        "the one above would simulate a round in the given time; several workers divide it."
    )
    yield (
        f"Memory of a simulation, from the measurements above: {format_bytes(memory.start)} + "
        f"{format_bytes(memory.client)} per client with its {EXAMPLES} examples, whether it joins or not + "
        f"{format_bytes(memory.block)} for a full block. "
        "A server with real clients stores the model once for all of them and adds replies up one at a time, so its "
        "memory is a multiple of the model that does not grow with the cohort ([measured](results/load.md) with few "
        "clients)."
    )
    yield ""
    yield (
        "| clients | cohort | simulation, s per round | simulation, memory, GB | real server: updates received "
        "| to list the clients, s |"
    )
    yield "|---:|---:|---:|---:|---:|---:|"
    for clients, cohort in LARGE:
        listed = largest["built"] * clients / largest["clients"]
        yield (
            f"| {clients:,} | {cohort:,} | {model.round(cohort, WIDE):.3g} | {memory.predict(clients) / 1e9:,.1f} | "
            f"{format_bytes(WIDE * PRECISION * cohort)} | {listed:.2g} |"
        )
    yield ""
    yield "What changes at each size:"
    yield ""
    few = secure[-1]
    yield (
        "- **Up to 10⁴ clients**: nothing changes in a simulation. One process holds all clients. A secure sum of a "
        f"thousand clients needs {few['neighbours']} neighbours per client, and the degree of the graph grows with the "
        "logarithm of the cohort."
    )
    yield (
        "- **10⁶ clients**: the cost depends on the cohort and not on the population, except for the list of client "
        "sizes and a coin for each client and round, which take seconds. A simulation can use several machines "
        '(`engine = { kind = "ray" }`). With real clients (`flower`), plan for the updates that the server '
        "receives, and for its processor: each call of a client takes it some 15 ms "
        "([what a server carries](results/load.md)). It adds each reply to the sum and keeps none, except for a "
        "median or a trimmed mean, which need every update at once (`needs_each_upload`). Several servers or a tree "
        "of sums would go further and are not implemented. δ has to be far below 10⁻⁶."
    )
    yield (
        "- **10⁹ clients**: a list with a number for each client no longer fits into the memory of one machine. "
        "Clients would have to draw their own coins and be described in groups instead of one by one; that is not "
        "implemented. Privacy is cheapest here: the same cohort is drawn at a far smaller rate. δ has to be far below "
        "10⁻⁹."
    )


if __name__ == "__main__":
    main()
