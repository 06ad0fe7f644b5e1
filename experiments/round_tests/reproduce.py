"""Attack one round of every private recipe, and write docs/results/round_tests.md.

python -m experiments.round_tests.reproduce            # attacks what results.jsonl lacks, then writes the page
python -m experiments.round_tests.reproduce --page     # only writes the page
"""

import argparse
import json
import sys
from pathlib import Path

import torch

from discreet.audit.round_tester import attack_round
from experiments.round_tests.cases import Case, list_cases
from experiments.round_tests.page import write_page

RESULTS = Path(__file__).parent / "results.jsonl"
SEED = 11


def attack(case: Case) -> list[dict[str, object]]:
    """Attack all claims of a case, and return a line for each."""
    found = attack_round(
        case.algorithm,
        population=case.population,
        task=case.task,
        claims=case.claims,
        unit=case.unit,
        effort=case.effort,
        seed=SEED,
    )
    return [{"case": case.name} | each.as_json() for each in found]


def read_results() -> dict[str, list[dict[str, object]]]:
    """Return the stored lines by case."""
    lines: dict[str, list[dict[str, object]]] = {}
    for line in RESULTS.read_text().splitlines() if RESULTS.exists() else ():
        stored = json.loads(line)
        lines.setdefault(stored["case"], []).append(stored)
    return lines


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="Attack one round of every private recipe.")
    parser.add_argument("--page", action="store_true", help="Only write the page from the stored results")
    asked = parser.parse_args(arguments)
    torch.set_num_threads(1)
    cases, stored = list_cases(), read_results()
    for case in () if asked.page else cases:
        if case.name in stored:
            continue
        lines = attack(case)
        with RESULTS.open("a") as file:
            file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        print(f"{case.name}: {', '.join('violated' if line['violated'] else 'holds' for line in lines)}", flush=True)
    stored = read_results()
    write_page([line for case in cases for line in stored.get(case.name, [])])


if __name__ == "__main__":
    main(sys.argv[1:])
