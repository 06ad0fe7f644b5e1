"""Rényi divergences: the second accountant, by published formulas, and the one that a filter can use adaptively."""

import math
from collections.abc import Callable
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from discreet.privacy import discrete_gaussian, events, selection, skellam
from discreet.privacy.allocation_pair import LARGEST_SHIFT
from discreet.privacy.attack_bound import bound_below_two, largest_true_positive_rate
from discreet.privacy.dominating_pairs import (
    dominating_pair,
    refuse_replaced_allocation,
    refuse_replaced_group,
    require_replace,
)
from discreet.privacy.events import Event, Noise, Step, steps
from discreet.privacy.moments import Moments, exp_minus_line, moment_atoms
from discreet.privacy.noise_pairs import Array, laplace_shift, log_binomial, log_choose, log_expm1
from discreet.privacy.release import Relation
from discreet.privacy.truncated_sampling import truncation_cases

Conversion: TypeAlias = Literal["balle", "mironov"]
Curve: TypeAlias = Callable[[Array], Array]

LEAST_INTEGRATED = 0.01  # noise multiplier; below it the sampled loss bends too sharply to integrate
ROUNDING = 1e-11  # relative: what sums of up to a thousand logarithms lose, and more
LARGEST_SUM = 1024  # the binomial sums stop here: larger orders only matter where the noise is large, and cost
ORDERS: Array = np.unique(
    np.concatenate(
        [
            1 + np.geomspace(0.003, 10, 80),
            np.arange(2, 65),
            np.round(np.geomspace(64, 1024, 24)),
            2.0 ** np.arange(11, 24),
        ]
    )
)
ORDERS = np.append(ORDERS, np.inf)
SELECTION_ORDERS: Array = 1 + np.arange(1, 100) / 10  # a selection depends on a second order, which needs a finer grid


def epsilon(
    event: Event,
    delta: float,
    relation: Relation = "add_or_remove",
    *,
    orders: Array | None = None,
    conversion: Conversion = "balle",
) -> float:
    """Return the smallest ε at this δ over the given orders, by default over all of `ORDERS`."""

    def epsilons_at(chosen: Array) -> Array:
        return to_epsilon(chosen, curve(event, chosen, relation), delta, conversion)

    if orders is not None:
        return float(epsilons_at(orders).min())
    coarse = epsilons_at(ORDERS)
    best = int(coarse.argmin())
    low, high = ORDERS[max(best - 1, 0)], ORDERS[min(best + 1, ORDERS.size - 2)]  # the last is infinite
    return float(min(coarse[best], epsilons_at(np.linspace(low, high, 16)).min()))


def delta(event: Event, epsilon: float, relation: Relation = "add_or_remove", *, orders: Array = ORDERS) -> float:
    """Return the smallest δ at this ε over the given orders: `to_epsilon` solved for δ."""
    return _delta(orders, curve(event, orders, relation), epsilon)


def true_positive_rate(event: Event, false_positive_rate: float, relation: Relation = "add_or_remove") -> float:
    """Return a bound on how often an attack detects the unit at this false positive rate."""
    values = np.zeros(ORDERS.shape)
    for step, count in steps(event).items():
        values += count * _sharpen(_step_curve(step, ORDERS, relation))
    return largest_true_positive_rate(ORDERS, values, false_positive_rate)


def _sharpen(values: Array) -> Array:
    """Return a step's curve at `ORDERS`, where those below 2 are no larger than the value at 2 allows.

    An attack is bounded best by small orders, where a curve that is known at whole orders is loose.
    """
    at_two = float(values[np.searchsorted(ORDERS, 2.0)])
    small = [bound_below_two(order, at_two) for order in ORDERS[ORDERS < 2].tolist()]
    return np.asarray(np.minimum(values, np.concatenate([small, values[ORDERS >= 2]])))


def curve(event: Event, orders: Array, relation: Relation = "add_or_remove") -> Array:
    """Return a bound on the Rényi divergence between neighbours' outputs at each order above 1; infinite if unknown."""
    orders = np.asarray(orders, dtype=np.float64)
    return sum(
        (count * _step_curve(step, orders, relation) for step, count in steps(event).items()), np.zeros(orders.shape)
    )


def to_epsilon(orders: Array, values: Array, delta: float, conversion: Conversion = "balle") -> Array:
    """Return ε at each order, from the Rényi divergence there.

    balle: Balle et al. 2020, Thm 21 (= Canonne, Kamath, Steinke 2020, Prop. 12), the tightest.
    mironov: Mironov 2017, Prop. 3, as in papers before 2020.
    """
    orders = np.asarray(orders, dtype=np.float64)
    finite = np.where(np.isinf(orders), 2.0, orders)
    added = -math.log(delta) / (finite - 1)
    if conversion == "balle":
        added = added + np.log1p(-1 / finite) - np.log(finite) / (finite - 1)
    return np.maximum(0.0, np.where(np.isinf(orders), values, values + added))


def _delta(orders: Array, values: Array, epsilon: float) -> float:
    if np.any(np.isinf(orders) & (values <= epsilon)):
        return 0.0
    finite = np.isfinite(orders)
    order, value = orders[finite], values[finite]
    logs = (order - 1) * (value - epsilon + np.log1p(-1 / order)) - np.log(order)
    return math.exp(min(0.0, float(logs.min())))


def _step_curve(step: Step, orders: Array, relation: Relation) -> Array:
    match step:
        case events.BestOf():
            return _best_of_curve(step, orders, relation)
        case events.TruncatedPoissonSampled():
            return _revealed_mixture_curve(step, orders, relation)
        case events.RandomAllocation(event=noise):
            refuse_replaced_allocation(relation)
            alone = _unsampled_curve(noise, orders)
            too_small = 1 / noise.noise_multiplier > LARGEST_SHIFT
            return alone if too_small else np.minimum(alone, _integrate(step, relation, orders))
        case events.RandomisedResponse():
            return _integrate(step, relation, orders)
        case events.SampledWithoutReplacement(sampling_rate=rate, event=noise):
            require_replace(relation)
            return _fixed_size_curve(rate, noise, orders)
        case events.PoissonSampled(event=events.GaussianNoise() | events.LaplaceNoise() as noise) if (
            noise.noise_multiplier < LEAST_INTEGRATED
        ):
            # Sampling hides next to nothing.
            return _unsampled_curve(noise, orders, 2.0 if relation == "replace" else 1.0)
        case events.PoissonSampledGroup(event=events.GaussianNoise(noise_multiplier=z) as noise, group_size=size):
            if z < size * LEAST_INTEGRATED:
                return _unsampled_curve(noise, orders, (2.0 if relation == "replace" else 1.0) * size)
            return _integrate(step, relation, orders)
        case events.PoissonSampledGroup():
            refuse_replaced_group(relation)
            joined, rate = partial(_joined_curve, step), step.any_member_rate
            return _interpolate(lambda at: _poisson_curve(rate, at, joined), orders)
        case events.PoissonSampled(event=events.GaussianNoise() as noise, sampling_rate=rate) if relation != "replace":
            by_sum = (orders == np.round(orders)) & (orders <= LARGEST_SUM)
            values = np.empty_like(orders)
            values[by_sum] = _poisson_curve(rate, orders[by_sum], lambda at: _unsampled_curve(noise, at))
            # Removing is the worse direction (Mironov, Talwar, Zhang 2019, Thm 5).
            values[~by_sum] = _integrate(step, relation, orders[~by_sum], forward_only=True)
            return values
        case events.PoissonSampled(event=events.GaussianNoise() | events.LaplaceNoise()):
            return _integrate(step, relation, orders)
        case events.PoissonSampled(sampling_rate=rate, event=noise) if relation == "replace":
            # The proof for fixed sizes only uses that the outputs it mixes are close in pairs, as they are here.
            return _fixed_size_curve(rate, noise, orders)
        case events.PoissonSampled(sampling_rate=rate, event=noise):
            return _interpolate(
                lambda at: _poisson_curve(rate, at, lambda inner: _unsampled_curve(noise, inner)), orders
            )
        case _:
            return _unsampled_curve(step, orders, 2.0 if relation == "replace" else 1.0)


def _best_of_curve(step: events.BestOf, orders: Array, relation: Relation) -> Array:
    """Return the curve of a selection. A trial draws its event in public, so its curve is the largest of theirs."""
    grid = np.unique(np.concatenate([orders, ORDERS, SELECTION_ORDERS]))
    trial = np.maximum.reduce([curve(event, grid, relation) for event in step.trials])
    whole = selection.best_of_curve(step.count, grid, trial, lambda epsilon: _delta(grid, trial, epsilon))
    return whole[np.searchsorted(grid, orders)]


def _revealed_mixture_curve(step: events.TruncatedPoissonSampled, orders: Array, relation: Relation) -> Array:
    """Return the curve of a public choice between cases: log Σ P[case]·e^((α−1)·divergence)/(α−1), exactly."""
    cases = truncation_cases(step, relation)
    curves = np.array([_step_curve(case.step, orders, case.relation) for case in cases])
    finite = np.where(np.isinf(orders), 2.0, orders)
    logs = np.log([[case.probability] for case in cases]) + (finite - 1) * curves
    mixed = np.logaddexp.reduce(logs, axis=0) / (finite - 1) * (1 + ROUNDING)
    return np.asarray(np.where(np.isinf(orders), curves.max(axis=0), np.maximum(mixed, 0.0)))


def _fixed_size_curve(rate: float, noise: Noise, orders: Array) -> Array:
    """Return the curve of replacing a unit under sampling: at twice the sensitivity, never above the unsampled one."""
    sampled = _interpolate(
        lambda at: _without_replacement_curve(rate, at, lambda inner: _unsampled_curve(noise, inner, 2.0)), orders
    )
    return np.minimum(sampled, _unsampled_curve(noise, orders, 2.0))


def _unsampled_curve(noise: Noise, orders: Array, factor: float = 1.0) -> Array:
    """Return the curve without sampling, at `factor` times the sensitivity."""
    match noise:
        case events.GaussianNoise():
            return orders * (factor / noise.noise_multiplier) ** 2 / 2
        case events.DiscreteGaussianNoise():  # Canonne, Kamath, Steinke 2020, Prop. 5, coordinate by coordinate
            return orders * (factor * noise.l2_sensitivity) ** 2 / (2 * noise.variance)
        case events.DistributedDiscreteGaussianNoise():
            l2 = factor * noise.l2_sensitivity
            return discrete_gaussian.rdp_bound(orders, noise.variance, noise.shares, l2, noise.dimension)
        case events.ZeroConcentrated():  # Bun & Steinke 2016, Def. 1.1, and Prop. 1.9 for several units
            return orders * noise.rho_of_units(factor)
        case events.LaplaceNoise():
            return _laplace_curve(laplace_shift(noise, factor), orders)
        case events.SkellamNoise():
            return _interpolate(lambda at: _whole_order_curve(noise, at, factor), orders)


def _joined_curve(step: events.PoissonSampledGroup, orders: Array) -> Array:
    """Bound the divergence between a group's output, if at least one member joined, and the output without it.

    Guarantee: an upper bound in both directions, at whole orders. With w_j the chance that j joined, and ε_j the curve
    of j members, it is α/(α−1)·log Σ_j w_j·e^((1−1/α)·ε_j(α)): by Minkowski's inequality in one direction, and by
    convexity in the second argument in the other (docs/notes/groups.md).
    """
    members = np.arange(1.0, step.group_size + 1)
    log_chances = log_binomial(step.group_size, members, step.sampling_rate) - math.log(step.any_member_rate)
    curves = np.array([_whole_order_curve(step.event, orders, joined) for joined in members.tolist()])
    share = 1 - 1 / orders
    return np.asarray(np.logaddexp.reduce(log_chances[:, None] + share * curves, axis=0) / share)


def _whole_order_curve(noise: Noise, orders: Array, factor: float) -> Array:
    """Return the curve without sampling at whole orders, where nothing is interpolated."""
    if isinstance(noise, events.SkellamNoise):
        return skellam.rdp_bound(orders, noise.variance, factor * noise.l1_sensitivity, factor * noise.l2_sensitivity)
    return _unsampled_curve(noise, orders, factor)


def _laplace_curve(shift: float, orders: Array) -> Array:
    """Mironov 2017, Table II: log[α/(2α−1)·e^((α−1)s) + (α−1)/(2α−1)·e^(−αs)]/(α−1), rounded up.

    Where it is small it is log(1 + α/(2α−1)·f((α−1)s) + (α−1)/(2α−1)·f(−αs))/(α−1) with f(x) = e^x − 1 − x, which
    is the same and adds up nothing but positive numbers.
    """
    finite = np.where(np.isinf(orders), 2.0, orders)
    up, down = finite / (2 * finite - 1), (finite - 1) / (2 * finite - 1)
    ahead, behind = (finite - 1) * shift, -finite * shift
    excess = up * exp_minus_line(np.minimum(ahead, 1.0)) + down * exp_minus_line(behind)
    large = np.logaddexp(np.log(up) + ahead, np.log(down) + behind)
    values = np.where(ahead < 1.0, np.log1p(excess), large) / (finite - 1)
    return np.where(np.isinf(orders), shift, values * (1 + ROUNDING))


def _integrate(step: Step, relation: Relation, orders: Array, *, forward_only: bool = False) -> Array:
    """Integrate the divergence of the dominating pair, from above: log E e^((α−1)·loss)/(α−1)."""
    whole = dominating_pair(step, relation)
    both = moment_atoms(whole)
    sides = (both.forward,) if forward_only or both.forward is both.backward else both
    moments = [Moments(side) for side in sides]
    values = np.full(orders.shape, max(whole.tops) if not forward_only else whole.tops[0])
    for i in np.flatnonzero(orders - 1 <= whole.max_tilt):
        tilt = orders[i] - 1
        values[i] = max(side.log_moment(tilt) for side in moments) / tilt
    return values


def _interpolate(at_integers: Curve, orders: Array) -> Array:
    """Interpolate a curve known at integers by chords: (α−1)·divergence is convex in α, and 0 at α = 1."""
    below, above = np.floor(orders), np.ceil(orders)
    needed = np.unique(np.concatenate([below[below >= 2], above]))
    values = dict(zip(needed.tolist(), at_integers(needed).tolist(), strict=True))
    result = np.empty_like(orders)
    for i, (order, low, high) in enumerate(zip(orders.tolist(), below.tolist(), above.tolist(), strict=True)):
        if low == high:
            result[i] = values[high]
            continue
        start = (low - 1) * values[low] if low >= 2 else 0.0
        result[i] = (start + (order - low) * ((high - 1) * values[high] - start)) / (order - 1)
    return result


def _poisson_curve(rate: float, orders: Array, base: Curve) -> Array:
    """Poisson sampling at integer orders (Zhu & Wang 2019, Thm 6; Steinke 2022): log E e^((k−1)ε(k)), k ~ Bin(α, q).

    The expectation is summed as 1 + E(e^… − 1), so that a tiny rate loses nothing.
    """

    def log_amplified_sum(order: int, drawn: Array, log_chance: Array, values: Array) -> float:
        return float(np.logaddexp.reduce(log_chance + log_expm1((drawn - 1) * values)))

    return _binomial_sum(orders, base, log_amplified_sum, lambda order, k: log_binomial(order, k, rate))


def _without_replacement_curve(rate: float, orders: Array, base: Curve) -> Array:
    """Fixed-size sampling at integer orders, replace-one (Wang, Balle, Kasiviswanathan 2019, Thm 9)."""
    pure = float(base(np.array([np.inf]))[0])
    log_pure = log_expm1(np.array([pure]))[0] if math.isfinite(pure) else math.inf

    def log_amplified_sum(order: int, drawn: Array, log_chance: Array, values: Array) -> float:
        terms = log_chance + (drawn - 1) * values + np.minimum(math.log(2), drawn * log_pure)
        second = values[0] + min(math.log(2), 2 * log_pure)
        terms[0] = log_chance[0] + min(math.log(4) + log_expm1(values[:1])[0], second)
        return float(np.logaddexp.reduce(terms))

    return _binomial_sum(orders, base, log_amplified_sum, lambda order, k: log_choose(order, k) + k * math.log(rate))


def _binomial_sum(
    orders: Array,
    base: Curve,
    log_amplified_sum: Callable[[int, Array, Array, Array], float],
    log_chance: Callable[[int, Array], Array],
) -> Array:
    """log(1 + Σ_{k ≥ 2} …)/(α − 1) at each integer order; above LARGEST_SUM, what no sampling at all would give."""
    result = base(orders)
    small = np.flatnonzero(orders <= LARGEST_SUM)
    if small.size == 0:
        return result
    values = base(np.arange(2, orders[small].max() + 1))
    for i in small:
        order = int(orders[i])
        drawn = np.arange(2, order + 1, dtype=np.float64)
        log_sum = log_amplified_sum(order, drawn, log_chance(order, drawn), values[: order - 1])
        result[i] = np.logaddexp(0.0, log_sum + ROUNDING) / (order - 1)
    return result
