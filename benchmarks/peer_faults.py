"""Known faults of other libraries, measured with the installed versions: `peers/` has one small program for each."""

import argparse
import importlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from datetime import date
from importlib.metadata import version
from pathlib import Path

from peers.fault import Fault
from results import machine

PAGE = Path(__file__).parents[1] / "docs" / "results" / "peers.md"
PROGRAMS = (
    "flower_weighted_average",
    "flower_adaptive_clip",
    "flower_update_norms",
    "flower_mask_seeds",
    "dp_accounting_counts",
    "opacus_accounting",
    "jax_privacy_audit",
)
INTRODUCTION = """# Faults of other libraries

We build on these libraries and learn from them; each fault below is one that we could have made, and a test here holds
it off. They are listed so that readers can repeat them, and so that users of these libraries can avoid them. A fault
that a new version has mended leaves this page with the next run. Reports to the authors are welcome; please send them
the program, which is a few lines long.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the faults as one list")
    parser.add_argument("--write", action="store_true", help="also write docs/results/peers.md anew")
    parser.add_argument("--only", choices=PROGRAMS, help="run one program")
    options = parser.parse_args()
    faults = list(measure([options.only] if options.only else PROGRAMS))
    if options.write:
        PAGE.write_text(page(faults), encoding="utf-8")
    print(json.dumps([asdict(each) for each in faults], indent=2) if options.json else page(faults))


def measure(programs: Iterable[str]) -> Iterable[Fault]:
    """Run the programs, one after the other."""
    for name in programs:
        found = importlib.import_module(f"peers.{name}").measure()
        yield from [found] if isinstance(found, Fault) else found


def page(faults: list[Fault]) -> str:
    """Return the page in Markdown: the faults that were seen, then those that this version no longer has."""
    seen, mended = ([each for each in faults if bool(each.is_seen) == is_seen] for is_seen in (True, False))
    lines = [INTRODUCTION]
    for library in dict.fromkeys(each.library for each in seen):
        lines.append(f"## {library} {version(library)}\n")
        for each in seen:
            if each.library == library:
                lines += [f"### {each.title}\n", "| expected | measured |", "|---|---|"]
                lines += [f"| {each.expected} | {each.measured} |\n", f"{each.remark}\n", f"*Here:* {each.ours}\n"]
    if mended:
        lines.append("## No longer there\n")
        lines += [f"- {each.library} {each.version}: {each.title} Now: {each.measured}." for each in mended] + [""]
    command = "`.venv-bench/bin/python benchmarks/peer_faults.py --write` (`make bench` makes the environment)"
    lines.append(f"Measured on {date.today().isoformat()}, {machine()}. Written by {command}.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
