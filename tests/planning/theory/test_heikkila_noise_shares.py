"""Noise shares in a sum of different clients, against exact Gaussian pairs and against simulated sums."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special

from discreet.errors import InvalidInput, UnsoundCombination
from discreet.planning.theory import heikkila_noise_shares
from discreet.planning.theory.heikkila_noise_shares import Client
from discreet.privacy import accountant, gaussian, parallel_composition
from discreet.privacy.events import GaussianNoise, PoissonSampled, Repeated, steps

ONE = Client(learning_rates=(1.0,), clip_norm=1.0, noise_multiplier=1.0)
amounts = st.floats(0.05, 20)
clients = st.builds(
    Client,
    learning_rates=st.lists(amounts, min_size=1, max_size=4).map(tuple),
    clip_norm=amounts,
    noise_multiplier=amounts,
    sampling_rate=st.floats(0.01, 1),
)


def mixture(shifts: list[float], chances: list[float], epsilon: float) -> tuple[float, float]:
    """Exact δ of Σ chance·N(shift, 1) against N(0, 1), and backwards: their ratio rises, so thresholds are best."""
    at, chance = np.array(shifts), np.array(chances)

    def loss(x: float) -> float:
        return float(special.logsumexp(np.log(chance) + at * x - at**2 / 2))

    def excess(x: float, level: float) -> float:
        return float(chance @ special.ndtr(at - x)) - level * float(special.ndtr(-x))

    forward = excess(optimize.brentq(lambda x: loss(x) - epsilon, -60, 60), math.exp(epsilon))
    least = math.log(chances[0]) if shifts[0] == 0 else -math.inf
    if -epsilon <= least:
        return forward, 0.0
    x = optimize.brentq(lambda x: loss(x) + epsilon, -60, 60)
    return forward, float(special.ndtr(x)) - math.exp(epsilon) * float(chance @ special.ndtr(x - at))


def binomial(times: int, rate: float) -> list[float]:
    return [math.comb(times, k) * rate**k * (1 - rate) ** (times - k) for k in range(times + 1)]


def test_shares_add_up_to_the_whole_for_those_who_are_there_and_honest() -> None:
    assert heikkila_noise_shares.noise_share(4.0, 16) == 1.0
    assert heikkila_noise_shares.noise_share(4.0, 10, colluding=4, dropouts=2) == 2.0
    assert heikkila_noise_shares.sum_noise(2.0, 8, colluding=4) == 4.0  # 2 of 10 dropped out, as planned
    assert heikkila_noise_shares.sum_noise(2.0, 10, colluding=1) == 6.0  # everybody joined, and one colludes
    with pytest.raises(UnsoundCombination, match="Of 3 clients, 1 collude and 2 drop out"):
        heikkila_noise_shares.noise_share(1.0, 3, colluding=1, dropouts=2)
    with pytest.raises(UnsoundCombination, match="at least one has to remain to add noise"):
        heikkila_noise_shares.sum_noise(1.0, 2, colluding=2)
    with pytest.raises(UnsoundCombination, match="-5 collude"):  # no noise is added for it
        heikkila_noise_shares.noise_share(1.0, 3, colluding=-5)


def test_a_sum_of_shares_that_were_drawn_has_the_deviation_of_the_whole() -> None:
    """Of 200,000 normals, the variance is within 5·√(2/200000) of its mean except in one run in 1.7 million."""
    drawn = (
        np.random.default_rng(1)
        .normal(0, heikkila_noise_shares.noise_share(3.0, 9, colluding=2), (7, 200_000))
        .sum(axis=0)
    )
    assert drawn.var() == pytest.approx(9.0, rel=5 * math.sqrt(2 / 200_000))


def test_a_learning_rate_ten_times_smaller_brings_a_hundredth_of_the_variance() -> None:
    """Two clients, C = σ = 1, γ = 1 and 1/10: the variance is 1.01, where the paper's formula prints 2."""
    slow = Client(learning_rates=(0.1,), clip_norm=1.0, noise_multiplier=1.0)
    fast, other = heikkila_noise_shares.noise_multipliers([ONE, slow])
    assert fast**2 == pytest.approx(1.01)
    assert other**2 == pytest.approx(101)  # whose examples count a tenth, under nearly the same noise


@given(st.lists(clients.filter(lambda client: client.steps == 1), min_size=1, max_size=5))
def test_the_least_of_them_is_the_papers_sensitivity_and_the_corrected_variance(unlike: list[Client]) -> None:
    ratios = [unlike[0].learning_rates[0] / client.learning_rates[0] for client in unlike]  # l_i, so l_1 = 1
    most = max(client.clip_norm / ratio for client, ratio in zip(unlike, ratios, strict=True))
    variance = sum(
        (client.clip_norm * client.noise_multiplier / (ratio * most)) ** 2
        for client, ratio in zip(unlike, ratios, strict=True)
    )
    assert min(heikkila_noise_shares.noise_multipliers(unlike)) ** 2 == pytest.approx(variance)


def test_sums_of_unlike_clients_that_were_drawn_have_the_noise_that_is_named() -> None:
    """200,000 rounds of three clients: as above, one false alarm in 1.7 million."""
    unlike = [
        Client(learning_rates=(0.5, 0.2), clip_norm=2.0, noise_multiplier=1.5),
        Client(learning_rates=(1.0,), clip_norm=0.7, noise_multiplier=3.0),
        Client(learning_rates=(0.3, 0.3, 0.3), clip_norm=1.0, noise_multiplier=0.4),
    ]
    generator, total = np.random.default_rng(2), np.zeros(200_000)
    for client in unlike:
        for rate in client.learning_rates:
            total -= rate * generator.normal(0, client.clip_norm * client.noise_multiplier, total.size)
    for client, noise in zip(unlike, heikkila_noise_shares.noise_multipliers(unlike), strict=True):
        moved = client.clip_norm * math.hypot(*client.learning_rates)
        assert total.std() == pytest.approx(noise * moved, rel=5 * math.sqrt(2 / 200_000) / 2)


def test_whoever_is_missing_takes_the_most_noise_with_them_and_nobody_loses_their_own() -> None:
    loud = Client(learning_rates=(1.0,), clip_norm=1.0, noise_multiplier=10.0)
    assert heikkila_noise_shares.noise_multipliers([ONE, ONE, loud], missing=1) == pytest.approx(
        (math.sqrt(2), math.sqrt(2), math.sqrt(101))
    )
    assert heikkila_noise_shares.noise_multipliers([ONE, loud], missing=1) == (1.0, 10.0)
    with pytest.raises(UnsoundCombination, match="at least one has to remain to be protected"):
        heikkila_noise_shares.noise_multipliers([ONE, loud], missing=2)


def test_alike_clients_have_the_theorem_whatever_the_learning_rates_of_the_steps() -> None:
    nine = [Client(learning_rates=(0.5, 0.1, 0.01), clip_norm=3.0, noise_multiplier=2.0, sampling_rate=0.1)] * 9
    for event in (*heikkila_noise_shares.round_events(nine), heikkila_noise_shares.covering_event(nine)):
        ((step, count),) = steps(event).items()
        assert isinstance(step, PoissonSampled)
        assert isinstance(step.event, GaussianNoise)
        assert (step.sampling_rate, count) == (0.1, 3)
        assert step.event.noise_multiplier == pytest.approx(6.0)


@given(st.lists(clients, min_size=1, max_size=4), st.integers(0, 3))
def test_without_sampling_no_sum_tells_more_than_is_counted_and_equal_rates_tell_as_much(
    unlike: list[Client], victim: int
) -> None:
    """An example in every batch moves the sum by C·Σγ_s: μ is that over the sum's deviation, exactly."""
    at = victim % len(unlike)
    client, deviation = unlike[at], math.hypot(*(each.deviation for each in unlike))
    exact = client.clip_norm * sum(client.learning_rates) / deviation
    counted = math.sqrt(client.steps) / heikkila_noise_shares.noise_multipliers(unlike)[at]
    assert exact <= counted * (1 + 1e-12)
    if len(set(client.learning_rates)) == 1:
        assert exact == pytest.approx(counted)


FUSED = [(2, 0.1, 1.0), (2, 0.5, 2.0), (3, 0.1, 0.5), (5, 0.2, 1.0), (10, 0.05, 1.0)]


@pytest.mark.parametrize(("times", "rate", "noise"), FUSED)
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.0, 2.0])
def test_a_client_with_more_steps_is_covered_where_an_example_may_lie_in_several_of_its_batches(
    times: int, rate: float, noise: float, epsilon: float
) -> None:
    """One client takes one step and the other `times`, in one sum of deviation noise·times·C: the exact mixture over
    how many batches contain an example is dominated, in both directions.
    """
    many = Client(learning_rates=(1.0,) * times, clip_norm=1 / times, noise_multiplier=0.1, sampling_rate=rate)
    rest = math.sqrt(noise**2 - many.deviation**2)
    events = heikkila_noise_shares.round_events(
        [Client(learning_rates=(1.0,), clip_norm=1.0, noise_multiplier=rest), many]
    )
    exact = mixture([k / times / noise for k in range(times + 1)], binomial(times, rate), epsilon)
    assert max(exact) <= accountant.delta(events[1], epsilon) * (1 + 1e-6) + 1e-12
    ((step, count),) = steps(events[0]).items()
    assert isinstance(step, GaussianNoise)
    assert (step.noise_multiplier, count) == (pytest.approx(noise), 1)


def test_a_fused_step_is_no_poisson_batch_of_the_same_rate_as_the_paper_counts_it() -> None:
    """Two halves at q = 0.1, σ = ½ of their sum: one Poisson batch has δ(0) = 0.068, and the mixture 0.075."""
    exact, _ = mixture([0.0, 1.0, 2.0], binomial(2, 0.1), 0.0)
    papers, _ = mixture([0.0, 2.0], binomial(1, 0.1), 0.0)
    assert papers == pytest.approx(0.1 * gaussian.delta(2.0, 0.0))
    assert exact > 1.1 * papers


def test_directions_that_differ_between_batches_never_tell_more_than_one_line() -> None:
    """The worst case of the mixture, on a plane: two batches at an angle, by hockey-stick sums on a grid."""
    line = np.linspace(-9, 11, 501)
    x, y = np.meshgrid(line, line)
    cell = (line[1] - line[0]) ** 2

    def normal(a: float, b: float) -> np.ndarray:
        return np.exp(-((x - a) ** 2 + (y - b) ** 2) / 2) / (2 * math.pi) * cell

    chances = binomial(2, 0.3)
    for epsilon in (0.0, 0.3, 1.0):
        bound = mixture([0.0, 1.0, 2.0], chances, epsilon)
        for angle in (0.0, 0.5, 1.5, math.pi):
            a, b = (1.0, 0.0), (math.cos(angle), math.sin(angle))
            p = chances[0] * normal(0, 0) + chances[1] / 2 * (normal(*a) + normal(*b))
            p += chances[2] * normal(a[0] + b[0], a[1] + b[1])
            q = normal(0, 0)
            found = np.maximum(p - math.exp(epsilon) * q, 0).sum(), np.maximum(q - math.exp(epsilon) * p, 0).sum()
            assert found[0] <= bound[0] + 1e-5
            assert found[1] <= bound[1] + 1e-5


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99), st.floats(0.3, 5), st.floats(0, 3))
def test_a_larger_sampling_rate_costs_more_in_both_directions(p: float, q: float, noise: float, epsilon: float) -> None:
    low, high = sorted((p, q))
    less, more = (mixture([0.0, 1 / noise], [1 - rate, rate], epsilon) for rate in (low, high))
    assert less[0] <= low / high * more[0] + 1e-12
    assert less[1] <= low / high * more[1] + 1e-12


def test_one_event_covers_clients_whose_sampling_rates_differ_and_the_largest_rate_decides() -> None:
    rates = (0.02, 0.1, 0.05)
    unlike = [Client(learning_rates=(1.0,) * 5, clip_norm=1.0, noise_multiplier=0.8, sampling_rate=q) for q in rates]
    each = [accountant.epsilon(event, 1e-5) for event in heikkila_noise_shares.round_events(unlike)]
    everyone = accountant.epsilon(heikkila_noise_shares.covering_event(unlike), 1e-5)
    assert each[0] < each[2] < each[1] == everyone
    assert parallel_composition.epsilon(heikkila_noise_shares.round_events(unlike), 1e-5) == everyone


def test_one_event_covers_clients_who_differ_in_everything() -> None:
    unlike = [
        Client(learning_rates=(1.0,), clip_norm=1.0, noise_multiplier=0.8, sampling_rate=0.3),
        Client(learning_rates=(0.1,) * 8, clip_norm=2.0, noise_multiplier=1.1, sampling_rate=0.05),
    ]
    everyone = accountant.epsilon(heikkila_noise_shares.covering_event(unlike), 1e-5)
    assert all(accountant.epsilon(event, 1e-5) <= everyone for event in heikkila_noise_shares.round_events(unlike))


def test_alone_a_client_has_its_own_noise_only() -> None:
    client = Client(learning_rates=(0.1, 0.2), clip_norm=2.0, noise_multiplier=1.5, sampling_rate=0.1)
    step = PoissonSampled(sampling_rate=0.1, event=GaussianNoise(noise_multiplier=1.5))
    assert heikkila_noise_shares.local_event(client) == Repeated(count=2, event=step)


@pytest.mark.parametrize("wrong", [{"learning_rates": ()}, {"learning_rates": (0.0,)}, {"sampling_rate": 0.0}])
def test_a_client_without_steps_or_with_a_number_that_means_nothing_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        Client(**{"learning_rates": (1.0,), "clip_norm": 1.0, "noise_multiplier": 1.0, **wrong})  # type: ignore[arg-type]
