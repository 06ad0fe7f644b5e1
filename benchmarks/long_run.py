"""Does memory or time grow with the number of rounds? Ten thousand simulated clients for 500 rounds, in a process of
their own: the resident memory and the seconds of each round, early and late, in clear and through secure sums.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import results

PAGE = results.FOLDER / "long_run.md"
DATA = results.FOLDER / "long_run.json"
INPUTS, CLASSES, EXAMPLES = 20, 10, 10  # of every client
WARM_UP = 0.1  # the share of the rounds after which memory should have stopped growing


class Case(NamedTuple):
    """One run: its engine, all clients, how many of them a round expects, and its rounds."""

    engine: str
    clients: int
    cohort: int
    rounds: int


CASES = (Case("embedded", 10_000, 10_000, 500), Case("embedded", 10_000, 100, 500), Case("secure", 100, 100, 50))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the measurements as one object")
    parser.add_argument("--write", action="store_true", help="also write docs/results/long_run.md anew")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the page from what is kept")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(run(Case(*json.loads(options.case)))))
        return
    entry = json.loads(DATA.read_text()) if options.page else measure()
    if options.write:
        DATA.write_text(json.dumps(entry, indent=2) + "\n")
    if options.write or options.page:
        PAGE.write_text(page(entry))
    print(json.dumps(entry) if options.json else page(entry))


def measure() -> results.Entry:
    cases = []
    for case in CASES:
        command = [sys.executable, "-W", "ignore", __file__, "--case", json.dumps(case)]
        cases.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
        print(cases[-1], file=sys.stderr)
    return {
        "machine": results.machine(),
        "versions": results.versions("discreet", "torch"),
        "load": os.getloadavg()[0],
        "cases": cases,
    }


def run(case: Case) -> dict[str, Any]:
    """Train in this process, and read memory and clock after each round."""
    import torch

    import discreet as d
    from discreet.engines.engine_table import Embedded, Secure

    chance = np.random.default_rng(0)
    inputs = chance.standard_normal((case.clients * EXAMPLES, INPUTS)).astype(np.float32)
    clients = d.clients_from_arrays(
        inputs, chance.integers(0, CLASSES, len(inputs)), sizes=[EXAMPLES] * case.clients, classes=CLASSES
    )
    if case.engine == "secure":
        algorithm = d.ddp_fedavg(clip_norm=1.0, learning_rate=0.1, sampling_rate=0.5, noise="skellam")
        privacy = d.Privacy(unit="example", against="server", epsilon=8.0, delta=1e-6)
    else:
        rate = case.cohort / case.clients
        algorithm = d.dp_fedavg(clip_norm=1.0, learning_rate=0.1, batch_size=EXAMPLES, epochs=1, sampling_rate=rate)
        privacy = d.Privacy(unit="client", against="public", epsilon=8.0, delta=1e-6)
    memory: list[int] = []
    clock = [time.perf_counter()]

    def look(_: Any) -> None:
        memory.append(resident_bytes())
        clock.append(time.perf_counter())

    with TemporaryDirectory() as folder:
        d.train(
            torch.nn.Linear(INPUTS, CLASSES),
            clients,
            rounds=case.rounds,
            algorithm=algorithm,
            privacy=privacy,
            engine=Secure() if case.engine == "secure" else Embedded(),
            out=Path(folder) / "run",
            key_dir=Path(folder) / "keys",
            progress=False,
            evaluate_every=case.rounds,
            callbacks=[look],
        )
    return case._asdict() | summary(memory, np.diff(clock).tolist())


def summary(memory: Sequence[int], seconds: Sequence[float]) -> dict[str, float]:
    """Compare the rounds after the first tenth with the last ones."""
    warm = max(2, round(len(memory) * WARM_UP))
    return {
        "memory_after_warm_up": memory[warm - 1],
        "memory_at_the_end": memory[-1],
        "memory_at_most": max(memory[warm - 1 :]),
        "early_round": statistics.median(seconds[warm : 2 * warm]),
        "late_round": statistics.median(seconds[-warm:]),
    }


def resident_bytes() -> int:
    """The memory that this process holds now, by Linux."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def page(entry: results.Entry) -> str:
    rows = [
        f"| {case['engine']} | {case['clients']:,} | {case['cohort']:,} | {case['rounds']} "
        f"| {case['memory_after_warm_up'] / 1e6:.1f} | {case['memory_at_most'] / 1e6:.1f} "
        f"| {case['memory_at_the_end'] / 1e6:.1f} "
        f"| {case['early_round']:.3g} | {case['late_round']:.3g} |"
        for case in entry["cases"]
    ]
    return f"""# Long runs

`benchmarks/long_run.py --write` wrote this page. {results.provenance(entry["machine"], entry["versions"])}
The load was {entry["load"]:.1f} at the end, so the seconds are rough; the memory is not affected by other programs.

Every client has {EXAMPLES} examples of {INPUTS} numbers, and the model is linear. Memory is what the process holds
(resident): after the first tenth of the rounds, at most from then on, and at the end. *Early* is the median of the
second tenth of the rounds, *late* that of the last tenth.

| engine | clients | expected cohort | rounds | MB after a tenth | MB at most | MB at the end | early, s | late, s |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
{chr(10).join(rows)}
"""


if __name__ == "__main__":
    main()
