"""JAX-Privacy: the lower bound of its Gaussian estimator for scores that hold no information."""

import statistics

import numpy as np
from jax_privacy.auditing import CanaryScoreAuditor

from peers.fault import Fault

AUDITS, CANARIES, DELTA, SIGNIFICANCE = 100, 500, 1e-5, 0.05
OTHERS = ("epsilon_clopper_pearson", "epsilon_one_run", "epsilon_one_run_fdp")


def measure() -> Fault:
    """Audit canaries whose scores have the same distribution whether they were trained on or not."""
    bounds = {name: lower_bounds(name) for name in ("epsilon_from_gdp", *OTHERS)}
    wrong = {name: sum(bound > 0 for bound in found) for name, found in bounds.items()}
    others = ", ".join(f"`{name}` in {wrong[name]}" for name in OTHERS)
    return Fault(
        library="jax-privacy",
        title="`epsilon_from_gdp` finds leakage in scores that hold no information.",
        expected=f"a lower bound above 0 in at most {SIGNIFICANCE:.0%} of audits",
        measured=f"in {wrong['epsilon_from_gdp']} of {AUDITS} audits; the median bound is "
        f"{statistics.median(bounds['epsilon_from_gdp']):.2f}",
        is_seen=wrong["epsilon_from_gdp"] > 2 * SIGNIFICANCE * AUDITS,
        remark="The absolute value of μ is taken of upper bounds of both error rates, whose sum exceeds 1 if there is "
        "no leak. A defender sees more leakage than there is, so no guarantee is weakened by it. The other estimators "
        f"of the module keep their significance: {others} of {AUDITS} audits.",
        ours="Every estimator is tested for a lower bound of 0 without a leak, and for its coverage.",
    )


def lower_bounds(estimator: str) -> list[float]:
    """Return the bounds that an estimator finds in repeated audits without a leak."""
    generator = np.random.default_rng(0)
    bounds = []
    for _ in range(AUDITS):
        present, absent = generator.normal(size=(2, CANARIES))
        auditor = CanaryScoreAuditor(present, absent)
        bounds.append(float(getattr(auditor, estimator)(SIGNIFICANCE, DELTA)))
    return bounds
