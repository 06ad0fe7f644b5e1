"""Write docs/reliability.md from the results of a drill."""

from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

HEAD = (
    "# Reliability: what a kill costs\n\n"
    "Written by `python -m tests.drill`; `make drill` carries out the whole drill and writes this page again. It kills "
    "real processes of a deployment on one machine by `kill -9`, with three clients, and then only starts again what "
    "has ended, by the documented commands. A kill counts as ended when the run has recorded two new rounds (the last "
    "with all clients, if a client was killed) or is finished. Seconds include the start of processes, on a machine "
    "that had other work. Not tried here: a slow or cut network, a full or read-only disk, clocks that jump, and "
    "memory that runs out.\n"
)


def write_page(rows: list[dict[str, Any]], docs: Path) -> None:
    kills = [row for row in rows if row["kind"] == "kill"]
    runs = [row for row in rows if row["kind"] == "run" and "updates" in row]
    groups = defaultdict(list)
    for row in kills:
        groups[row["scheme"], row["victim"], row["point"]].append(row)
    ended = [row for row in kills if row["well"]]
    equal = [row["equal"] for row in runs if row["equal"] is not None]
    text = [
        HEAD,
        f"{len(ended)} of {len(kills)} kills ended; the whole drill has 200. {len(runs)} runs were "
        "checked to their end, with "
        f"{sum(row['updates'] for row in runs)} updates: {sum(len(row['under_counts']) for row in runs)} were "
        f"under-counted. {sum(equal)} of {len(equal)} plain runs that had all clients in every round equal the "
        "unbroken run bit for bit. Plain runs that missed a client in a round, and secure sums, are not compared.\n",
        "| updates | process | moment | kills | ended | seconds, median | longest | rounds lost |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (scheme, victim, point), found in sorted(groups.items()):
        times = [row["seconds"] for row in found if row["seconds"] is not None]
        shown = f"{median(times):.0f} | {max(times):.0f}" if times else "– | –"
        text.append(
            f"| {scheme} | {victim} | {point} | {len(found)} | {sum(row['well'] for row in found)} | {shown} | "
            f"{sum(row['lost'] for row in found)} |"
        )
    (docs / "reliability.md").write_text("\n".join(text) + "\n")
