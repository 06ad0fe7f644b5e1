"""Train all runs with hostile clients (about 20 seconds), and write their table into docs/guides/poisoning.md.

python -m experiments.poisoning.reproduce          trains, stores the results and writes the table
python -m experiments.poisoning.reproduce --page   only writes the table from the stored results
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch

from experiments.common.means import mean_text
from experiments.poisoning.hostile_runs import ATTACKS, DEFENCES, HERE, HOSTILE, SEEDS, run

RESULTS = HERE / "results.jsonl"
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "poisoning.md"
BEGIN, END = "<!-- table: written by experiments/poisoning/reproduce.py -->\n", "<!-- end of the table -->\n"


def main() -> None:
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--page", action="store_true", help="only write the table")
    if not command.parse_args().page:
        torch.set_num_threads(1)
        RESULTS.write_text("".join(json.dumps(each) + "\n" for each in run_all()), encoding="utf-8")
    GUIDE.write_text(insert_table(GUIDE.read_text(encoding="utf-8"), read_results()), encoding="utf-8")
    print(f"wrote {GUIDE.name}")


def run_all() -> list[dict[str, Any]]:
    """Train every defence under every attack, with every number of hostile clients and every seed."""
    cells = [(defence, attack, hostile) for defence in DEFENCES for attack in ATTACKS for hostile in HOSTILE]
    return [run(defence, attack, hostile, seed) for defence, attack, hostile in cells for seed in SEEDS]


def read_results() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]


def insert_table(page: str, results: list[dict[str, Any]]) -> str:
    """Return the page with the table of these results between its two marks."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + "\n" + table(results) + "\n" + END + rest.split(END)[1]


def table(results: list[dict[str, Any]]) -> str:
    columns = [("none hostile", ATTACKS[0], 0)]
    columns += [(f"{hostile} hostile, {attack}", attack, hostile) for attack in ATTACKS for hostile in HOSTILE[1:]]
    lines = ["| server | " + " | ".join(name for name, _, _ in columns) + " |", "|---" + "|---:" * len(columns) + "|"]
    for defence in DEFENCES:
        cells = [mean_text(accuracies(results, defence.name, attack, hostile), 1) for _, attack, hostile in columns]
        lines.append(f"| {defence.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def accuracies(results: list[dict[str, Any]], defence: str, attack: str, hostile: int) -> list[float]:
    """Return the accuracies of one cell in percent, one for each seed."""
    wanted = (defence, attack, hostile)
    return [100 * each["accuracy"] for each in results if (each["defence"], each["attack"], each["hostile"]) == wanted]


if __name__ == "__main__":
    main()
