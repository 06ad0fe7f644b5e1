"""Give random cards of our accountants to the checker, and write docs/results/verify.md. Run again, it continues.

python -m experiments.verify.reproduce                # 1,000 cards, about half an hour on one core, then the page
python -m experiments.verify.reproduce --cards 100    # fewer
python -m experiments.verify.reproduce --page         # the page alone, from all results
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.code_version import read_code_version
from discreet.verify.card_check import check_card
from discreet.verify.card_reader import Card
from experiments.verify.random_cards import KINDS, certify, draw_card

HERE = Path(__file__).parent
RESULTS = HERE / "results.jsonl"
PAGE = HERE.parents[1] / "docs" / "results" / "verify.md"
LOWERED = 0.999
PAGE_TEXT = """# The checker on random cards

`python -m experiments.verify.reproduce`, with the code of commit {commit}, on one core of a shared machine.

{count} cards of our accountants, of {kinds} kinds: sampling rates from 1e-4 to 1 and noise multipliers from 0.3 to 10,
both on a logarithmic scale, 1 to 100,000 releases, δ from 1e-10 to 1e-3. Each was given to the checker as it is, and
again with its ε lowered by 0.1 %. {zeros} cards have ε = 0, which can't be lowered.

| kind | cards | proved | refuted | can't tell | lowered: proved | refuted | can't tell | δ to spare | slowest, s |
|---|---|---|---|---|---|---|---|---|---|
{rows}

Of integer noise (Skellam, discrete Gaussians) only bounds from above are known, so that its cards can't be refuted.
"δ to spare" is the median of 1 − (upper bound of δ(ε))/δ: what the accountant leaves on the table, less what the
checker's own lattice adds. The seconds are CPU time of one check of a card as it is, in both directions. With a lowered
ε the slowest took {lowered:.1f} s, since where nothing can be told the finest lattice is tried.

## Cards that are still proved at a lower ε

Where the checker proves an ε that is 0.1 % smaller, the accountant is loose by that much.

{loose}
"""


def check_seed(seed: int) -> dict[str, Any]:
    """Check one card as it is and with its ε lowered."""
    drawn = draw_card(seed)
    card = certify(drawn)
    lowered = replace(card, epsilon=card.epsilon * LOWERED)
    return {
        "seed": seed,
        "kind": drawn.kind,
        "epsilon": card.epsilon,
        "delta": card.delta,
        **_check("card", card),
        **_check("lowered", lowered),
    }


def _check(name: str, card: Card) -> dict[str, Any]:
    start = time.process_time()
    verdict = check_card(card)
    low, high = verdict.enclosure.low / card.delta, verdict.enclosure.high / card.delta
    seconds = time.process_time() - start
    return {name: verdict.word, f"{name}_low": low, f"{name}_high": high, f"{name}_seconds": seconds}


def make_results(cards: int) -> None:
    """Check every card that is not there yet."""
    there = {result["seed"] for result in read_results()}
    with RESULTS.open("a", encoding="utf-8") as file:
        for seed in range(cards):
            if seed not in there:
                file.write(json.dumps(check_seed(seed)) + "\n")
                file.flush()


def read_results() -> list[dict[str, Any]]:
    """Return the results that are there, by their seeds."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    return sorted(map(json.loads, lines), key=lambda result: int(result["seed"]))


def page_text(results: list[dict[str, Any]]) -> str:
    """Return the page of these results."""
    words = ("proved", "refuted", "unknown")
    rows = []
    for kind in (*KINDS, "all"):
        chosen = [result for result in results if kind in (result["kind"], "all")]
        if chosen:
            cards = [sum(r["card"] == word for r in chosen) for word in words]
            lowered = [sum(r["lowered"] == word for r in chosen if r["epsilon"] > 0) for word in words]
            median = sorted(1 - r["card_high"] for r in chosen)[len(chosen) // 2]
            slowest = max(r["card_seconds"] for r in chosen)
            numbers = (len(chosen), *cards, *lowered, f"{median:.1e}", f"{slowest:.1f}")
            rows.append(f"| {kind} | {' | '.join(map(str, numbers))} |")
    loose = [r for r in results if r["lowered"] == "proved" and r["epsilon"] > 0]
    notes = [
        f"- seed {r['seed']} ({r['kind']}): ε = {r['epsilon']:.6g} at δ = {r['delta']:.3g}; at 0.999·ε the checker "
        f"still proves {r['lowered_high']:.6f}·δ."
        for r in loose
    ]
    commit = (read_code_version().commit or "unknown")[:9]
    zeros = sum(r["epsilon"] == 0 for r in results)
    return PAGE_TEXT.format(
        count=len(results),
        kinds=len(KINDS),
        zeros=zeros,
        lowered=max(r["lowered_seconds"] for r in results),
        commit=commit,
        rows="\n".join(rows),
        loose="\n".join(notes) or "None.",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cards", type=int, default=1000)
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    if not options.page:
        make_results(options.cards)
    PAGE.write_text(page_text(read_results()), encoding="utf-8")


if __name__ == "__main__":
    main()
