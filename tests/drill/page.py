"""Write docs/reliability.md from the results of a drill."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any

from tests.drill.faults import FAULTS
from tests.drill.results import FAULT_RUN, Row
from tests.drill.run_check import SCHEMES

PLANNED = 200  # kills
HEAD = """\
# Reliability: what a kill or a fault costs

Written by `python -m tests.drill` from `docs/results/drill/`; `make drill` carries out the whole drill and writes this
page again. It runs deployments on one machine, each with a server and three nodes, with updates in clear ("plain") and
with secure sums ("secure"). It kills their processes by `kill -9`, and lets network, disks, clocks and memory fail.
Then it only starts again what has ended, by the documented commands.

Up to four kills come one after the other, each further one while the run recovers from those before. They count as
ended when the run has recorded two new rounds since the last of them, the second with all clients if a client was
killed, or when the run is finished; so does a fault, always with all clients. Each run then goes on to its end and is
checked: every update that a node made must have a reservation in that node's ledger and in the server's, and a plain
run in which no client missed a round must equal the unbroken run bit for bit. Runs that missed a client, and secure
sums, whose masks are random, are not compared.

Seconds are from the last kill, or from the end of the fault, and include the start of processes: on two cores, whose
load was between {low:.1f} and {high:.1f}. Flower 1.41 starts a run's process again if it has not reported within 30 s:
on a machine so busy that starting takes longer, a run begins only when it is less busy.
"""
KILL_TEXT = """\

## Kills

The run's process, the SuperLink, the executor and the server are killed while the run's process or a node is held at a
named point, or at random moments; a node's process at its own points. Creation is the creation of a run: its process is
held before each change of a file.
"""
FAULT_TEXT = """\

## Network, disks, clocks and memory

Nodes reach the server through a proxy on loopback. Server and one node each have a small disk, which is filled; a
read-only folder refuses also root; a preloaded library shifts the clock of the server's processes or of one node; and
memory is asked for that no machine has. Rounds are those that the run recorded during the fault.
"""


def write_page(rows: list[Row], docs: Path) -> None:
    kills, faults = _of_kind(rows, "kill"), _of_kind(rows, "fault")
    runs = [row for row in _of_kind(rows, "run") if "updates" in row]
    loads = [row["load"] for row in (*kills, *faults)] or [0.0]
    text = [HEAD.format(low=min(loads), high=max(loads)), *_summary(kills, faults, runs)]
    text += [KILL_TEXT, *_kill_table(kills)]
    if faults:
        equal = {(row["scheme"], row["run"]): row["equal"] for row in runs if row["run"].startswith(FAULT_RUN)}
        text += [FAULT_TEXT, *_fault_table(faults, equal)]
    (docs / "reliability.md").write_text("\n".join(text) + "\n")


def _of_kind(rows: list[Row], kind: str) -> list[Row]:
    return [row for row in rows if row["kind"] == kind]


def _summary(kills: list[Row], faults: list[Row], runs: list[Row]) -> list[str]:
    ended, survived = sum(row["well"] for row in kills), sum(row["well"] for row in faults)
    by_scheme = Counter(row["scheme"] for row in kills)
    equal = [row["equal"] for row in runs if row["equal"] is not None]
    updates, under = sum(row["updates"] for row in runs), sum(len(row["under_counts"]) for row in runs)
    codes = Counter(row.get("code", "unknown")[:9] for row in [*kills, *faults])
    missing = max(0, PLANNED - len(kills))
    return [
        f"- Kills: {ended} of {len(kills)} ended ({by_scheme['plain']} plain, {by_scheme['secure']} secure). The whole "
        f"drill has {PLANNED}{f'; {missing} were not made yet' if missing else ''}.",
        f"- Other faults: {survived} of {len(faults)} ended. The whole drill has {len(SCHEMES) * len(FAULTS)}.",
        f"- Updates: {updates} in {len(runs)} runs were checked against the ledgers; {under} were under-counted.",
        f"- Plain runs that had all clients in every round: {sum(equal)} of {len(equal)} equal the unbroken run bit "
        "for bit.",
        f"- Code: {', '.join(f'{commit} ({count})' for commit, count in codes.items())}.",
    ]


def _kill_table(kills: list[Row]) -> list[str]:
    groups = _group(kills, lambda row: (row["victim"], row["point"]))
    lines = [
        "| process | moment | kills | ended | plain: seconds, median | longest | secure: seconds, median | longest "
        "| rounds lost |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (victim, point), found in sorted(groups.items()):
        times = " | ".join(_seconds(row for row in found if row["scheme"] == scheme) for scheme in ("plain", "secure"))
        lost = sum(row["lost"] for row in found)
        lines.append(f"| {victim} | {point} | {len(found)} | {sum(row['well'] for row in found)} | {times} | {lost} |")
    return lines


def _seconds(rows: Iterable[Row]) -> str:
    times = [row["seconds"] for row in rows if row["seconds"] is not None]
    return f"{median(times):.0f} | {max(times):.0f}" if times else "– | –"


def _fault_table(faults: list[Row], equal_runs: dict[tuple[str, str], bool | None]) -> list[str]:
    lines = [
        "| fault | updates | ended | seconds | rounds during it | rounds lost | equal to the unbroken run "
        "| what operator and owners read |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(faults, key=lambda row: (row["fault"], row["scheme"])):
        seconds = "–" if row["seconds"] is None else f"{row['seconds']:.0f}"
        words = " ".join(f"“{error.removeprefix('Error: ')}”" for error in row["errors"]) or "nothing"
        ended = "yes" if row["well"] else "no"
        equal = {True: "yes", False: "no", None: "not compared"}[equal_runs.get((row["scheme"], row["run"]))]
        cells = (row["fault"], row["scheme"], ended, seconds, row["rounds_during"], row["lost"], equal, words)
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def _group(rows: list[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    groups = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups
