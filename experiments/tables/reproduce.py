"""Runs the untouched starter of `discreet init` on ten tables, and models without privacy beside it.

python -m experiments.tables.reproduce --data-dir DATA --work DIR    # the same command continues where it stopped
python -m experiments.tables.reproduce --page                        # docs/results/tables.md from what is there
python -m experiments.tables.reproduce --quick --work DIR --out DIR  # two small tables, one seed: a few minutes
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from discreet.experiment.configuration.starter_rules import CLIP
from discreet.paths import Paths
from experiments.tables.sources import SOURCES, Source
from experiments.tables.trials import Trial, plan_warnings

HERE = Path(__file__).parent
SEEDS = (0, 1, 2)
RATES = ("0.03", "0.1", "0.3")  # of FedAvg, each for 30 rounds of one epoch
PENALTIES = ("1", "10", "100", "1000")
QUICK = ("cancer", "wine")
IN_GROUPS = ("income", "credit", "four", "loans", "housing")  # tables that are also cut into many whole clients
Results = dict[str, dict[str, Any]]


def read_results(folder: Path) -> Results:
    """Return what is stored in a folder, by the key of its trial."""
    file = folder / "results.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    return {line["key"]: line for line in map(json.loads, lines)}


def shape_key(source: Source) -> str:
    """Return the key under which the number of rows and clients of a table is stored."""
    return f"{source.name}|shape"


def variants(source: Source) -> list[tuple[str, ...]]:
    """Return other settings that were compared on validation data: one at a time, half and double or thereabouts."""
    clip = CLIP["rows"] * (1 + source.columns) ** 0.5
    return [
        (),
        *((f"algorithm.clip_norm={clip * factor:.2g}",) for factor in (0.25, 0.5, 2.0)),
        *((f"algorithm.server.learning_rate={rate}",) for rate in (0.01, 0.1)),
        *((f"rounds={rounds}",) for rounds in (50, 200)),
    ]


def choosing_trials(source: Source) -> Iterator[Trial]:
    """Yield the trials that are scored on validation data."""
    for seed in SEEDS[:1]:
        for rate in RATES:
            yield Trial(
                source.name, "fedavg", seed, ("rounds=30", f"algorithm.learning_rate={rate}"), is_validation=True
            )
        for penalty in PENALTIES:
            yield Trial(source.name, "central", seed, (penalty,), is_validation=True)
        if source.chooses:
            yield Trial(source.name, "constant", seed, is_validation=True)
            for settings in variants(source):
                yield Trial(source.name, "variant", seed, settings, is_validation=True)


def reported_trials(source: Source, results: Results) -> Iterator[Trial]:
    """Yield the trials that are scored on test data, with the settings that validation data chose."""
    rate = best_setting(source, "fedavg", results)
    penalty = best_setting(source, "central", results)
    for seed in SEEDS:
        yield Trial(source.name, "starter", seed)
        yield Trial(source.name, "constant", seed)
        if rate is not None:
            yield Trial(source.name, "fedavg", seed, rate)
        if penalty is not None:
            yield Trial(source.name, "central", seed, penalty)
        if source.name in IN_GROUPS:
            yield Trial(source.name, "whole_clients", seed, in_groups=True)
            yield Trial(source.name, "constant", seed, in_groups=True)
            if penalty is not None:
                yield Trial(source.name, "central", seed, penalty, in_groups=True)


def best_setting(source: Source, kind: str, results: Results) -> tuple[str, ...] | None:
    """Return the settings of this kind with the best score on validation data; None before all were tried."""
    tried = [trial for trial in choosing_trials(source) if trial.kind == kind]
    if any(trial.key not in results for trial in tried):
        return None
    found = [(results[trial.key]["score"], trial.settings) for trial in tried]
    return max((score, settings) for score, settings in found if score is not None)[1]


def main(arguments: list[str] | None = None) -> None:
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--only", nargs="+", choices=[source.name for source in SOURCES], help="default: all tables")
    command.add_argument("--kind", nargs="+", help="only trials of these kinds, such as starter or fedavg")
    command.add_argument("--data-dir", type=Path, default=Paths.default().data)
    command.add_argument("--work", type=Path, default=Path("tables"), metavar="DIR", help="where tables are written")
    command.add_argument("--out", type=Path, default=HERE, metavar="DIR", help="where results go; default: beside this")
    command.add_argument("--quick", action="store_true", help="two small tables and one seed")
    command.add_argument("--page", action="store_true", help="write docs/results/tables.md from what is there")
    options = command.parse_args(arguments)
    if options.page:
        from experiments.tables.page import write

        print(write(read_results(options.out)))
        return
    chosen = options.only or (QUICK if options.quick else [source.name for source in SOURCES])
    sources = [source for source in SOURCES if source.name in chosen]
    for source in sources:
        if shape_key(source) not in read_results(options.out):
            _store({"key": shape_key(source), **source.count(options.data_dir)}, options.out)
    for phase in ("choosing", "reported"):
        for source in sources:
            found = read_results(options.out)
            trials = choosing_trials(source) if phase == "choosing" else reported_trials(source, found)
            for trial in trials:
                is_wanted = not options.kind or trial.kind in options.kind
                if is_wanted and trial.key not in found and not (options.quick and trial.seed):
                    _run(trial, options)


def _run(trial: Trial, options: argparse.Namespace) -> None:
    began = time.perf_counter()
    line = {"key": trial.key, **trial.run(options.work, options.data_dir)}
    if trial.kind in ("starter", "whole_clients") and trial.seed == SEEDS[0]:
        line["plan_warnings"] = plan_warnings(trial, options.work)
    line["seconds"] = round(time.perf_counter() - began, 1)
    _store(line, options.out)
    print(f"{trial.key}: {line['score']} in {line['seconds']} s", flush=True)


def _store(line: dict[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "results.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
