"""Runs the cells of PFL's tables and keeps what each gave. Run again, it continues where it stopped.

python -m experiments.pfl.reproduce table2 --models cnn-ts sn-linear --splits 1x20 20x1 --seeds 3
python -m experiments.pfl.reproduce table2 table3 --settings authors --part 1/10    # and nine more beside it
python -m experiments.pfl.reproduce --write     # the page, from all results so far
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

import torch

from discreet.data.partition import Iid, OverlappingSplit
from discreet.data.tasks.examples import Examples
from discreet.engines.engine_table import Embedded
from discreet.experiment.configuration import experiment_file
from discreet.experiment.configuration.experiment_file import Experiment
from discreet.experiment.configuration.run_settings import Settings
from discreet.experiment.loop import job_builder, training_loop
from discreet.experiment.promise import calibrate
from discreet.paths import Paths
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey
from discreet.trust import Trust
from experiments.common.parts import part
from experiments.pfl.cells import HERE, RESULTS, SETTINGS, TABLES, Cell, cells, results, table, with_settings

ENGINE = Embedded()
FILTERS: dict[str, Callable[[Cell], str]] = {  # what an option of this name holds a cell against
    "models": lambda cell: cell.model,
    "epsilons": lambda cell: "none" if cell.epsilon is None else f"{cell.epsilon:g}",
    "splits": lambda cell: f"{cell.epochs}x{cell.rounds}",
    "clients": lambda cell: str(cell.clients),
}


def experiment(cell: Cell) -> Experiment:
    """The cell's file, with what the table varies."""
    path = _file(cell)
    source = experiment_file.load_experiment(path, (f"algorithm.epochs={cell.epochs}",))
    promised = source.experiment.privacy
    if promised is not None and cell.epsilon is not None:
        promised = replace(promised, epsilon=cell.epsilon)
    return replace(source.experiment, rounds=cell.rounds, privacy=promised)


def _file(cell: Cell) -> Path:
    kind = "-fedavg" if cell.epsilon is None else "-better" if cell.settings == "better" else ""
    return (HERE / "authors" if cell.settings == "authors" else HERE) / f"{cell.data}-{cell.model}{kind}.toml"


def run_cell(cell: Cell, seed: int, device: str, data_dir: Path | None, engine: Embedded = ENGINE) -> dict[str, Any]:
    """Train one cell, and say how good its model is and what is certified of it."""
    began, key, config = time.perf_counter(), RunKey.from_seed(seed), experiment(cell)
    paths = Paths.default(_file(cell).parent, data_dir, Trust.all_code())
    examples = _examples(_DataSet(repr(config.task), config.task), paths)
    partition = OverlappingSplit(fraction=0.1) if cell.overlapping else Iid()
    task = examples.build_task(cell.clients, partition, key.generator(Purpose.TASK))
    algorithm, privacy = config.algorithm, config.privacy
    if cell.overlapping and privacy is not None:
        # The paper's noise is that of one client alone; what it is worth when clients overlap is certified instead.
        apart = replace(task.train.population, max_multiplicity=1)
        algorithm, privacy = calibrate.calibrate_noise(algorithm, privacy, cell.rounds, apart), None
    ready = job_builder.build_job_from_objects(
        task,
        job_builder.build_model(config.model, task, paths, key.generator(Purpose.MODEL)),
        {"loss": None, "metric": None},
        key=key,
        algorithm=algorithm,
        privacy=privacy,
        settings=Settings(
            rounds=cell.rounds,
            seed=seed,
            evaluate_every=cell.rounds,
            checkpoint_every=cell.rounds,
            device=device,  # type: ignore[arg-type]
            engine=engine,
        ),
    )
    with tempfile.TemporaryDirectory() as temporary:
        ended = training_loop.start(ready, Path(temporary) / "run", None, Path(temporary) / "keys", lambda line: None)
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


@dataclass(frozen=True)
class _DataSet:
    """A task, equal to all others that load the same examples; one with an extractor of its own can't be hashed."""

    description: str
    task: Any = field(compare=False)


@lru_cache(maxsize=1)
def _examples(data: _DataSet, paths: Paths) -> Examples:
    """Load the examples once for all cells that share them."""
    return data.task.examples(paths)  # type: ignore[no-any-return]


def select_runs(arguments: argparse.Namespace, refuse: Callable[[str], NoReturn]) -> list[tuple[Cell, int]]:
    """Return the wanted cells without a result, grouped by the data they read."""
    names = arguments.tables or TABLES
    _check_known(refuse, "TABLE", names, TABLES)
    found = list(dict.fromkeys(cell for name in names for cell in cells(table(name))))
    selection = found
    for option, of in FILTERS.items():
        if wanted := getattr(arguments, option):
            _check_known(refuse, f"--{option}", wanted, dict.fromkeys(map(of, found)))
            selection = [cell for cell in selection if of(cell) in wanted]
    selection = with_settings(arguments.settings, selection)
    if not selection:
        refuse("no cell of these tables fits all options")
    if lacking := [_file(cell).name for cell in selection if not _file(cell).exists()]:
        refuse(f"--settings: there is no {lacking[0]}")
    there = {(*(each[name] for name in Cell.__dataclass_fields__), each["seed"]) for each in results()}
    pairs = [(cell, seed) for cell in selection for seed in range(arguments.seeds)]
    pairs.sort(key=lambda pair: (pair[0].data, pair[0].model.startswith("sn")))
    first, parts = arguments.part
    return [pair for pair in pairs if (*asdict(pair[0]).values(), pair[1]) not in there][first - 1 :: parts]


def _check_known(refuse: Callable[[str], NoReturn], what: str, values: Iterable[str], known: Iterable[str]) -> None:
    if strange := [each for each in values if each not in set(known)]:
        refuse(f"{what} must be one of {', '.join(known)}, and got {strange[0]!r}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(TABLES)}; default: all")
    parser.add_argument("--models", nargs="+", metavar="MODEL")
    parser.add_argument("--epsilons", nargs="+", metavar="EPSILON", help="'none' is the column without privacy")
    parser.add_argument("--splits", nargs="+", metavar="ExR")
    parser.add_argument("--clients", nargs="+", metavar="K")
    parser.add_argument("--seeds", type=int, default=3, metavar="N")
    parser.add_argument(
        "--settings", default="paper", choices=SETTINGS, help="ours, better ones, or the authors' code's"
    )
    parser.add_argument("--part", type=part, default=(1, 1), metavar="I/N", help="this process's share of the runs")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument(
        "--limit-s", type=float, default=float("inf"), metavar="S", help="start no cell after S seconds"
    )
    parser.add_argument("--write", action="store_true", help="write docs/results/pfl.md from what is there")
    arguments = parser.parse_args()
    if arguments.write:
        from experiments.pfl.page import write  # drawing takes a while to import

        print(write(results()))
        return
    began, runs = time.perf_counter(), select_runs(arguments, parser.error)
    torch.set_float32_matmul_precision("highest")
    for number, (cell, seed) in enumerate(runs, start=1):
        if time.perf_counter() - began > arguments.limit_s:
            break
        found = run_cell(cell, seed, arguments.device, arguments.data_dir) | {"at_once": arguments.part[1]}
        with RESULTS.open("a") as file:
            file.write(json.dumps(found) + "\n")
        text = f"{cell} seed {seed}: {found['accuracy']:.2f} % in {found['seconds']} s"
        print(f"{number}/{len(runs)} {text}", flush=True)


if __name__ == "__main__":
    main()
