"""How far the reported ε is above the true one, at random events: writes docs/results/accounting_points.md."""

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from results import machine, versions

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "accounting_points.md"
PARTS, POINTS, FIRST_SEED = 20, 50, 100  # the points of tests/privacy/test_reference_points.py
SHARES = (0.5, 0.9, 0.99, 1.0)
LOOSEST = 8

if TYPE_CHECKING:
    from tests.privacy.reference_points import Measurement


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="also write docs/results/accounting_points.md anew")
    parser.add_argument("--parts", type=int, default=PARTS, help=f"of {POINTS} points each ({PARTS})")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from tests.privacy.reference_points import measure, random_points

    start = time.process_time()
    found = [measure(point) for part in range(options.parts) for point in random_points(POINTS, FIRST_SEED + part)]
    text = page(found, time.process_time() - start)
    if options.write:
        PAGE.write_text(text, encoding="utf-8")
    print(text)


def page(found: "list[Measurement]", seconds: float) -> str:
    low = sum(each.is_low for each in found)
    uncertain = sum(not each.is_certain for each in found)
    lines = [
        "# How tight the accounting is",
        "",
        f"Written by `benchmarks/accounting_points.py --write` in {seconds / 60:.0f} minutes of one core.",
        f"Machine: {machine()}. Versions: {', '.join(f'{k} {v}' for k, v in versions('discreet', 'numpy').items())}.",
        "",
        f"{len(found):,} random events: rates from 1e-7 to 1, noise from 0.4 to 30, 1 to 10¹² steps. "
        "Each has a reference that shares no code with the accountants: the moment generating function of the privacy "
        "loss, inverted along a vertical line (`tests/privacy/loss_inversion.py`), with an estimate of its own error.",
        "",
        f"- Below the reference by more than its error: **{low}**.",
        f"- References that are known to less than a thousandth of ε: {uncertain}.",
        f"- Above the reference by more than a thousandth: {sum(each.excess > 1e-3 for each in found)}.",
        "",
        "The excess over the reference, as a share of ε; negative values are within the reference's error:",
        "",
        "| events | points | " + " | ".join(_share_name(share) for share in SHARES) + " |",
        "|---|---:|" + "---:|" * len(SHARES),
    ]
    kinds = dict.fromkeys(each.point.kind for each in found)
    for kind in [*kinds, "all"]:
        excess = sorted(each.excess for each in found if kind in (each.point.kind, "all"))
        values = [excess[min(len(excess) - 1, int(share * len(excess)))] for share in SHARES]
        lines.append(
            f"| {kind.replace('_', ' ')} | {len(excess)} | " + " | ".join(f"{value:.1e}" for value in values) + " |"
        )
    lines += [
        "",
        "The loosest:",
        "",
        "| event | δ | reported ε | reference | excess |",
        "|---|---:|---:|---:|---:|",
    ]
    for each in sorted(found, key=lambda each: -each.excess)[:LOOSEST]:
        lines.append(
            f"| {describe(each)} | {each.point.delta:g} | {each.reported:.5g} | {each.reference.epsilon:.5g} "
            f"| {each.excess:.1e} |"
        )
    lines += [
        "",
        "What is left is due to the largest grids: rare losses that are thousands of times as large as ε, or more than "
        "10¹⁰ steps, need more points than they have.",
        "",
    ]
    return "\n".join(lines)


def describe(each: "Measurement") -> str:
    from discreet.privacy.wording import describe_event

    return f"{describe_event(each.point.event)} ({each.point.relation})"


def _share_name(share: float) -> str:
    return "largest" if share == 1 else "median" if share == 0.5 else f"{share:.0%} below"


if __name__ == "__main__":
    main()
