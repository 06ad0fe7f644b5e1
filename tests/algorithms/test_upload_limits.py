"""What no honest client sends is not taken as it is, and what honest clients send is taken unchanged."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.honest_upload import FALSE_ALARM, gaussian_norm, integer_norm, laplace_norm
from discreet.algorithms.mechanisms import AdaptiveGaussian, Gaussian, LocalNoise
from discreet.algorithms.mechanisms.adaptive_gaussian import FLAG
from discreet.algorithms.sparsifiers import RandomK
from discreet.algorithms.training import DpSgd, LocalSgd
from discreet.algorithms.upload_limits import OversizedUpload, find_honest_upload, oversized_sum, take_upload
from discreet.engines.engine import Simulation
from discreet.params import Params, add, norms, scale, sum_clients
from discreet.randomness.streams import RunKey
from tests.algorithms.test_contract import EVERY
from tests.algorithms.training.test_contract import HELD, PARAMS, loss

POPULATION = HELD.population
CLEAR = {name: each for name, each in EVERY.items() if not each.aggregation.is_secure}
SECURE = {name: each for name, each in EVERY.items() if each.aggregation.is_secure}
UNBOUNDED = {name for name in CLEAR if name.endswith(", none") and name not in {"dp_sgd, none", "minibatch_dp, none"}}


def send(algorithm: Algorithm, round: int = 0) -> tuple[Broadcast, list[Params]]:
    """Return a broadcast and what each of three honest clients sends for it."""
    broadcast = algorithm.broadcast(algorithm.init(PARAMS), round)
    rows = Simulation(algorithm, HELD, loss(), RunKey.from_seed(5)).step(broadcast, [0, 1, 2]).rows
    return broadcast, [{name: value[at] for name, value in rows.items()} for at in range(3)]


@pytest.mark.parametrize("name", CLEAR)
def test_what_an_honest_client_sends_in_clear_is_taken_as_it_is(name: str) -> None:
    broadcast, rows = send(CLEAR[name])
    for client, row in enumerate(rows):
        taken = take_upload(CLEAR[name], broadcast, client, row, POPULATION)
        assert taken.problem is None
        assert taken.row is row


@pytest.mark.parametrize("name", sorted(CLEAR.keys() - UNBOUNDED))
def test_a_huge_finite_upload_is_clipped_or_refused(name: str) -> None:
    algorithm = CLEAR[name]
    broadcast, (row, *_) = send(algorithm)
    honest = find_honest_upload(algorithm, 0, 0, POPULATION)
    assert honest is not None
    huge = {each: torch.full_like(value, 1e30) for each, value in row.items()}
    if honest.deviation:
        with pytest.raises(OversizedUpload, match=r"norm of .* and an honest one has more than .* at most 1e-30"):
            take_upload(algorithm, broadcast, 0, huge, POPULATION)
        return
    taken = take_upload(algorithm, broadcast, 0, huge, POPULATION)
    assert taken.problem is not None
    assert "no honest one has more than" in taken.problem
    assert float(norms({each: value[None] for each, value in taken.row.items()})) <= 1 + 1e-9


@pytest.mark.parametrize("name", sorted(UNBOUNDED))
def test_without_a_clip_and_without_noise_nothing_is_known_of_an_honest_upload(name: str) -> None:
    assert find_honest_upload(CLEAR[name], 0, 0, POPULATION) is None


@pytest.mark.parametrize("name", SECURE)
def test_a_sum_of_honest_clients_passes_and_a_huge_one_does_not(name: str) -> None:
    algorithm = SECURE[name]
    broadcast, rows = send(algorithm)
    total = sum_clients({each: torch.stack([row[each] for row in rows]) for each in rows[0]})
    assert oversized_sum(algorithm, broadcast, total, (0, 1, 2), POPULATION) is None
    assert broadcast.encoding is not None
    half_ring = {each: torch.full_like(value, 2 ** (broadcast.encoding.bits - 1) - 1) for each, value in total.items()}
    found = oversized_sum(algorithm, broadcast, half_ring, (0, 1, 2), POPULATION)
    assert found is not None
    assert found[0] > found[1]


def test_the_limit_of_a_sum_follows_from_those_who_are_in_it() -> None:
    algorithm = SECURE["local_sgd, skellam"]
    load = [algorithm.sum_load(POPULATION, joined) for joined in ((0,), (0, 1), (0, 1, 2), None)]
    assert [each.vectors for each in load if each is not None] == [1, 2, 3, 3]
    assert load[2] == load[3]


def test_a_hostile_flag_counts_for_one_client_and_not_for_ten() -> None:
    """Unchecked, a flag of 1 would move the share of clients below the clip by ten flags of 0.1."""
    mechanism = AdaptiveGaussian(clip_norm=1.0, noise_multiplier=1.0, flag=0.1)
    algorithm = Algorithm(trainer=LocalSgd(learning_rate=0.1, batch_size=4, epochs=1), mechanism=mechanism)
    broadcast, (row, *_) = send(algorithm.for_population(POPULATION))
    lie = row | {FLAG: torch.ones_like(row[FLAG])}
    taken = take_upload(algorithm, broadcast, 0, lie, POPULATION)
    assert float(taken.row[FLAG]) == pytest.approx(0.1)
    assert all(torch.equal(taken.row[name], row[name]) for name in PARAMS)


def test_huge_numbers_do_not_turn_rounding_into_a_look_at_another_client() -> None:
    """In single precision 2^30 + 64 + s is 2^30 or 2^30 + 128, by the sign of s: noise of 1 would hide neither."""
    algorithm = Algorithm(
        trainer=LocalSgd(learning_rate=0.1, batch_size=4, epochs=1),
        mechanism=Gaussian(clip_norm=1.0, noise_multiplier=1.0),
    )
    start = {name: value.float() for name, value in PARAMS.items()}
    broadcast = algorithm.broadcast(algorithm.init(start), 0)

    def release_sum(secret: float, *, limited: bool) -> float:
        sent = [64.0, secret, 2.0**30, -(2.0**30)]
        total = {name: torch.zeros_like(value) for name, value in start.items()}
        for client, number in enumerate(sent):
            row = {name: torch.zeros_like(value) for name, value in start.items()}
            row["bias"][0] = number
            taken = take_upload(algorithm, broadcast, client, row, POPULATION).row if limited else row
            total = add(total, taken)
        return float(total["bias"][0])

    assert release_sum(0.01, limited=False) - release_sum(-0.01, limited=False) == 128
    assert release_sum(0.01, limited=True) - release_sum(-0.01, limited=True) == pytest.approx(0.02, abs=1e-6)


def test_each_client_is_judged_by_its_own_noise_and_its_own_weight() -> None:
    own = LocalNoise(kind="local_gaussian", clip_norm=1.0, noise_multiplier=(1.0, 2.0, 3.0))
    algorithm = Algorithm(trainer=LocalSgd(learning_rate=0.1, batch_size=4, epochs=1), mechanism=own)
    honest = [find_honest_upload(algorithm, 0, client, POPULATION) for client in range(3)]
    assert [each.deviation for each in honest if each is not None] == [1.0, 2.0, 3.0]
    noisy = DpSgd(steps=(1,), sampling_rate=1.0, clip_norm=1.0, learning_rate=1.0, noise_multiplier=2.0)
    weighed = find_honest_upload(Algorithm(trainer=noisy, weighting="by_examples"), 0, 0, POPULATION)
    plain = find_honest_upload(Algorithm(trainer=noisy), 0, 0, POPULATION)
    assert plain is not None
    assert weighed is not None
    assert (plain.norm, plain.deviation) == (1.0, pytest.approx(2 / 7))  # seven examples, each clipped to 1
    assert weighed.deviation / plain.deviation == pytest.approx(7 / (22 / 3))  # 7 of 22 examples of three clients


def test_momentum_lengthens_what_is_honest_and_weight_decay_leaves_it_unknown() -> None:
    noisy = DpSgd(steps=(2,), sampling_rate=1.0, clip_norm=1.0, learning_rate=1.0, noise_multiplier=7.0)
    found = find_honest_upload(Algorithm(trainer=replace(noisy, momentum=0.5)), 0, 0, POPULATION)
    assert found is not None
    assert found.norm == pytest.approx(2 * 1.5)  # two steps of length 1; the first also moves by half in the second
    assert found.deviation == pytest.approx(math.hypot(1, 1.5))
    assert find_honest_upload(Algorithm(trainer=replace(noisy, weight_decay=0.1)), 0, 0, POPULATION) is None
    sparse = Algorithm(trainer=noisy, sparsifier=RandomK(fraction=0.5, scaled=True))
    assert find_honest_upload(sparse, 0, 0, POPULATION) is None  # it doubles what training bounds


@pytest.mark.parametrize("dimension", [1, 10, 650, 10**6])
@pytest.mark.parametrize("probability", [1e-3, 1e-9, FALSE_ALARM])
def test_norms_of_noise_exceed_their_limits_no_more_often_than_is_said(dimension: int, probability: float) -> None:
    """The exact tails are chi's and gamma's."""
    assert stats.chi.sf(gaussian_norm(dimension, probability), dimension) <= probability
    assert stats.gamma.sf(laplace_norm(dimension, probability), dimension) <= probability
    exact = stats.chi.isf(probability, dimension)
    assert gaussian_norm(dimension, probability) <= exact + 1 + 0.42 * math.sqrt(-math.log(probability))


@pytest.mark.parametrize("deviation", [0.3, 2.0, 300.0])
def test_the_norm_of_integer_noise_exceeds_its_limit_no_more_often_than_is_said(deviation: float) -> None:
    """20,000 draws: none above the limit of 1e-12, and few above that of 0.05 (at most 0.05, and far fewer)."""
    draw, rate, dimension = np.random.default_rng(3), deviation**2 / 2, 20
    noise = draw.poisson(rate, (20_000, dimension)) - draw.poisson(rate, (20_000, dimension))
    found = np.linalg.norm(noise, axis=1)
    assert (found > integer_norm("skellam", dimension, deviation, 0.05)).mean() <= 0.05
    assert found.max() < integer_norm("skellam", dimension, deviation, 1e-12)
    rounded = np.linalg.norm(np.round(draw.normal(0, 300.0, (20_000, dimension))), axis=1)
    assert (rounded > integer_norm("discrete_gaussian", dimension, 300.0, 0.05)).mean() <= 0.05


def test_the_limit_of_a_sum_is_little_above_that_of_gaussian_noise() -> None:
    assert integer_norm("skellam", 650, 300.0, 1e-12) < 300 * gaussian_norm(650, 1e-12)
    assert integer_norm("skellam", 10**6, 300.0, 1e-12) < 300 * gaussian_norm(10**6, 1e-12)


def test_an_upload_just_at_the_limit_is_taken() -> None:
    algorithm = CLEAR["local_sgd, local"]
    broadcast, (row, *_) = send(algorithm)
    honest = find_honest_upload(algorithm, 0, 0, POPULATION)
    assert honest is not None
    length = float(norms({each: value[None] for each, value in row.items()}))
    at_limit = scale(row, honest.limit(18) / length)
    assert take_upload(algorithm, broadcast, 0, scale(at_limit, 1 - 1e-9), POPULATION).problem is None
    with pytest.raises(OversizedUpload):
        take_upload(algorithm, broadcast, 0, scale(at_limit, 1.001), POPULATION)
