"""What an audit costs beside the run that it audits, in turns: a linear model on digits, and a CNN on images of MNIST's
size. Both train the same algorithm for as many rounds; a run also evaluates its model and writes its directory, and an
audit also scores its canaries and bounds ε. Images are random: time doesn't depend on what is on them.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import results
import torch
from torch import nn

import discreet
from discreet.audit.audit_setup import setup_from_job
from discreet.audit.auditor import AuditOptions, audit_experiment
from discreet.experiment.configuration.run_settings import Settings
from discreet.experiment.job import Job
from discreet.experiment.loop import job_builder, training_loop
from discreet.randomness.streams import RunKey

CANARIES = 1000
GOAL = 1.25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, default=5, help="medians are shown; one more warms up (5)")
    parser.add_argument("--rounds", type=int, default=10, help="of each training (10)")
    results.add_options(parser, "audit_cost")
    options = parser.parse_args()
    results.publish("audit_cost", options, lambda: measure_all(options.rounds, options.turns), page)


def measure_all(rounds: int, turns: int) -> results.Entry:
    """Measure every workload on one thread of the CPU."""
    torch.set_num_threads(1)
    return {
        "device": "cpu",
        "machine": results.machine(),
        "versions": results.versions("discreet", "torch"),
        "rounds": rounds,
        "turns": turns,
        "workloads": {name: measure(build(rounds), turns) for name, build in WORKLOADS.items()},
    }


def page(entries: results.Entries) -> str:
    lines = [
        "# What an audit costs",
        "",
        "Written by `benchmarks/audit_cost.py --write`. A run and its audit by up to 1,000 canaries take turns on one",
        "thread; the time of an audit is divided by that of the run before it, and the median is shown. Both train the",
        f"same algorithm for as many rounds. The goal is at most {GOAL}.",
        "",
        "| | parameters | canaries | run | audit | audit ÷ run | | measured ε | certified ε |",
        "|---|---:|---:|---:|---:|---:|---|---:|---:|",
    ]
    for entry in entries.values():
        for name, found in entry["workloads"].items():
            run, audit = (statistics.median(found["seconds"][what]) for what in ("run", "audit"))
            ratio = found["audit_over_run"]
            lines.append(
                f"| {name} | {found['parameters']:,} | {found['canaries']:,} | {run:.2f} s | {audit:.2f} s "
                f"| {ratio:.2f} | {results.verdict(ratio <= GOAL)} | {found['lower_bound']:.2f} "
                f"| {found['certified_epsilon']:.2f} |"
            )
        lines += ["", f"{entry['rounds']} rounds, {entry['turns']} turns."]
        lines += [results.provenance(entry["machine"], entry["versions"]), ""]
    return "\n".join(lines)


def measure(job: Job, turns: int) -> dict[str, Any]:
    """Time a run and its audit in turns, so that both meet the same machine."""
    setup = setup_from_job(job)
    record = audit_experiment(setup, AuditOptions(canaries=CANARIES, runs=1))
    seconds: dict[str, list[float]] = {"run": [], "audit": []}
    for turn in range(turns + 1):
        with tempfile.TemporaryDirectory() as folder:
            run = _time(lambda folder=folder: _train(job, Path(folder)))  # type: ignore[misc]
        audit = _time(lambda: audit_experiment(setup, AuditOptions(canaries=CANARIES, runs=1)))
        if turn:  # the first one warms up
            seconds["run"].append(run)
            seconds["audit"].append(audit)
    ratios = [audit / run for run, audit in zip(seconds["run"], seconds["audit"], strict=True)]
    return {
        "parameters": sum(value.numel() for value in job.params.values()),
        "canaries": record.canaries,
        "lower_bound": round(record.lower_bound, 3),
        "certified_epsilon": round(record.certified_epsilon, 3),
        "seconds": {name: [round(each, 3) for each in values] for name, values in seconds.items()},
        "audit_over_run": round(statistics.median(ratios), 3),
    }


def _time(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _train(job: Job, folder: Path) -> None:
    training_loop.start(job, folder / "run", None, folder / "keys", lambda line: None)


def linear_on_digits(rounds: int) -> Job:
    """1,797 examples of 64 pixels at ten clients, and a linear model."""
    return _build_job(nn.Linear(64, 10), (64,), clients=10, each=180, rounds=rounds, rate=0.25)


def cnn_on_images(rounds: int) -> Job:
    """10,000 images of 28×28 at ten clients, and a small convolutional network."""
    network = nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.Tanh(),
        nn.Linear(32, 10),
    )
    return _build_job(network, (1, 28, 28), clients=10, each=1000, rounds=rounds, rate=0.1)


def _build_job(module: nn.Module, shape: tuple[int, ...], *, clients: int, each: int, rounds: int, rate: float) -> Job:
    generator = torch.Generator().manual_seed(0)
    count = clients * each
    inputs = torch.rand(count, *shape, generator=generator)
    labels = torch.randint(10, (count,), generator=generator)
    task = discreet.clients_from_arrays(inputs, labels, clients=[i % clients for i in range(count)])
    algorithm = discreet.pfl(local_steps=1, sampling_rate=rate, clip_norm=0.5, learning_rate=1.0)
    return job_builder.build_job_from_objects(
        task,
        module,
        {"loss": None, "metric": None},
        key=RunKey.generate(),
        algorithm=algorithm,
        privacy=discreet.Privacy(unit="example", against="server", epsilon=4.0, delta=1e-5),
        settings=Settings(rounds=rounds, device="cpu"),
    )


WORKLOADS: dict[str, Callable[[int], Job]] = {
    "a linear model on digits": linear_on_digits,
    "a CNN on images of 28×28": cnn_on_images,
}

if __name__ == "__main__":
    main()
