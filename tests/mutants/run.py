"""Put every mutant into a copy of the package and check that its test fails: `make mutants`."""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.mutants.mutant import PACKAGE, Mutant, load_mutants
from tests.mutants.page import PAGE, page
from tests.mutants.play import MutantResult, play, run_tests

BASELINE_SECONDS = 900.0


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    mutants = load_mutants()
    if asked.page:
        PAGE.write_text(page(mutants), encoding="utf-8")
        return 0
    if unknown := set(asked.only or ()) - {each.id for each in mutants}:
        return _say(f"No mutants are called {', '.join(sorted(unknown))}; --list names those there are.", code=2)
    chosen = [each for each in mutants if not asked.only or each.id in asked.only]
    if asked.list:
        return _say("\n".join(f"{each.id:<44} {each.test}" for each in chosen))
    began = time.perf_counter()
    if failing := failing_without_fault(chosen, asked.jobs):
        return _say(f"These tests must pass on the code as it is, before any fault is tried:\n{failing}", code=1)
    with ThreadPoolExecutor(asked.jobs) as pool:
        played = list(_print_each(pool.map(play, chosen), quiet=asked.json))
    return _report(played, time.perf_counter() - began, as_json=asked.json)


def failing_without_fault(mutants: Iterable[Mutant], jobs: int) -> str:
    """Return pytest's output if a named test fails or is missing on the unchanged code, else an empty string."""
    tests = sorted({each.test for each in mutants})
    code, output = run_tests(tests, PACKAGE.parent, "-n", str(jobs), timeout=BASELINE_SECONDS)
    if code not in (0, 1):  # several processes do not report which test is missing
        _, output = run_tests(tests, PACKAGE.parent, "-n", "0", "--collect-only")
    return "" if code == 0 else output[-4000:]


def _print_each(played: Iterable[MutantResult], *, quiet: bool) -> Iterable[MutantResult]:
    for each in played:
        if not quiet:
            why = f"\n    {each.why}" if each.why else ""
            _say(f"{each.outcome:<16}{each.seconds:5.1f} s  {each.mutant.id}{why}")
        yield each


def _report(played: Sequence[MutantResult], seconds: float, *, as_json: bool) -> int:
    counts = Counter(each.outcome for each in played)
    if as_json:
        rows = [
            {"id": each.mutant.id, "test": each.mutant.test, "outcome": each.outcome, "seconds": each.seconds}
            for each in played
        ]
        _say(json.dumps({"caught": counts["caught"], "of": len(played), "seconds": seconds, "mutants": rows}, indent=1))
    else:
        others = [f"{count} {outcome}" for outcome, count in counts.items() if outcome != "caught"]
        _say(f"{counts['caught']} of {len(played)} caught in {seconds:.0f} s" + "".join(f", {each}" for each in others))
    return 0 if counts["caught"] == len(played) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.run", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="ID", help="try these mutants alone")
    parser.add_argument("--list", action="store_true", help="name the mutants and their tests, and try none")
    parser.add_argument("--jobs", type=int, default=2, help="how many to try at a time (default: 2)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--page", action="store_true", help="write docs/mutants.md, and try none")
    return parser


def _say(text: str, code: int = 0) -> int:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    sys.exit(main())
