"""Write docs/mutants.md from the mutants themselves."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from tests.mutants.mutant import ROOT, Mutant

PAGE = ROOT / "docs" / "mutants.md"
AREAS = {
    "accounting": "Accounting: what is run and what is counted",
    "clipping": "Clipping and weights: how much one client or example can move",
    "deployment": "Deployment: what a client's own node refuses",
    "lattice": "Lattice: rounding and rings",
    "ledger": "Ledger: what was spent",
    "loop": "The loop: reserving, committing, resuming",
    "noise": "Noise: how much, and whether it is added",
    "numerics": "Numerics: what floating point can do to a sensitivity",
    "reuse": "Noise that is drawn twice",
    "sampling": "Sampling: who joins, and how much that amplifies",
    "secure_sums": "Secure sums: masks, shares, signatures",
    "selection": "Searches: the best of several trials, and their scores",
    "streams": "Streams: names and keys of randomness",
}
HEAD = """\
# Mutants

Each line is a fault that would make a guarantee untrue. It is stored as a small patch in `tests/mutants/`, together
with the test that detects it. `make mutants` puts each fault into a copy of the package and checks that its test fails
by an assertion or a refusal, and not because something else broke. It prints how many of the {count} were caught, and
fails unless all were.

`make test` checks that every patch still fits the code. If you move code, update the patch; if you write privacy code,
add the fault that its test detects. `python -m tests.mutants.run --page` writes this page.
"""


def page(mutants: Sequence[Mutant]) -> str:
    return "\n".join(_lines(mutants)) + "\n"


def _lines(mutants: Sequence[Mutant]) -> Iterator[str]:
    yield HEAD.format(count=len(mutants))
    for area, group in groupby(mutants, key=lambda each: each.area):
        yield from (f"## {AREAS[area]}", "", "| fault | where | the test that fails |", "|---|---|---|")
        for mutant in group:
            test = mutant.test.rpartition("::")[2].partition("[")[0].removeprefix("test_").replace("_", " ")
            yield f"| {mutant.fault} | `{mutant.file}` | {test} |"
        yield ""
