"""The page docs/results/round_tests.md."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.round_tests.cases import EFFORT

PAGE = Path(__file__).parents[2] / "docs" / "results" / "round_tests.md"
HEAD = """# One round of every private recipe, attacked

`python -m experiments.round_tests.reproduce` plays one round of each recipe on a toy task of two to four parameters,
{repetitions:,} times on each of two neighbouring data sets that it has searched for, and compares what the observer
sees with what is certified (`discreet.audit.round_tester.attack_round`). A measured number is a lower bound; the
probability that any bound of a recipe is too large is 1e-6 (Clopper and Pearson, all tests together). A bound below
the certified number proves nothing; one above it would prove a fault. A search tries {candidates} pairs of data sets.
For Theorem 4.6 these did not contain the pair that matters: there it tries forty, and changes the best of them twice.

- **ε** is at δ = {delta:g}. With this many repetitions a measured ε stays well below the true one: what happens in one
  of 10,000 rounds is hardly seen.
- **Advantage** is the largest P(S) − Q(S) over sets S of observations, which can be measured closely. Where the
  measured one is near the claimed one, the analysis of a round is tight.

{count} claims were tested, all of them certified but that of Theorem 4.6; {violated}.

| algorithm | unit | view | sees | claimed ε | measured ε | claimed advantage | measured advantage | |
|---|---|---|---|---:|---:|---:|---:|---|
"""


def write_page(lines: Sequence[dict[str, Any]]) -> None:
    """Write the page from the lines of all results."""
    PAGE.write_text(format_page(lines))


def format_page(lines: Sequence[dict[str, Any]]) -> str:
    """Return the page's text."""
    wrong = sorted({line["case"] for line in lines if line["violated"]})
    head = HEAD.format(
        repetitions=lines[0]["repetitions"],
        delta=lines[0]["delta"],
        candidates=EFFORT.candidates,
        count=len(lines),
        violated=f"contradicted: {'; '.join(wrong)}" if wrong else "none was contradicted",
    )
    return head + "".join(f"{_row(line)}\n" for line in lines) + _neighbours(lines)


def _row(line: dict[str, Any]) -> str:
    unit = line["unit"] if isinstance(line["unit"], str) else "person"
    claimed = line["claimed_epsilon"], line["lower_bound"], line["claimed_advantage"], line["advantage"]
    numbers = " | ".join(f"{number:.3f}" for number in claimed)
    verdict = "**contradicted**" if line["violated"] else "holds"
    return f"| {line['case']} | {unit} | {line['view']} | {line['sees']} | {numbers} | {verdict} |"


def _neighbours(lines: Sequence[dict[str, Any]]) -> str:
    """Return a section with the neighbours that contradict a claim."""
    found = [line for line in lines if line["violated"]]
    if not found:
        return ""
    rows = "".join(f"- {line['case']}: {line['neighbours']}.\n" for line in found)
    return f"\nThe neighbours that contradict a claim, as the search found them:\n\n{rows}"
