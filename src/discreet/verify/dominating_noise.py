"""Gaussian noise that dominates integer noise on vectors of integers (docs/notes/skellam.md)."""

from collections import Counter

from flint import arb

from discreet.verify.balls import lower
from discreet.verify.card_reader import Step

SKELLAM_FROM, SHARES_FROM, LARGEST_BEND = 5.0, 0.5, 3  # where the lemmas hold
DOMINATING = "integer noise, by Gaussian noise that dominates it (docs/notes/skellam.md)"


def replace_integer_noise(steps: Counter[Step]) -> Counter[Step]:
    """Return the steps with dominating Gaussian noise in place of integer noise, where the theorem offers one."""
    return sum((Counter({_replace(step): count}) for step, count in steps.items()), Counter())


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
    found = [lower((1 / bend - arb(1) / 6).sqrt() / arb(l2)) for bend in bends if bend < LARGEST_BEND]
    return ("gaussian", max(found)) if found else step


def _bend_of_sum(variance: float, shares: int) -> arb:
    """Bound 1/(nσ²) + τ from above. The terms of τ fall, so that those after a thousand count as the last of these."""
    rate, listed = 2 * arb.pi() ** 2 * arb(variance), min(shares, 1000)
    terms = [(-rate * j / (j + 1)).exp() for j in range(1, listed)]
    return 1 / (shares * arb(variance)) + 10 * sum([*terms, *((shares - listed) * last for last in terms[-1:])], arb(0))
