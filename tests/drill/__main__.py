"""`python -m tests.drill`: kill real processes of a deployment, let its network, disks, clocks and memory fail, and
write what happened as JSON lines and as a page."""

import argparse
import signal
import sys
import time
from pathlib import Path

from tests.drill.fault_drill import FaultDrill
from tests.drill.faults import FAULTS
from tests.drill.kill_drill import KillDrill
from tests.drill.kills import kills_left, plan_kills
from tests.drill.page import write_page
from tests.drill.results import Results, read_results
from tests.drill.run_check import SCHEMES

DOCS = Path(__file__).parents[2] / "docs"
KINDS = ("kills", "faults")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.drill", description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="kills for each scheme")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scheme", choices=tuple(SCHEMES), help="updates in clear, or secure sums")
    parser.add_argument("--kind", choices=KINDS, help="only kills, or only other faults")
    parser.add_argument("--faults", default="", help="only faults whose name contains this")
    parser.add_argument("--shard", type=int, nargs=2, default=(0, 1), metavar=("AT", "OF"), help="kills AT, AT + OF, …")
    parser.add_argument("--minutes", type=float, default=600.0, help="begin nothing after so many minutes")
    parser.add_argument("--results", type=Path, default=DOCS / "results" / "drill", help="folder of the results")
    parser.add_argument("--page", action="store_true", help="only write docs/reliability.md from the results")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))  # so that no process is left
    options.results.mkdir(parents=True, exist_ok=True)
    done = [] if options.page else [carry_out(options, scheme, kind) for scheme in SCHEMES for kind in KINDS]
    well = all(done)
    write_page(read_results(options.results), DOCS)
    return 0 if well else 1


def carry_out(options: argparse.Namespace, scheme: str, kind: str) -> bool:
    """Carry out what these results don't have yet. Returns whether all was well."""
    if options.scheme not in (scheme, None) or options.kind not in (kind, None):
        return True
    until, (at, of) = time.time() + options.minutes * 60, options.shard
    done = [row for row in read_results(options.results) if row["scheme"] == scheme]
    results = Results(options.results / f"{scheme}-{kind}-{at}.jsonl", scheme)
    if kind == "kills":
        kills = kills_left(plan_kills(options.seed, options.count), [row for row in done if row["kind"] == "kill"])
        KillDrill(results, until).carry_out(kills[at::of])
    else:
        seen = {row.get("fault") for row in done}
        FaultDrill(results, until).carry_out(
            [each for each in FAULTS if each.name not in seen and options.faults in each.name]
        )
    return results.well


if __name__ == "__main__":
    sys.exit(main())
