"""Fuzz every parser with fresh inputs for some minutes, and keep those that made one fail.

`python -m tests.fuzz.run --minutes 10`, or `make fuzz MINUTES=10`. `--only NAME` fuzzes one parser.
"""

import argparse
import random
import sys
import time
from collections import Counter

from tests.fuzz.attempts import find_fault
from tests.fuzz.corpus_files import keep_input, kept_inputs
from tests.fuzz.mutations import apply_edits, draw_edits
from tests.fuzz.parsers import PARSERS

BATCH = 20  # inputs for one parser before the next has its turn


def main() -> int:
    """Fuzz, print what was found, and return 1 if anything was."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--minutes", type=float, default=10.0)
    arguments.add_argument("--seed", type=int, default=None, help="makes the inputs those of another time")
    arguments.add_argument("--only", choices=sorted(PARSERS), action="append")
    chosen = arguments.parse_args()
    source = random.Random(chosen.seed)
    end = time.monotonic() + 60 * chosen.minutes
    tried: Counter[str] = Counter()
    faults: dict[str, str] = {}
    while time.monotonic() < end:
        for parser in chosen.only or PARSERS:
            seeds = [path.read_bytes() for path in kept_inputs(parser)]
            for _ in range(BATCH):
                content = apply_edits(source.choice(seeds), draw_edits(source))
                tried[parser] += 1
                fault = find_fault(parser, content)
                kind = f"{parser}: {fault.partition(': ')[0]}"
                if fault and kind not in faults:
                    faults[kind] = f"{fault}\n  kept as {keep_input(parser, content)}"
                    sys.stdout.write(f"{parser}: {faults[kind]}\n")
    sys.stdout.write(f"{tried.total():,} inputs for {len(tried)} parsers; {len(faults)} kinds of faults.\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
