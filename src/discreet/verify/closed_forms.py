"""δ(ε) in closed form, in balls: of Gaussians without sampling, and of one release with or without sampling."""

from flint import arb

from discreet.verify.balls import upper_tail
from discreet.verify.card_reader import Step


def gaussian_delta(mu: arb, epsilon: arb) -> arb:
    """Enclose Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ), the δ of N(μ, 1) against N(0, 1) (Balle & Wang 2018)."""
    return upper_tail(epsilon / mu - mu / 2) - epsilon.exp() * upper_tail(epsilon / mu + mu / 2)


def laplace_delta(shift: arb, epsilon: arb) -> arb:
    """Enclose max(0, 1 − e^((ε−s)/2)), the δ of Laplace noise around s against around 0, for ε ≥ 0."""
    return (1 - ((epsilon - shift) / 2).exp()).max(arb(0))


def single_delta(step: Step, relation: str, epsilon: float) -> arb | None:
    """Enclose δ(ε) of one release in the worse direction; None where there is no closed form.

    With δ that of the pair without sampling and α = e^ε, (1−q)Q + qP against Q has q·δ(log(1 + (α−1)/q)), and so has a
    replaced unit at twice the shift; backwards it is a·δ(log(qα/a)) with a = 1 − α(1−q), or 0 if a is not positive.
    """
    at, alpha, replaced = arb(epsilon), arb(epsilon).exp(), relation == "replace"
    match step:
        case ("laplace", scale):
            return laplace_delta((2 if replaced else 1) / arb(scale), at)
        case ("poisson", _, ("gaussian", _)) if replaced:
            return None
        case (("poisson" | "fixed_size") as kind, rate, (noise, scale)) if replaced or kind == "poisson":
            q, shift = arb(rate), (2 if replaced else 1) / arb(scale)
            delta = gaussian_delta if noise == "gaussian" else laplace_delta
            forward, rest = q * delta(shift, (1 + (alpha - 1) / q).log()), 1 - alpha * (1 - q)
            if replaced or rest <= 0:
                return forward
            return forward.max(rest * delta(shift, (q * alpha / rest).log()) if rest > 0 else arb(0).union(q))
        case _:
            return None
