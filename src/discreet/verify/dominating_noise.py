"""Gaussian noise that dominates integer noise on vectors of integers (docs/notes/skellam.md)."""

from collections import Counter

from flint import arb

from discreet.verify.balls import lower
from discreet.verify.card_reader import Step, UnknownEvent

SKELLAM_FROM, SHARES_FROM, LARGEST_BEND = 5.0, 0.5, 3  # where the lemmas hold
LISTED = 1000  # terms of a sum that falls; the rest counts as the last of them
INTEGER = ("skellam", "discrete_gaussian", "distributed_discrete_gaussian")
DOMINATING = "integer noise, by Gaussian noise that dominates it (docs/notes/skellam.md)"


def has_integer_noise(steps: Counter[Step]) -> bool:
    """Return whether any step, sampled or not, has integer noise."""
    return any((step[-1] if isinstance(step[-1], tuple) else step)[0] in INTEGER for step in steps)


def replace_integer_noise(steps: Counter[Step]) -> Counter[Step]:
    """Return the steps with dominating Gaussian noise in place of integer noise, or raise UnknownEvent."""
    replaced: Counter[Step] = Counter()
    for step, count in steps.items():
        replaced[_replace(step)] += count
    return replaced


def _replace(step: Step) -> Step:
    match step:
        case (*sampling, tuple() as noise):
            return (*sampling, _replace(noise))
        case ("skellam", variance, l2, _):
            bends = [1 / (arb(variance) - arb(7) / 12)] if variance >= SKELLAM_FROM else []
        case ("discrete_gaussian", variance, l2):
            bends = [1 / arb(variance)]
        case ("distributed_discrete_gaussian", variance, l2, shares):
            bends = [1 / arb(variance), *([_bend_of_sum(variance, shares)] if variance >= SHARES_FROM else [])]
        case _:
            return step
    variances = [1 / bend - arb(1) / 6 for bend in bends if bend < LARGEST_BEND]
    if not variances:
        raise UnknownEvent("There is too little integer noise for the theorems that are built in.")
    return "gaussian", max(lower(found.sqrt() / arb(l2)) for found in variances)


def _bend_of_sum(variance: float, shares: int) -> arb:
    """Enclose 1/(nσ²) + τ from above."""
    rate, listed = 2 * arb.pi() ** 2 * arb(variance), min(shares, LISTED)
    terms = [(-rate * j / (j + 1)).exp() for j in range(1, listed)]
    return 1 / (shares * arb(variance)) + 10 * sum([*terms, *((shares - listed) * last for last in terms[-1:])], arb(0))
