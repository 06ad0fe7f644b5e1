"""Paper 001 as a whole: the noise of every bound for each group of clients, its price, its bits, and what all learn."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from discreet.errors import InvalidInput
from discreet.part import Count, part
from discreet.planning.theory import kim_exact_noise
from discreet.planning.theory.kim_epsilon_domains import EpsilonDomain, epsilon_domain
from discreet.planning.theory.kim_exact_noise import SENSITIVITIES, Clipping
from discreet.planning.theory.kim_gradient_bits import GradientBits, batch_second_moment, gradient_bits
from discreet.planning.theory.kim_noise_bounds import FORMS, Promise, noise_bound
from discreet.planning.theory.kim_utility import Learning, Utility, average_variance, utility

PER_EXAMPLE, MINIBATCH, MEAN = "exact per_example", "exact minibatch", "exact per_example_mean"
EXACT: Mapping[str, Clipping] = {PER_EXAMPLE: "per_example", MINIBATCH: "minibatch", MEAN: "per_example"}


@part
class Group:
    """Clients who are alike: how many, what each is promised, and how many examples each has, where that is known."""

    clients: Count
    promise: Promise
    examples: Count | None = None

    @property
    def weight(self) -> float:
        """q_k|D_k|: the expected batch of one client; where examples are not known, as if all had the same number."""
        return self.promise.sampling_rate * (self.examples or 1)


class GroupRow(NamedTuple):
    """What one way to count asks of each client of a group. Variances are in units of C²."""

    noise_variance: float  # before σ ≥ 1 is applied
    handed_out: float | None  # what is added; nothing where σ² is not positive
    forms: Mapping[str, float]
    valid: bool
    reason: str
    certified: Mapping[Clipping, float]  # the true ε of this noise, by how gradients are clipped
    bits: GradientBits | None
    domain: EpsilonDomain | None


class JointRow(NamedTuple):
    """What all clients learn together by one way to count; nothing where a group of them is handed no noise."""

    noise_variance: float | None  # of their average
    utility: Utility | None
    valid: bool
    reason: str


def group_rows(group: Group, learning: Learning, step: float = 1.0) -> dict[str, GroupRow]:
    """Every bound of the paper, then our own accountant's noise, for one group; bits for numbers rounded to `step`.

    The paper's bounds hand out max(σ², 1), or nothing where σ² is not positive. Ours hands out its σ² as it is: on a
    clipped minibatch's mean; on a sum of clipped examples, taken as the paper takes its own; and, where examples are
    known, on that sum over its expected batch, which is what clients send who clip examples.
    """
    found = {name: _papers(name, group, learning, step) for name in FORMS}
    found |= {name: _exact(name, group, learning, step) for name in (PER_EXAMPLE, MINIBATCH)}
    return found | ({MEAN: _exact(MEAN, group, learning, step)} if group.examples else {})


def joint_row(
    groups: Sequence[Group], each: Sequence[GroupRow], learning: Learning, *, of_sums: bool = False
) -> JointRow:
    """One row of every group together; `of_sums` where clients send sums of clipped examples over expected batches.

    Then E‖gradient‖² ≤ G²·(1 + Σ_k b_k(1 − q_k)/(Σ_k b_k)²) with b_k = q_k|D_k|, as batches vary.
    """
    counts, weights = [group.clients for group in groups], [group.weight for group in groups]
    kept = [1 - group.promise.sampling_rate for group in groups] if of_sums else [0.0] * len(groups)
    whole = sum(count * weight for count, weight in zip(counts, weights, strict=True))
    spread = sum(n * weight * share for n, weight, share in zip(counts, weights, kept, strict=True)) / whole**2
    reasons = [
        f"group {place}: {row.reason}" if len(groups) > 1 else row.reason
        for place, row in enumerate(each, start=1)
        if not row.valid
    ]
    handed = [row.handed_out for row in each if row.handed_out is not None]
    if len(handed) < len(each):
        return JointRow(None, None, False, "; ".join(reasons))
    noise = average_variance(weights, handed, counts)
    return JointRow(noise, utility(noise, learning, 1 + spread), not reasons, "; ".join(reasons))


def evaluate_groups(
    groups: Sequence[Group], learning: Learning, step: float = 1.0
) -> tuple[list[dict[str, GroupRow]], dict[str, JointRow]]:
    """The rows of each group, and of all together by name."""
    if len({group.examples is None for group in groups}) > 1:
        raise InvalidInput(
            "Some groups say how many examples a client has and others don't, so their weights can't be compared.",
            fix="Give a number of examples to all of them, or to none.",
        )
    found = [group_rows(group, learning, step) for group in groups]
    names = list(found[0])
    return found, {
        name: joint_row(groups, [each[name] for each in found], learning, of_sums=name == MEAN) for name in names
    }


def _papers(name: str, group: Group, learning: Learning, step: float) -> GroupRow:
    found = noise_bound(name, group.promise)
    handed, certified, bits = found.handed_out, {}, None
    if handed is not None:
        certified = {each: kim_exact_noise.certified_epsilon(each, handed, group.promise) for each in SENSITIVITIES}
        bits = gradient_bits(learning.dimension, handed, clip_norm=learning.clip_norm, step=step)
    return GroupRow(
        noise_variance=found.noise_variance,
        handed_out=handed,
        forms=found.forms,
        valid=found.valid,
        reason=found.reason,
        certified=certified,
        bits=bits,
        domain=epsilon_domain(name, group.promise),
    )


def _exact(name: str, group: Group, learning: Learning, step: float) -> GroupRow:
    clipping, promise = EXACT[name], group.promise
    asked = kim_exact_noise.required_variance(clipping, promise)
    forms, variance, moment = {"certified": asked}, asked, 1.0
    if name == MEAN:
        forms, variance = {"of_the_sum": asked}, asked / group.weight**2
        moment = batch_second_moment(promise.sampling_rate, group.examples or 1)
    return GroupRow(
        noise_variance=variance,
        handed_out=variance,
        forms=forms,
        valid=True,
        reason="",
        certified={clipping: kim_exact_noise.certified_epsilon(clipping, asked, promise)},
        bits=gradient_bits(learning.dimension, variance, clip_norm=learning.clip_norm, second_moment=moment, step=step),
        domain=None,
    )
