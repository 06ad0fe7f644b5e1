"""Write docs/evidence.md from the list of promises: `python -m tests.evidence.page`."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from tests.evidence.promise import ROOT, Promise, load_promises
from tests.mutants.mutant import load_mutants

PAGE = ROOT / "docs" / "evidence.md"
HEAD = """\
# Evidence

What we promise, the tests that fail if a promise is broken, the [faults](mutants.md) that were put into the code to see
that they do, and what was measured. A number links to the page that a script wrote it into. What is not shown is said.

To check a card yourself, without trusting this code: `discreet verify`. To attack a run: `discreet audit`. Where other
libraries break a promise like these: [faults of other libraries](results/peers.md). Where papers do:
[errata](errata.md).

`python -m tests.evidence.page` writes this page from `tests/evidence/promises.toml`; `make test` checks that every
test, fault and number on it exists.
"""


def page(promises: Sequence[Promise]) -> str:
    """Return the page in Markdown."""
    return "\n".join(_lines(promises)) + "\n"


def _lines(promises: Sequence[Promise]) -> Iterator[str]:
    faults = {mutant.id: mutant.fault for mutant in load_mutants()}
    yield HEAD
    for area, group in groupby(promises, key=lambda each: each.area):
        yield from (f"## {area}", "")
        for promise in group:
            yield from (f"### {promise.says}", "")
            yield from (f"- Measured: {number.says} ([page]({number.page}))." for number in promise.numbers)
            yield from (f"- Test: {_sentence(test)} (`{test.partition('::')[0]}`)." for test in promise.tests)
            yield from (f"- Fault that a test catches: {faults[mutant]}" for mutant in promise.mutants)
            if promise.open:
                yield f"- Not shown: {promise.open}"
            yield ""


def _sentence(test: str) -> str:
    return test.rpartition("::")[2].partition("[")[0].removeprefix("test_").replace("_", " ")


if __name__ == "__main__":
    PAGE.write_text(page(load_promises()), encoding="utf-8")
