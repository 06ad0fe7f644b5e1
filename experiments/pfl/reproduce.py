"""Runs the cells of paper 000's tables and keeps what each gave; run again, it goes on where it stopped.

python experiments/pfl/reproduce.py table2 --models cnn-ts sn-linear --splits 1x20 20x1 --seeds 3
python experiments/pfl/reproduce.py --write     # the page, from all results so far
"""

import argparse
import json
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from discreet.experiment import config, job, promise, run
from discreet.experiment.config import Experiment, Settings
from discreet.partition import Iid, Overlapping
from discreet.places import Places
from discreet.randomness import RunKey
from discreet.tasks.examples import Examples

HERE = Path(__file__).parent
RESULTS = HERE / "results.jsonl"
TABLES = ("table2", "table3", "table4", "table5-mnist", "table5-fashion", "table5-cifar")


@dataclass(frozen=True)
class Cell:
    """One number of a table: `epsilon` is the paper's, None without privacy; `overlapping` is how clients are dealt."""

    data: str
    model: str
    epsilon: float | None
    epochs: int
    rounds: int
    clients: int
    overlapping: bool
    settings: str = "paper"

    def experiment(self) -> Experiment:
        kind = "-fedavg" if self.epsilon is None else "" if self.settings == "paper" else f"-{self.settings}"
        source = config.load(HERE / f"{self.data}-{self.model}{kind}.toml", (f"algorithm.epochs={self.epochs}",))
        promised = source.experiment.privacy
        if promised is not None and self.epsilon is not None:
            promised = replace(promised, epsilon=self.epsilon)
        return replace(source.experiment, rounds=self.rounds, privacy=promised)


def cells(table: dict[str, Any]) -> Iterator[Cell]:
    """All cells of a table; with more clients than hold a tenth each, both overlapping and disjoint."""
    for column in table["column"]:
        for epochs, rounds in table["splits"]:
            for clients in table["clients"]:
                ways = (True, False) if table.get("overlapping") and clients > 10 else (False,)
                for overlapping in ways:
                    for model in table["models"]:
                        epsilon = column.get("epsilon")
                        yield Cell(table["data"], model, epsilon, epochs, rounds, clients, overlapping)


def measured(cell: Cell, seed: int, device: str, data_dir: Path | None) -> dict[str, Any]:
    """Train one cell, and say how good its model is and what is certified of it."""
    began, key, experiment = time.perf_counter(), RunKey.seed(seed), cell.experiment()
    examples = _examples(experiment.task, Places.of(HERE, data_dir))
    partition = Overlapping(fraction=0.1) if cell.overlapping else Iid()
    task = examples.dealt(cell.clients, partition, key.generator("task"))
    algorithm, privacy = experiment.algorithm, experiment.privacy
    if cell.overlapping and privacy is not None:
        # The paper's noise is that of one client alone; what it is worth when clients overlap is certified instead.
        apart = replace(task.train.population, max_multiplicity=1)
        algorithm, privacy = promise.kept(algorithm, privacy, cell.rounds, apart), None
    ready = job.from_objects(
        task,
        experiment.model.build(task, key.generator("model")),
        {"loss": None, "metric": None},
        rounds=cell.rounds,
        seed=seed,
        key=key,
        algorithm=algorithm,
        privacy=privacy,
        settings=Settings(evaluate_every=cell.rounds, checkpoint_every=cell.rounds, device=device),  # type: ignore[arg-type]
    )
    with tempfile.TemporaryDirectory() as folder:
        ended = run.start(ready, Path(folder) / "run", None, Path(folder) / "keys", lambda line: None)
    first = ended.guarantees[0] if ended.guarantees else None
    return asdict(cell) | {
        "seed": seed,
        "accuracy": 100 * ended.metrics["accuracy"],
        "certified": None if first is None else first.epsilon,
        "noise_multiplier": getattr(ready.algorithm.trainer, "noise_multiplier", None),
        "multiplicity": task.train.max_multiplicity,
        "device": ready.device.type,
        "seconds": round(time.perf_counter() - began, 1),
    }


@lru_cache(maxsize=1)
def _examples(task: Any, places: Places) -> Examples:
    """Loaded once for all cells that share them."""
    return task.examples(places)  # type: ignore[no-any-return]


def results() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def wanted(arguments: argparse.Namespace) -> list[tuple[Cell, int]]:
    """The cells that were asked for and are not there yet, those that share their data together."""
    found: dict[Cell, None] = {}
    for name in arguments.tables or TABLES:
        table = tomllib.loads((HERE / f"{name}.toml").read_text())
        found |= dict.fromkeys(cells(table))
    splits = [tuple(map(int, each.split("x"))) for each in arguments.splits or ()]
    chosen = [
        replace(cell, settings=arguments.settings)
        for cell in found
        if (not arguments.models or cell.model in arguments.models)
        and (not splits or (cell.epochs, cell.rounds) in splits)
        and (not arguments.epsilons or str(cell.epsilon or "none") in arguments.epsilons)
        and (not arguments.clients or cell.clients in arguments.clients)
    ]
    fields = list(Cell.__dataclass_fields__)
    there = {(*(each[name] for name in fields), each["seed"]) for each in results()}
    asked = [(cell, seed) for cell in chosen for seed in range(arguments.seeds)]
    asked.sort(key=lambda pair: (pair[0].data, pair[0].model.startswith("sn")))
    return [pair for pair in asked if (*asdict(pair[0]).values(), pair[1]) not in there]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(TABLES)}; default: all")
    parser.add_argument("--models", nargs="+", metavar="MODEL")
    parser.add_argument("--epsilons", nargs="+", metavar="EPSILON", help="'none' is the column without privacy")
    parser.add_argument("--splits", nargs="+", metavar="ExR")
    parser.add_argument("--clients", nargs="+", type=int, metavar="K")
    parser.add_argument("--seeds", type=int, default=3, metavar="N")
    parser.add_argument("--settings", default="paper", help="'paper', or the name of another file of the same cell")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--limit-s", type=float, default=float("inf"), help="start no cell after so many seconds")
    parser.add_argument("--write", action="store_true", help="write docs/results/pfl.md from what is there")
    arguments = parser.parse_args()
    if arguments.write:
        from page import write  # drawing takes a while to import

        print(write(results()))
        return
    began, asked = time.perf_counter(), wanted(arguments)
    torch.set_float32_matmul_precision("highest")
    for number, (cell, seed) in enumerate(asked, start=1):
        if time.perf_counter() - began > arguments.limit_s:
            break
        found = measured(cell, seed, arguments.device, arguments.data_dir)
        with RESULTS.open("a") as file:
            file.write(json.dumps(found) + "\n")
        said = f"{cell} seed {seed}: {found['accuracy']:.2f} % in {found['seconds']} s"
        print(f"{number}/{len(asked)} {said}", flush=True)


if __name__ == "__main__":
    main()
