"""Many runs with one canary each: a threshold chosen on half of them, and Clopper–Pearson limits on the others."""

import math

import numpy as np

from discreet.audit.estimators import binomial_tails
from discreet.audit.estimators.estimate import Coins, Estimate, ScoredCanaries, check_levels
from discreet.errors import InvalidInput

NAME = "repeated"
FEWEST_RUNS = 8
THRESHOLDS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98)  # shares of the scores below them


def estimate_by_repetition(canaries: ScoredCanaries, *, delta: float, confidence: float = 0.95) -> Estimate:
    """Return a lower confidence bound on ε from the error rates of one attack over independent runs.

    Only the first canary of each run counts, since the canaries of one run may depend on each other. Runs of even
    number choose the threshold and whether presence or absence is looked for; the others measure it. With probability
    1 − confidence at most, the true positive rate is below its lower limit or the false positive rate above its upper
    one. (ε, δ)-privacy requires TPR ≤ e^ε·FPR + δ.

    Args:
        canaries: The scores of runs, and which canaries were present.
        delta: The δ of the bound.
        confidence: The probability that the bound holds.

    Raises:
        InvalidInput: There are fewer than eight runs.
    """
    check_levels(delta, confidence)
    runs, first = np.unique(canaries.runs, return_index=True)
    check_run_count(len(runs))
    scores, present = canaries.scores[first], canaries.present[first]
    is_choosing = np.arange(len(runs)) % 2 == 0
    error = (1 - confidence) / 2

    def bound_at(sign: float, threshold: float, chosen: Coins) -> float:
        above, aimed = sign * scores[chosen] >= sign * threshold, present[chosen] == (sign > 0)
        return _bound(above, aimed, delta, error)

    thresholds = np.quantile(scores[is_choosing], THRESHOLDS)
    options = [(sign, float(threshold)) for sign in (1.0, -1.0) for threshold in thresholds]
    best = max(options, key=lambda option: bound_at(option[0], option[1], is_choosing))
    bound = bound_at(best[0], best[1], ~is_choosing)
    return Estimate(
        estimator=NAME,
        lower_bound=bound,
        confidence=confidence,
        delta=delta,
        canaries=len(runs),
        present=int(present.sum()),
        points=((bound, delta),) if bound > 0 and delta > 0 else (),
        details={"runs": len(runs), "threshold": best[1], "looks_for": "presence" if best[0] > 0 else "absence"},
    )


def check_run_count(runs: int) -> None:
    """Refuse fewer runs than a threshold can be chosen and measured on."""
    if runs < FEWEST_RUNS:
        raise InvalidInput(
            f"Repeated runs must be at least {FEWEST_RUNS}, and got {runs}.",
            fix="Give more --runs, or another --estimator.",
        )


def _bound(above: Coins, aimed: Coins, delta: float, error: float) -> float:
    """Return the ε that the two error rates allow at least, where `aimed` is what a score above the threshold means."""
    hits, wanted = int((above & aimed).sum()), int(aimed.sum())
    alarms, others = int((above & ~aimed).sum()), int((~aimed).sum())
    if not wanted or not others:
        return 0.0
    found = binomial_tails.lower_limit(hits, wanted, error) - delta
    false = binomial_tails.upper_limit(alarms, others, error)
    return max(0.0, math.log(found / false)) if found > 0 else 0.0
