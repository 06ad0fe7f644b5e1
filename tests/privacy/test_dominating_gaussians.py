"""Each step of the proof in docs/notes/skellam.md, and its result against exact sums over all integer vectors."""

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.privacy import discrete_gaussian, gaussian, pld, skellam
from discreet.privacy.dominating_gaussians import (
    LatticeNoise,
    dominating_gaussian,
    dominating_variance,
    has_integer_noise,
    replace_integer_noise,
)
from discreet.privacy.events import (
    BestOf,
    Composed,
    DiscreteGaussianNoise,
    DistributedDiscreteGaussianNoise,
    Event,
    GaussianNoise,
    PoissonSampled,
    PoissonSampledGroup,
    Repeated,
    SampledWithoutReplacement,
    SkellamNoise,
    TruncatedPoissonSampled,
)
from discreet.privacy.release import Relation
from discreet.privacy.trial_count import PoissonTrials

Masses = NDArray[np.float64]


def skellam_noise(variance: float, l2: float = 1.0) -> SkellamNoise:
    return SkellamNoise(variance=variance, l2_sensitivity=l2, dimension=1000)


def shares_of(variance: float, shares: int, l2: float = 1.0) -> DistributedDiscreteGaussianNoise:
    return DistributedDiscreteGaussianNoise(variance=variance, shares=shares, l2_sensitivity=l2, dimension=1000)


# --- Lemma 1: masses that bend by at most κ -------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 2.4])
def test_the_masses_of_gaussian_bins_bend_by_more_than_their_width_squared_less_a_twelfth_of_its_square(mu):
    with mpmath.workdps(60):

        def bin_mass(x: mpmath.mpf) -> mpmath.mpf:
            return (mpmath.erfc(x / mpmath.sqrt(2)) - mpmath.erfc((x + mu) / mpmath.sqrt(2))) / 2

        for place in np.linspace(-4, 4, 41):
            x = mpmath.mpf(place) - mpmath.mpf(mu) / 2
            bend = 2 * mpmath.log(bin_mass(x)) - mpmath.log(bin_mass(x - mu)) - mpmath.log(bin_mass(x + mu))
            assert bend > mpmath.mpf(mu) ** 2 * (1 - mpmath.mpf(mu) ** 2 / 12)


@given(st.floats(min_value=1e-6, max_value=3.0))
def test_one_sixth_less_variance_leaves_room_for_the_bins(kappa):
    squared = 1 / (1 / Fraction(kappa) - Fraction(1, 6))
    assert squared * (1 - squared / 12) >= Fraction(kappa)


@given(
    st.lists(st.floats(min_value=-1.0, max_value=1.0), min_size=30, max_size=30),
    st.floats(min_value=0.01, max_value=3.0),
    st.floats(min_value=-1.0, max_value=1.0),
)
def test_masses_that_bend_by_at_most_kappa_move_quantiles_by_at_most_mu(bends, kappa, slope):
    """Any masses on all integers, neither symmetric nor log-concave, with second differences of −κ and more."""
    logs = [0.0, slope]
    for bend in bends:
        logs.append(2 * logs[-1] - logs[-2] + kappa * bend)
    for _ in range(2):  # both ends go on with −κ, as the tails of a Gaussian do
        while logs[-1] > max(logs) - 60:
            logs.append(2 * logs[-1] - logs[-2] - kappa)
        logs.reverse()
    masses = np.exp(np.array(logs) - max(logs))
    masses /= masses.sum()
    assert normal_steps(masses).max() <= math.sqrt(1 / (1 / kappa - 1 / 6)) + 1e-9


def normal_steps(masses: Masses) -> Masses:
    """Return the steps between the normal quantiles of all tail sums above 1e-12, each from its smaller side."""
    above, below = np.cumsum(masses[::-1])[::-1], np.cumsum(masses)
    return np.diff(
        [
            gaussian.upper_quantile(math.log(upper)) if upper < 0.5 else -gaussian.upper_quantile(math.log(lower))
            for upper, lower in zip(above[1:], below[:-1], strict=True)
            if min(upper, lower) > 1e-12
        ]
    )


# --- Lemmas 2 and 3: Skellam noise bends most at 0 ------------------------------------------------------------------


@pytest.mark.parametrize("variance", [0.01, 0.7, 3.0, 5.0, 40.0, 1000.0])
def test_the_mass_of_skellam_noise_bends_most_at_zero(variance):
    with mpmath.workdps(60):
        logs = [mpmath.log(mpmath.besseli(k, mpmath.mpf(variance))) for k in range(120)]
        at_zero = 2 * (logs[0] - logs[1])
        assert all(2 * logs[k] - logs[k - 1] - logs[k + 1] < at_zero for k in range(1, 119))


@pytest.mark.parametrize("variance", [5.0, 5.5, 8.0, 30.0, 1e3, 1e6])
def test_its_bend_at_zero_is_below_the_bound_and_above_one_over_the_variance(variance):
    with mpmath.workdps(60):
        at_zero = 2 * mpmath.log(mpmath.besseli(0, mpmath.mpf(variance)) / mpmath.besseli(1, mpmath.mpf(variance)))
        assert 1 / mpmath.mpf(variance) < at_zero <= 1 / (mpmath.mpf(variance) - mpmath.mpf(7) / 12)


def test_the_induction_over_the_variance_starts_at_five_by_exact_fractions():
    """e^(−M/2) ≤ I₁(5)/I₀(5) with M = 12/53: partial sums from below, and from above with a geometric rest."""
    quarter = Fraction(25, 4)
    terms = [quarter**j / math.factorial(j) ** 2 for j in range(40)]
    above_i0 = sum(terms) + 2 * terms[-1]  # each further term is below half of the one before
    below_i1 = Fraction(5, 2) * sum(quarter**j / (math.factorial(j) * math.factorial(j + 1)) for j in range(40))
    half = Fraction(6, 53)
    above_exponential = sum((-half) ** j / math.factorial(j) for j in range(7))  # it ends with a positive term
    assert above_exponential <= below_i1 / above_i0
    # and the inequality that carries it on, 2w² − 6w + 7/12 ≥ 0, holds from w = 53/12 on, where it already rises
    w = Fraction(53, 12)
    assert 2 * w * w - 6 * w + Fraction(7, 12) >= 0
    assert 4 * w - 6 > 0


# --- Lemma 4: sums of discrete Gaussians ----------------------------------------------------------------------------


def log_masses_of_shares(variance: float, shares: int, reach: int) -> list[mpmath.mpf]:
    share = [mpmath.exp(-mpmath.mpf(k * k) / (2 * mpmath.mpf(variance))) for k in range(-reach, reach + 1)]
    total = share
    for _ in range(shares - 1):
        total = [
            mpmath.fsum(
                total[i] * share[k - i + reach]
                for i in range(max(0, k - reach), min(len(total), k + reach + 1))
                if 0 <= k - i + reach < len(share)
            )
            for k in range(len(total))
        ]
    return [mpmath.log(mass) for mass in total]


@pytest.mark.parametrize(("variance", "shares"), [(0.5, 2), (0.5, 5), (0.8, 3), (1.0, 2), (2.0, 3)])
def test_the_mass_of_a_sum_of_shares_bends_by_at_most_what_tau_allows(variance, shares):
    reach = 40
    with mpmath.workdps(40):
        logs = log_masses_of_shares(variance, shares, reach)
        middle = range(reach - 12, reach + 13)
        bends = [2 * logs[k] - logs[k - 1] - logs[k + 1] for k in middle]
        allowed = 1 / (mpmath.mpf(variance) * shares) + discrete_gaussian.tau(variance, shares)
        assert max(bends) <= allowed
        assert max(bends) > 1 / (mpmath.mpf(variance) * shares)  # more than a discrete Gaussian of the summed variance


# --- The theorem: thresholds, then all vectors ----------------------------------------------------------------------


@pytest.mark.parametrize("variance", [5.0, 6.5, 40.0])
def test_no_threshold_of_skellam_noise_moves_by_more_than_mu_even_where_the_tail_is_below_1e_1000(variance):
    offered = dominating_variance(skellam_noise(variance))
    assert offered is not None
    with mpmath.workdps(30):
        v = mpmath.mpf(variance)
        last = next(k for k in itertools.count(50, 50) if mpmath.besseli(k, v) < mpmath.mpf(10) ** -1000)
        masses = [mpmath.exp(-v) * mpmath.besseli(k, v) for k in range(last + 1)]
        tails = list(itertools.accumulate(reversed(masses)))[::-1]
        mu = 1 / mpmath.sqrt(mpmath.mpf(offered))
        for k in range(last - 20):
            # g(k+1) ≤ g(k) + μ, written without inverting the normal distribution twice
            x = quantile(tails[k])
            assert tails[k + 1] >= mpmath.erfc((x + mu) / mpmath.sqrt(2)) / 2


def quantile(tail: mpmath.mpf) -> mpmath.mpf:
    """Return x with P[N(0, 1) > x] = tail, by Newton's method on the logarithm."""
    x = mpmath.sqrt(-2 * mpmath.log(tail)) if tail < 0.3 else mpmath.mpf(0)
    for _ in range(60):
        value = mpmath.erfc(x / mpmath.sqrt(2)) / 2
        density = mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi)
        step = mpmath.log(value / tail) * value / density
        x += step
        if abs(step) < mpmath.mpf(10) ** -25:
            break
    return x


REACH = 60


def masses_of(noise: LatticeNoise) -> Masses:
    k = np.arange(-REACH, REACH + 1)
    if isinstance(noise, SkellamNoise):
        return np.asarray(np.exp(skellam.log_pmf(k, noise.variance)))
    share = np.exp(-k * k / (2 * noise.variance))
    share /= share.sum()
    total = share
    for _ in range(getattr(noise, "shares", 1) - 1):
        total = np.convolve(total, share)[REACH : 3 * REACH + 1]
    return np.asarray(total)


def move_masses(masses: Masses, shift: int) -> Masses:
    """Return the masses of the noise around an integer shift, on a common window."""
    return np.asarray(np.pad(masses, 20)[20 - shift : len(masses) + 20 - shift])


def product(masses: Masses, vector: tuple[int, ...]) -> Masses:
    whole = np.ones(1)
    for shift in vector:
        whole = np.multiply.outer(whole, move_masses(masses, shift)).ravel()
    return whole


def vectors_within(dimension: int, l2: float) -> Iterator[tuple[int, ...]]:
    """Yield all integer vectors of this norm at most, up to signs and order, which symmetric noise does not see."""
    reach = math.floor(l2)
    for vector in itertools.combinations_with_replacement(range(reach + 1), dimension):
        if 0 < sum(k * k for k in vector) <= l2 * l2:
            yield vector


def hockey_stick(p: Masses, q: Masses, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


NOISES = [
    skellam_noise(5.0, 3.0),
    skellam_noise(12.0, 4.0),
    DiscreteGaussianNoise(variance=1.0, l2_sensitivity=2.0),
    DiscreteGaussianNoise(variance=6.0, l2_sensitivity=4.0),
    shares_of(0.5, 4, 2.0),
    shares_of(0.8, 10, 3.0),
    shares_of(2.0, 3, 3.0),
]
EPSILONS = [-2.0, -0.5, 0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0]
every_noise = pytest.mark.parametrize("noise", NOISES, ids=lambda noise: f"{noise.kind}-{noise.variance:g}")
CUT = 1e-12  # what the window leaves out of 121 integers on a coordinate, and rounding


def gaussian_delta(mu: float, epsilon: float) -> float:
    """H at any real ε: at −ε it is 1 − e^−ε + e^−ε·H at ε, for a symmetric pair."""
    if epsilon >= 0:
        return gaussian.delta(mu, epsilon)
    return 1 - math.exp(epsilon) + math.exp(epsilon) * gaussian.delta(mu, -epsilon)


@every_noise
@pytest.mark.parametrize("dimension", [1, 2])
def test_no_integer_vector_within_the_sensitivity_exceeds_the_gaussian_in_either_direction(noise, dimension):
    masses = masses_of(noise)
    found = dominating_gaussian(noise)
    assert found is not None
    unshifted = product(masses, (0,) * dimension)
    for vector in vectors_within(dimension, noise.l2_sensitivity):
        # The vector's own norm: a stronger statement than that for the sensitivity.
        mu = math.hypot(*vector) / noise.l2_sensitivity / found.noise_multiplier
        shifted = product(masses, vector)
        for epsilon in EPSILONS:
            allowed = gaussian_delta(mu, epsilon) + CUT
            assert hockey_stick(shifted, unshifted, epsilon) <= allowed
            assert hockey_stick(unshifted, shifted, epsilon) <= allowed


@pytest.mark.parametrize("noise", [skellam_noise(5.0, 2.0), shares_of(0.8, 5, 2.0)], ids=["skellam", "shares"])
def test_three_coordinates_do_not_exceed_it_either(noise):
    masses = masses_of(noise)[REACH - 28 : REACH + 29]  # 57³ integers; what is left out is below 1e-12
    found = dominating_gaussian(noise)
    assert found is not None
    unshifted = product(masses, (0, 0, 0))
    for vector in vectors_within(3, 2.0):
        mu = math.hypot(*vector) / 2.0 / found.noise_multiplier
        shifted = product(masses, vector)
        for epsilon in (0.0, 0.5, 2.0):
            allowed = gaussian.delta(mu, epsilon) + 1e-10
            assert hockey_stick(shifted, unshifted, epsilon) <= allowed
            assert hockey_stick(unshifted, shifted, epsilon) <= allowed


def test_more_variance_than_the_noise_itself_has_would_be_refuted():
    """The comparison has teeth: Gaussian noise of the very variance of Skellam noise does not dominate it."""
    noise = skellam_noise(5.0)
    masses = masses_of(noise)
    excess = max(
        hockey_stick(move_masses(masses, 1), masses, epsilon) - gaussian.delta(1 / math.sqrt(noise.variance), epsilon)
        for epsilon in np.linspace(0, 2, 201)
    )
    assert excess > 1e-3


# --- What follows for sampling, groups, replacement and rounds -------------------------------------------------------


def delta_of(event: Event, epsilon: float, relation: Relation = "add_or_remove") -> float:
    return pld.delta(replace_integer_noise(event), epsilon, relation)


SMALL = [skellam_noise(6.0, 2.0), shares_of(0.9, 6, 2.0)]
small_noise = pytest.mark.parametrize("noise", SMALL, ids=["skellam", "shares"])
POSITIVE = [0.05, 0.3, 1.0, 2.5]


@small_noise
def test_a_sampled_unit_reveals_no_more_than_the_gaussian_that_stands_in(noise):
    masses, rate = masses_of(noise), 0.2
    event = PoissonSampled(sampling_rate=rate, event=noise)
    unshifted = product(masses, (0, 0))
    for epsilon in POSITIVE:
        allowed = delta_of(event, epsilon) + CUT
        for vector in vectors_within(2, 2.0):
            mixed = (1 - rate) * unshifted + rate * product(masses, vector)
            assert hockey_stick(mixed, unshifted, epsilon) <= allowed
            assert hockey_stick(unshifted, mixed, epsilon) <= allowed


@small_noise
def test_a_group_of_two_reveals_no_more_for_any_two_vectors(noise):
    masses, rate = masses_of(noise), 0.3
    event = PoissonSampledGroup(sampling_rate=rate, group_size=2, event=noise)
    shifts = [(a, b) for a in range(-2, 3) for b in range(-2, 3) if a * a + b * b <= 4]
    unshifted = product(masses, (0, 0))
    allowed = {epsilon: delta_of(event, epsilon) + CUT for epsilon in POSITIVE}
    for one, other in itertools.combinations_with_replacement(shifts, 2):
        both = (one[0] + other[0], one[1] + other[1])
        mixed = (
            (1 - rate) ** 2 * unshifted
            + rate * (1 - rate) * (product(masses, one) + product(masses, other))
            + rate**2 * product(masses, both)
        )
        for epsilon in POSITIVE:
            assert hockey_stick(mixed, unshifted, epsilon) <= allowed[epsilon]
            assert hockey_stick(unshifted, mixed, epsilon) <= allowed[epsilon]


@small_noise
@pytest.mark.parametrize("rate", [0.2, 1.0])
def test_replacing_a_sampled_unit_reveals_no_more_for_any_two_vectors(noise, rate):
    masses = masses_of(noise)
    event = PoissonSampled(sampling_rate=rate, event=noise)
    shifts = [(a, b) for a in range(-2, 3) for b in range(-2, 3) if a * a + b * b <= 4]
    unshifted = product(masses, (0, 0))
    allowed = {epsilon: delta_of(event, epsilon, "replace") + CUT for epsilon in POSITIVE}
    outputs = {shift: (1 - rate) * unshifted + rate * product(masses, shift) for shift in shifts}
    for one, other in itertools.permutations(shifts, 2):
        for epsilon in POSITIVE:
            assert hockey_stick(outputs[one], outputs[other], epsilon) <= allowed[epsilon]


@small_noise
@pytest.mark.parametrize("relation", ["add_or_remove", "zero_out", "replace"])
def test_a_truncated_batch_reveals_no_more_for_any_units_of_full_size(noise, relation):
    """Two units and one of three values each, joined by coins; of several that join, one stays."""
    masses, rate = masses_of(noise), 0.6
    event = TruncatedPoissonSampled(sampling_rate=rate, max_batch_size=1, population=2, event=noise)

    def output(*units: int) -> Masses:
        mixed = np.zeros_like(masses)
        for coins in itertools.product((False, True), repeat=len(units)):
            joined = [unit for unit, joins in zip(units, coins, strict=True) if joins] or [0]
            chance = math.prod(rate if joins else 1 - rate for joins in coins)
            mixed += chance / len(joined) * sum(move_masses(masses, unit) for unit in joined)
        return mixed

    allowed = {epsilon: delta_of(event, epsilon, relation) + CUT for epsilon in POSITIVE}
    for other, one in itertools.product((-2, 0, 2), repeat=2):
        changed = {"add_or_remove": [output(other)], "zero_out": [output(other, 0)]}
        neighbours = changed.get(relation, [output(other, unit) for unit in (-2, 0, 2)])
        for neighbour, epsilon in itertools.product(neighbours, POSITIVE):
            assert hockey_stick(output(other, one), neighbour, epsilon) <= allowed[epsilon]
            assert hockey_stick(neighbour, output(other, one), epsilon) <= allowed[epsilon]


@small_noise
def test_a_second_round_that_looks_at_the_first_reveals_no_more_than_two_gaussian_rounds(noise):
    """The second shift depends on the first output, and so does whether it is as large as it may be."""
    masses, rate = masses_of(noise), 0.4
    event = Repeated(count=2, event=PoissonSampled(sampling_rate=rate, event=noise))
    rules: list[Callable[[int], int]] = [lambda _: 2, lambda seen: 2 if seen > 0 else -1, lambda seen: (seen % 3) - 1]
    first_mixed = (1 - rate) * masses + rate * move_masses(masses, 2)
    for rule in rules:
        seconds = np.array(
            [(1 - rate) * masses + rate * move_masses(masses, rule(seen)) for seen in range(-REACH, REACH + 1)]
        )
        with_unit = (first_mixed[:, None] * seconds).ravel()
        without = np.multiply.outer(masses, masses).ravel()
        for epsilon in POSITIVE:
            allowed = delta_of(event, epsilon) + CUT
            assert hockey_stick(with_unit, without, epsilon) <= allowed
            assert hockey_stick(without, with_unit, epsilon) <= allowed


def test_even_against_odd_shifts_are_easier_to_tell_apart_in_skellam_noise_than_in_the_gaussian():
    """Why the theorem speaks of pairs: no channel makes Skellam noise of N(θ, s) for all integer shifts θ at once.

    Summed over many even shifts, less as many odd ones, the noise leaves Σ(−1)^k p(k) = e^(−2v) at each integer, and
    the Gaussian a wave of amplitude below 2.1·e^(−π²s/2).
    """
    variance = 5.0
    k = np.arange(-REACH, REACH + 1)
    parity = float((masses_of(skellam_noise(variance)) * (-1.0) ** k).sum())
    assert parity == pytest.approx(math.exp(-2 * variance), rel=1e-6)
    offered = dominating_variance(skellam_noise(variance))
    assert offered is not None
    assert parity > 1000 * 2.1 * math.exp(-(math.pi**2) * offered / 2)


# --- The function ----------------------------------------------------------------------------------------------------


def test_the_variances_by_hand():
    assert dominating_variance(skellam_noise(100.0)) == pytest.approx(99.25, rel=1e-12)
    assert dominating_variance(DiscreteGaussianNoise(variance=10.0, l2_sensitivity=1.0)) == pytest.approx(10 - 1 / 6)
    tau = discrete_gaussian.tau(1.0, 4)
    assert dominating_variance(shares_of(1.0, 4)) == pytest.approx(1 / (0.25 + tau) - 1 / 6)
    assert dominating_variance(shares_of(25.0, 1)) == dominating_variance(
        DiscreteGaussianNoise(variance=25.0, l2_sensitivity=1.0)
    )
    # shares of less than ½ have no τ: one of them alone counts
    assert dominating_variance(shares_of(0.45, 50)) == pytest.approx(0.45 - 1 / 6)


@pytest.mark.parametrize(
    "noise", [skellam_noise(4.99), DiscreteGaussianNoise(variance=0.3, l2_sensitivity=1.0), shares_of(0.2, 100)]
)
def test_too_little_noise_has_no_dominating_gaussian(noise):
    assert dominating_variance(noise) is None
    assert dominating_gaussian(noise) is None
    assert replace_integer_noise(noise) == noise


def test_a_multiplier_beyond_what_an_event_may_hold_is_lowered_and_one_below_it_is_none():
    assert dominating_gaussian(skellam_noise(1e30, 1.0)) == GaussianNoise(noise_multiplier=1e12)
    assert dominating_gaussian(skellam_noise(100.0, 1e8)) is None


@given(st.floats(min_value=5.0, max_value=1e24))
def test_rounding_never_raises_the_variance_above_the_exact_one(variance):
    offered = dominating_variance(skellam_noise(variance))
    assert offered is not None
    exact = Fraction(variance) - Fraction(3, 4)
    assert exact * (1 - Fraction(2, 10**14)) <= Fraction(offered) < exact


def test_every_step_of_an_event_gets_its_gaussian_and_other_noise_stays():
    noise, other = skellam_noise(100.0, 5.0), GaussianNoise(noise_multiplier=1.5)
    found = dominating_gaussian(noise)
    assert found is not None
    assert found.noise_multiplier == pytest.approx(math.sqrt(99.25) / 5)
    trials = PoissonTrials(mean=5.0)

    def event_of(one: SkellamNoise | GaussianNoise) -> Event:
        return Composed(
            events=(
                one,
                other,
                Repeated(count=3, event=PoissonSampled(sampling_rate=0.1, event=one)),
                PoissonSampledGroup(sampling_rate=0.1, group_size=3, event=one),
                SampledWithoutReplacement(cohort=2, population=10, event=one),
                BestOf(count=trials, trials=(one, other)),
            )
        )

    assert has_integer_noise(event_of(noise))
    assert replace_integer_noise(event_of(noise)) == event_of(found)
    assert not has_integer_noise(event_of(found))
