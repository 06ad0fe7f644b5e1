"""One release with Laplace noise, with and without sampling, from the definitions at 50 digits.

`shift` is the distance that the noise moves, in its own scale: 1/b, or 2/b when a unit is replaced. The losses of Q's
draws x are ±shift outside [0, shift] and 2x − shift inside, as in docs/notes/laplace.md.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import TypeAlias

import mpmath
from mpmath import mpf

from discreet.privacy.events import LaplaceNoise, PoissonSampled, Step
from discreet.privacy.release import Relation

DIGITS = 50
Number: TypeAlias = float | mpf


def laplace_step(noise_multiplier: float, rate: float) -> Step:
    noise = LaplaceNoise(noise_multiplier=noise_multiplier)
    return noise if rate == 1 else PoissonSampled(sampling_rate=rate, event=noise)


def shift_of(noise_multiplier: float, relation: Relation) -> mpf:
    return mpf(2 if relation == "replace" else 1) / mpf(noise_multiplier)


def exact_delta(noise_multiplier: float, rate: float, epsilon: Number, relation: Relation) -> mpf:
    """δ(ε) for ε ≥ 0, of the worse direction."""
    with mpmath.workdps(DIGITS):
        shift, q, e = shift_of(noise_multiplier, relation), mpf(rate), mpf(epsilon)
        forward = _forward_delta(shift, q, e)
        return forward if relation == "replace" else max(forward, _backward_delta(shift, q, e))


def exact_epsilon(noise_multiplier: float, rate: float, delta: Number, relation: Relation) -> mpf:
    """Return the smallest ε ≥ 0 with δ(ε) ≤ δ."""
    with mpmath.workdps(DIGITS):
        shift, q, d = shift_of(noise_multiplier, relation), mpf(rate), mpf(delta)
        inner = _unsampled_epsilon(shift, d / q) if d < q else mpf(0)
        forward = max(mpf(0), mpmath.log1p(q * mpmath.expm1(inner)))
        if relation == "replace" or _backward_delta(shift, q, forward) <= d:
            return forward
        return _bisect(lambda e: _backward_delta(shift, q, e) <= d, forward, -mpmath.log1p(q * mpmath.expm1(-shift)))


def exact_true_positive_rate(noise_multiplier: float, rate: float, false_positives: float, relation: Relation) -> mpf:
    """The best test for one unit: TPR = FPR·e^ε + δ(ε) at the ε where that is least, over all real ε."""
    with mpmath.workdps(DIGITS):
        shift, q, f = shift_of(noise_multiplier, relation), mpf(rate), mpf(false_positives)
        unsampled = _unsampled_true_positive_rate(shift, f)
        if rate == 1:
            return unsampled
        mixed = (1 - q) * f + q * unsampled  # of (1−q)Q + qP against Q, whose tests are those of P against Q
        if relation == "replace":
            # The pair has δ'(log(1 + q(e^ε − 1))) = qδ(ε) for ε ≥ 0 and is symmetric: its trade-off curve is the mixed
            # one up to where its slope is 1, a line of slope 1, and the mirror image.
            half = mpmath.exp(-shift / 2) / 2  # Q's mass of losses above 0
            least_missed = 1 - ((1 - q) * half + q * (1 - half))
            if f <= half:
                return mixed
            if f <= least_missed:
                return 1 - least_missed + (f - half)
            return 1 - _bisect(lambda g: 1 - ((1 - q) * g + q * _unsampled_true_positive_rate(shift, g)) <= f, 0, half)
        return max(
            mixed, 1 - _bisect(lambda g: 1 - ((1 - q) * g + q * _unsampled_true_positive_rate(shift, g)) <= f, 0, 1)
        )


def exact_divergence(noise_multiplier: float, rate: float, order: float, relation: Relation) -> mpf:
    """Return the Rényi divergence of the worse direction."""
    with mpmath.workdps(DIGITS):
        shift, q, a = shift_of(noise_multiplier, relation), mpf(rate), mpf(order)
        if rate == 1:
            terms = a * mpmath.exp((a - 1) * shift), (a - 1) * mpmath.exp(-a * shift)
            return mpmath.log(sum(terms) / (2 * a - 1)) / (a - 1)
        if relation == "replace":
            return mpmath.log1p(_expectation(_replaced_excess(q, a), shift, q, a, lowest=shift / 2)) / (a - 1)
        both = (_expectation(_excess(q, power), shift, q, a, lowest=mpf(0)) for power in (a, 1 - a))
        return mpmath.log1p(max(both)) / (a - 1)


def exact_delta_of_two_steps(noise_multiplier: float, rate: float, epsilon: float) -> mpf:
    """δ(ε) of the same step twice, under add-or-remove: E δ₁(ε − loss of the other step), of the worse direction."""
    with mpmath.workdps(30):
        shift, q, e = shift_of(noise_multiplier, "add_or_remove"), mpf(rate), mpf(epsilon)

        def mix_loss(loss: mpf) -> mpf:
            return mpmath.log1p(q * mpmath.expm1(loss))

        def forward(loss: mpf) -> mpf:
            return mpmath.exp(mix_loss(loss)) * _at_any_epsilon(
                _forward_delta, _backward_delta, shift, q, e - mix_loss(loss)
            )

        def backward(loss: mpf) -> mpf:
            return _at_any_epsilon(_backward_delta, _forward_delta, shift, q, e + mix_loss(loss))

        # both bend where the other step's loss is its largest, its smallest or 0
        bends = [
            sign * (e - end)
            for sign in (1, -1)
            for end in (mix_loss(shift), mix_loss(-shift), -mix_loss(shift), mpf(0))
        ]
        bends += [-mix_loss(-shift) + e, e + mix_loss(-shift)]
        inner = [mpmath.log1p(mpmath.expm1(bend) / q) for bend in bends if mpmath.expm1(bend) > -q]
        ends = sorted({mpf(0), shift, *((x + shift) / 2 for x in inner if -shift < x < shift)})
        fine = [low + (high - low) * k / 4 for low, high in pairwise(ends) for k in range(4)] + [shift]
        return max(_mean_over_draws(side, shift, fine) for side in (forward, backward))


def _at_any_epsilon(
    delta: Callable[[mpf, mpf, mpf], mpf], mirrored: Callable[[mpf, mpf, mpf], mpf], shift: mpf, q: mpf, epsilon: mpf
) -> mpf:
    """δ at a negative ε too, which follows from the mirrored pair's δ at −ε."""
    if epsilon >= 0:
        return delta(shift, q, epsilon)
    return -mpmath.expm1(epsilon) + mpmath.exp(epsilon) * mirrored(shift, q, -epsilon)


def _mean_over_draws(value: Callable[[mpf], mpf], shift: mpf, ends: list[mpf]) -> mpf:
    """E_Q of a function of the loss that is smooth between the given draws."""
    between = mpmath.quad(
        lambda x: mpmath.exp(-x) / 2 * value(2 * x - shift), ends, maxdegree=4, method="gauss-legendre"
    )
    return value(-shift) / 2 + mpmath.exp(-shift) / 2 * value(shift) + between


def _unsampled_delta(shift: mpf, epsilon: mpf) -> mpf:
    if epsilon >= shift:
        return mpf(0)
    return -mpmath.expm1((epsilon - shift) / 2) if epsilon >= -shift else -mpmath.expm1(epsilon)


def _unsampled_epsilon(shift: mpf, delta: mpf) -> mpf:
    inside = shift + 2 * mpmath.log1p(-delta)
    return inside if inside >= -shift else mpmath.log1p(-delta)


def _unsampled_true_positive_rate(shift: mpf, false_positives: mpf) -> mpf:
    """Tests of the form x > t: Q's mass there is ½e^(−t) for t ≥ 0, and P's is that of x > t − shift."""
    f = false_positives
    if f <= mpmath.exp(-shift) / 2:
        return f * mpmath.exp(shift)
    return 1 - mpmath.exp(-shift) / (4 * f) if f <= mpf(1) / 2 else 1 - (1 - f) * mpmath.exp(-shift)


def _forward_delta(shift: mpf, q: mpf, epsilon: mpf) -> mpf:
    """(1−q)Q + qP against Q: q·E_Q(P/Q − 1 − (e^ε − 1)/q)₊."""
    return q * _unsampled_delta(shift, mpmath.log1p(mpmath.expm1(epsilon) / q))


def _backward_delta(shift: mpf, q: mpf, epsilon: mpf) -> mpf:
    """Q against (1−q)Q + qP: E_Q(c − q·e^ε·P/Q)₊ with c = 1 − (1−q)e^ε; Q and P mirror each other."""
    c = 1 - (1 - q) * mpmath.exp(epsilon)
    return c * _unsampled_delta(shift, mpmath.log(q / c) + epsilon) if c > 0 else mpf(0)


def _excess(q: mpf, power: mpf) -> Callable[[mpf], mpf]:
    """(1−q+qe^ℓ)^power − 1 less power·q(e^ℓ − 1), whose mean under Q is 0."""

    def integrand(loss: mpf) -> mpf:
        moved = q * mpmath.expm1(loss)
        return mpmath.exp(power * mpmath.log1p(moved)) - 1 - power * moved

    return integrand


def _replaced_excess(q: mpf, order: mpf) -> Callable[[mpf], mpf]:
    """P's mass e^L at L and 1 at −L for each of Q's with ℓ > 0, L = log(1−q+qe^ℓ): e^((order−1)·loss) − 1 over both."""

    def integrand(loss: mpf) -> mpf:
        mixed = mpmath.log1p(q * mpmath.expm1(loss))
        return mpmath.exp(mixed) * mpmath.expm1((order - 1) * mixed) + mpmath.expm1((1 - order) * mixed)

    return integrand


def _expectation(value: Callable[[mpf], mpf], shift: mpf, q: mpf, order: mpf, lowest: mpf) -> mpf:
    """E_Q of a function of the loss, over draws x ≥ `lowest`."""
    ends = {lowest, shift}
    width = (shift - lowest) / mpmath.ceil((shift - lowest) / 2)
    ends |= {lowest + k * width for k in range(int((shift - lowest) / width))}
    for k in range(1, 7):  # the powers change by e^16 between these
        for mixed in (
            mpmath.log1p(q * mpmath.expm1(shift)) - 16 * k / order,
            mpmath.log1p(q * mpmath.expm1(-shift)) + 16 * k / order,
        ):
            if mpmath.expm1(mixed) > -q:
                ends.add((mpmath.log1p(mpmath.expm1(mixed) / q) + shift) / 2)
    inside = sorted(x for x in ends if lowest <= x <= shift)
    whole = _mean_over_draws(value, shift, inside)
    return whole if lowest == 0 else whole - value(-shift) / 2


def _bisect(holds: Callable[[mpf], bool], low: Number, high: Number) -> mpf:
    """Return the least number in between at which `holds` is true, from below, to 45 digits."""
    below, above = mpf(low), mpf(high)
    for _ in range(150):
        middle = (below + above) / 2
        below, above = (below, middle) if holds(middle) else (middle, above)
    return below
