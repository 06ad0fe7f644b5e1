"""The paper's claims about privacy, utility and rate, and ours about clients who differ, held against what was run."""

from collections.abc import Iterator
from itertools import pairwise

from experiments.common.means import Mean, gap_text, is_clear, mean, mean_text, paired_difference
from experiments.common.verdicts import Verdict
from experiments.tradeoffs import accountants
from experiments.tradeoffs.points import EPSILONS, PROMISES
from experiments.tradeoffs.row_results import BySeed, RowResults

CLIPPINGS = ("example", "minibatch")


def verdicts(measured: RowResults) -> Iterator[Verdict]:
    for clipping in CLIPPINGS:
        rows = {epsilon: measured.row("alike", f"{clipping} {epsilon:g}") for epsilon in EPSILONS}
        yield utility(clipping, {epsilon: row.accuracy for epsilon, row in rows.items()})
        yield loss(clipping, {epsilon: row.loss for epsilon, row in rows.items()})
    for clipping in CLIPPINGS:
        yield rate(measured, clipping)
    yield coarse_rounding(measured)
    yield clip(measured)
    yield accountant_order()
    yield from promises(measured)
    yield departure(measured)


def utility(clipping: str, accuracy: dict[float, BySeed]) -> Verdict:
    """Whether each step down in ε costs accuracy; by ε, from the smallest."""
    return _verdict_by_epsilon(
        f"Does utility fall with ε, by accuracy ({clipping} clipping)?", accuracy, 2, " points", sign=1
    )


def loss(clipping: str, losses: dict[float, BySeed]) -> Verdict:
    return _verdict_by_epsilon(
        f"And by test loss, the inverse of whose excess is the paper's utility ({clipping})?", losses, 3, "", sign=-1
    )


def _verdict_by_epsilon(claim: str, by: dict[float, BySeed], digits: int, unit: str, sign: int) -> Verdict:
    """`sign` is 1 where less privacy should give more of it."""
    steps = {(low, high): paired_difference(by[low], by[high]) for low, high in pairwise(by)}
    first, last = min(by), max(by)
    ends = paired_difference(by[first], by[last])
    back = [pair for pair, gap in steps.items() if sign * gap.value <= 0]
    unclear = [pair for pair, gap in steps.items() if pair not in back and not is_clear(gap)]
    if not (sign * ends.value > 0 and is_clear(ends)):
        verdict = "Does not hold"
    else:
        verdict = "Holds" if not back else "Holds from end to end, not in every step"
    evidence = (
        f"{mean_text(list(by[last].values()), digits)} at ε = {last:g}, {mean_text(list(by[first].values()), digits)} "
        f"at ε = {first:g}: {gap_text(ends, digits)}{unit}."
    )
    evidence += f" The wrong way: {_pairs(back)}." if back else " Every step goes the same way."
    evidence += f" Not clear by themselves: {_pairs(unclear)}." if unclear else ""
    return Verdict(claim, verdict, evidence)


def rate(measured: RowResults, clipping: str) -> Verdict:
    """Whether the bound and the code that was measured both shorten with every step up in ε."""
    minibatch = clipping == "minibatch"
    found = {epsilon: measured.plan("alike", f"{clipping} {epsilon:g}") for epsilon in EPSILONS}
    bounds = {epsilon: plan.uploads(minibatch)[0].max_bits() for epsilon, plan in found.items()}
    codes = {epsilon: mean(list(plan.code.values())).value for epsilon, plan in found.items()}
    holds = all(by[low] > by[high] for by in (bounds, codes) for low, high in pairwise(EPSILONS))
    sent = {each["sent"] for plan in found.values() for each in plan.lines}
    first, last = EPSILONS[0], EPSILONS[-1]
    evidence = (
        f"At most {bounds[last]:.2f} bits a coordinate at ε = {last:g} and {bounds[first]:.2f} at ε = {first:g}; in a "
        f"code for the first round's uploads {codes[last]:.2f} and {codes[first]:.2f}. What is really sent is "
        f"{' or '.join(f'{each:g}' for each in sorted(sent))} bits at every ε: single-precision numbers, in no code."
    )
    return Verdict(f"Does the rate rise as ε falls ({clipping} clipping)?", _yes(holds), evidence)


def coarse_rounding(measured: RowResults) -> Verdict:
    """Check the bound where numbers are rounded as coarsely as they are noisy."""
    uploads = {epsilon: measured.plan("alike", f"example {epsilon:g}").uploads()[0] for epsilon in EPSILONS}
    bounds = {epsilon: upload.max_bits(step=upload.deviation) for epsilon, upload in uploads.items()}
    holds = all(bounds[low] > bounds[high] for low, high in pairwise(EPSILONS))
    first, last = EPSILONS[0], EPSILONS[-1]
    evidence = (
        f"At most {bounds[last]:.2f} bits at ε = {last:g} and {bounds[first]:.2f} at ε = {first:g}, with examples "
        "clipped: the rate rises with noise only because noise is sent more finely than it is large."
    )
    return Verdict("And if the step is no finer than the noise (step = s)?", _yes(holds), evidence)


def clip(measured: RowResults) -> Verdict:
    """Examples clipped, less minibatches clipped, at equal certified ε."""
    gaps, bits = {}, {}
    for epsilon in EPSILONS:
        example, minibatch = (f"{clipping} {epsilon:g}" for clipping in CLIPPINGS)
        gaps[epsilon] = paired_difference(
            measured.row("alike", minibatch).accuracy, measured.row("alike", example).accuracy
        )
        codes = [mean(list(measured.plan("alike", what).code.values())).value for what in (example, minibatch)]
        bits[epsilon] = codes[1] - codes[0]
    holds = all(gap.value > 0 and is_clear(gap) for gap in gaps.values())
    evidence = ", ".join(f"{gap_text(gap)} at ε = {epsilon:g}" for epsilon, gap in gaps.items())
    evidence = (
        f"{evidence} points; and minibatches take {min(bits.values()):.1f} to {max(bits.values()):.1f} bits more."
    )
    return Verdict("Is clipping examples better than clipping minibatches at equal certified ε?", _yes(holds), evidence)


def accountant_order() -> Verdict:
    """Each accountant's noise at ε = 1, from the tightest."""
    squares = {name: accountants.noise(name, 1.0) ** 2 for name in accountants.EPSILONS}
    evidence = ", ".join(f"{square:.4g} by {name}" for name, square in squares.items())
    holds = list(squares.values()) == sorted(squares.values())
    return Verdict(
        "Does a tighter count of the same promise need less noise?", _yes(holds), f"σ² at ε = 1: {evidence}."
    )


def promises(measured: RowResults) -> Iterator[Verdict]:
    """Own promises against one for all."""
    rows = {promise: measured.row("own", promise) for promise in PROMISES}
    for promise, better in (("smallest", True), ("mean", False), ("largest", False)):
        gap = paired_difference(rows[promise].accuracy, rows["own"].accuracy)
        claim = f"Own budgets {'beat' if better else 'lose to'} everyone at the {promise} ({PROMISES[promise]:g})?"
        verdict = _yes((gap.value > 0) == better) if is_clear(gap) else _unclear(gap, better)
        accuracies = (mean_text(list(rows[each].accuracy.values())) for each in ("own", promise))
        yield Verdict(claim, verdict, "{} against {}: {} points.".format(*accuracies, gap_text(gap)))


def departure(measured: RowResults) -> Verdict:
    """All rounds, less those until the first client has spent its budget; each at its own best learning rate."""
    rounds = measured.plan("leaving", "leaving").client_values("rounds")
    first, last = int(min(rounds)), int(max(rounds))
    stopped, ended = (measured.row("leaving", "leaving", after=after) for after in (first, last))
    gap = paired_difference(stopped.accuracy, ended.accuracy)
    gone = sum(each < last for each in rounds)
    evidence = (
        f"{mean_text(list(ended.accuracy.values()))} after {last} rounds, though {gone} of {len(rounds)} clients "
        f"could pay for only a part of them; {mean_text(list(stopped.accuracy.values()))} after {first}, when the "
        f"first one's budget is spent: {gap_text(gap)} points."
    )
    verdict = _yes(gap.value > 0) if is_clear(gap) else _unclear(gap, better=True)
    return Verdict("Is going on without those who left better than stopping at the first?", verdict, evidence)


def _unclear(gap: Mean, better: bool) -> str:
    return f"{'So on average' if (gap.value > 0) == better else 'Not so on average'}, and not clear"


def _pairs(found: list[tuple[float, float]]) -> str:
    return ", ".join(f"{low:g} to {high:g}" for low, high in found)


def _yes(holds: bool) -> str:
    return "Holds" if holds else "Does not hold"
