"""Kim, Günlü & Schaefer 2021 as a whole: noise, true ε, bits and utility of every bound, for groups of clients.

The paper's bounds are evaluated as printed; beside them is the noise that our accountant requires.
"""

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
    """Clients with the same promise and the same number of examples; None where that number is not known."""

    clients: Count
    promise: Promise
    examples: Count | None = None

    @property
    def weight(self) -> float:
        """q_k|D_k|: the expected batch of one client; if examples are not known, all groups count as equal."""
        return self.promise.sampling_rate * (self.examples or 1)


class GroupRow(NamedTuple):
    """What one bound asks of each client of a group. Variances are in units of C².

    Attributes:
        noise_variance: σ² before σ ≥ 1 is applied.
        applied_variance: What clients add; None where σ² is not positive.
        forms: σ² by each form of the bound.
        valid: Whether the bound's conditions hold.
        reason: Why they don't.
        certified_epsilons: The true ε of this noise, for each way to clip gradients.
        bits: The bits of a gradient; None where there is no noise.
        domain: For which ε the bound holds; None for exact noise.
    """

    noise_variance: float
    applied_variance: float | None
    forms: Mapping[str, float]
    valid: bool
    reason: str
    certified_epsilons: Mapping[Clipping, float]
    bits: GradientBits | None
    domain: EpsilonDomain | None


class JointRow(NamedTuple):
    """What all groups achieve together by one bound; None where it gives some group no noise.

    Attributes:
        noise_variance: The variance of the noise in the clients' average.
    """

    noise_variance: float | None
    utility: Utility | None
    valid: bool
    reason: str


def group_rows(group: Group, learning: Learning, step: float = 1.0) -> dict[str, GroupRow]:
    """Evaluate every bound of the paper and our exact noise for one group; bits are for numbers rounded to `step`.

    With the paper's bounds clients add max(σ², 1), or nothing where σ² is not positive. With exact noise they add its
    σ² as it is: to the mean of a clipped minibatch; to a sum of clipped examples, evaluated as the paper evaluates its
    own; and, where examples are known, to that sum divided by its expected batch, which is what such clients send.
    """
    rows = {name: _paper_row(name, group, learning, step) for name in FORMS}
    rows |= {name: _exact_row(name, group, learning, step) for name in (PER_EXAMPLE, MINIBATCH)}
    return rows | ({MEAN: _exact_row(MEAN, group, learning, step)} if group.examples else {})


def joint_row(
    groups: Sequence[Group], rows: Sequence[GroupRow], learning: Learning, *, of_sums: bool = False
) -> JointRow:
    """Combine one bound's rows of all groups.

    Args:
        rows: One for each group.
        of_sums: Whether clients send sums of clipped examples divided by expected batches b_k = q_k|D_k|. Batches vary
            then, and E‖gradient‖² ≤ G²·(1 + Σ_k b_k(1 − q_k)/(Σ_k b_k)²).
    """
    counts, weights = [group.clients for group in groups], [group.weight for group in groups]
    varying = [1 - group.promise.sampling_rate for group in groups] if of_sums else [0.0] * len(groups)
    total = sum(count * weight for count, weight in zip(counts, weights, strict=True))
    spread = sum(n * weight * share for n, weight, share in zip(counts, weights, varying, strict=True)) / total**2
    reasons = [
        f"group {place}: {row.reason}" if len(groups) > 1 else row.reason
        for place, row in enumerate(rows, start=1)
        if not row.valid
    ]
    variances = [row.applied_variance for row in rows if row.applied_variance is not None]
    if len(variances) < len(rows):
        return JointRow(None, None, False, "; ".join(reasons))
    noise = average_variance(weights, variances, counts)
    return JointRow(noise, utility(noise, learning, 1 + spread), not reasons, "; ".join(reasons))


def evaluate_groups(
    groups: Sequence[Group], learning: Learning, step: float = 1.0
) -> tuple[list[dict[str, GroupRow]], dict[str, JointRow]]:
    """Return the rows of each group, and the joint row of each bound by its name.

    Raises:
        InvalidInput: Some groups have a number of examples and others have none.
    """
    if len({group.examples is None for group in groups}) > 1:
        raise InvalidInput(
            "Some groups say how many examples a client has and others don't, so their weights can't be compared.",
            fix="Give a number of examples to all of them, or to none.",
        )
    by_group = [group_rows(group, learning, step) for group in groups]
    joint = {
        name: joint_row(groups, [rows[name] for rows in by_group], learning, of_sums=name == MEAN)
        for name in by_group[0]
    }
    return by_group, joint


def _paper_row(name: str, group: Group, learning: Learning, step: float) -> GroupRow:
    bound = noise_bound(name, group.promise)
    variance, epsilons, bits = bound.applied_variance, {}, None
    if variance is not None:
        epsilons = {
            clipping: kim_exact_noise.certified_epsilon(clipping, variance, group.promise) for clipping in SENSITIVITIES
        }
        bits = gradient_bits(learning.dimension, variance, clip_norm=learning.clip_norm, step=step)
    return GroupRow(
        noise_variance=bound.noise_variance,
        applied_variance=variance,
        forms=bound.forms,
        valid=bound.valid,
        reason=bound.reason,
        certified_epsilons=epsilons,
        bits=bits,
        domain=epsilon_domain(name, group.promise),
    )


def _exact_row(name: str, group: Group, learning: Learning, step: float) -> GroupRow:
    clipping, promise = EXACT[name], group.promise
    required = kim_exact_noise.required_variance(clipping, promise)
    forms, variance, moment = {"certified": required}, required, 1.0
    if name == MEAN:
        forms, variance = {"of_the_sum": required}, required / group.weight**2
        moment = batch_second_moment(promise.sampling_rate, group.examples or 1)
    return GroupRow(
        noise_variance=variance,
        applied_variance=variance,
        forms=forms,
        valid=True,
        reason="",
        certified_epsilons={clipping: kim_exact_noise.certified_epsilon(clipping, required, promise)},
        bits=gradient_bits(learning.dimension, variance, clip_norm=learning.clip_norm, second_moment=moment, step=step),
        domain=None,
    )
