"""Integer noise against its exact distribution. Every test runs on a fixed key; rates say how likely it was to fail
when it was written, with sound samplers; no test's exceeds 1e-6.
"""

import math
from decimal import Decimal
from itertools import pairwise, repeat
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

from discreet.errors import InvalidInput
from discreet.privacy import skellam as law
from discreet.randomness.secret_streams import SecretRows, secret_generator
from discreet.randomness.streams import RunKey
from discreet.secure_sums.discrete_noise import gaussian_sampler
from discreet.secure_sums.discrete_noise.chunks import CHUNK, Integers
from discreet.secure_sums.discrete_noise.gaussian_sampler import draw_discrete_gaussian
from discreet.secure_sums.discrete_noise.skellam_sampler import draw_skellam
from tests.federations import CPU

KEY = bytes(range(32))
MODEL = {"weight": torch.zeros(30, 4), "bias": torch.zeros(4), "scale": torch.zeros(())}


def key(number: int) -> bytes:
    return number.to_bytes(32, "little")


def noise(kind: str, variance: float, size: int, number: int = 0, threads: int | None = None) -> Integers:
    draw = {"skellam": draw_skellam, "discrete_gaussian": draw_discrete_gaussian}[kind]
    return draw(key(number), variance, (size,), secret_generator, threads)


def mass(kind: str, variance: float) -> tuple[Integers, NDArray[np.float64]]:
    """Return all integers with relevant mass, and their probabilities."""
    reach = math.ceil(12 * math.sqrt(variance) + 40)
    k = np.arange(-reach, reach + 1)
    if kind == "skellam":
        return k, np.exp(law.log_pmf(k, variance))
    weights = np.exp(-k * k / (2 * variance))
    return k, weights / weights.sum()


def chi_square(drawn: Integers, k: Integers, probability: NDArray[np.float64]) -> float:
    """Return the p-value over cells of adjacent integers with an expected count of at least 50."""
    cells = np.floor(np.cumsum(probability) * min(400, len(drawn) / 50)).clip(0, 399).astype(int)
    expected = np.bincount(cells, probability * len(drawn))
    counts = np.bincount(cells[drawn - k[0]], minlength=len(expected))
    used = expected > 0
    rare = used & (expected < 20)
    expected, counts = (np.append(each[used & ~rare], each[rare].sum()) for each in (expected, counts))
    if expected[-1] < 20:
        expected[-2], counts[-2] = expected[-2] + expected[-1], counts[-2] + counts[-1]
        expected, counts = expected[:-1], counts[:-1]
    return float(stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue)


@pytest.mark.parametrize("variance", [0.1, 1.0, 7.5, 19.0, 21.0, 300.0, 1e4])
@pytest.mark.parametrize("kind", ["skellam", "discrete_gaussian"])
def test_draws_have_the_exact_mass(kind: str, variance: float) -> None:
    """Chi-square over up to 400 cells of a million draws, at 5e-8: 7e-7 over all variances and kinds.

    Rates on both sides of 10, where numpy changes its method. A variance off by 2 % adds 1e6·0.02²/2 = 200 to a
    statistic of 400 ± 28, and 160 is found.
    """
    drawn = noise(kind, variance, 1_000_000)
    assert drawn.dtype == np.int64
    assert chi_square(drawn, *mass(kind, variance)) > 5e-8


def test_the_chi_square_finds_the_other_noise() -> None:
    """A check that can fail: at variance 3 the two noises differ, by 5 % at 0."""
    assert chi_square(noise("skellam", 3.0, 1_000_000), *mass("discrete_gaussian", 3.0)) < 1e-12
    assert chi_square(noise("discrete_gaussian", 3.0, 1_000_000), *mass("skellam", 3.0)) < 1e-12


@pytest.mark.parametrize("variance", [1e6, 2e9, 2e11, 2e12])
@pytest.mark.parametrize("kind", ["skellam", "discrete_gaussian"])
def test_at_large_variances_it_is_normal_to_every_test(kind: str, variance: float) -> None:
    """Mean, variance, fourth moment and Kolmogorov-Smirnov of a million draws, each at 2e-8: 7e-7 in all.

    numpy's Poisson draws at a rate of 1e15 have a variance 3.7 % too large, z = 26 here.
    """
    n = 1_000_000
    drawn = noise(kind, variance, n) / math.sqrt(variance)
    assert abs(drawn.mean()) * math.sqrt(n) < 5.62
    assert abs(np.square(drawn).mean() - 1) / math.sqrt(2 / n) < 5.62
    assert abs((drawn**4).mean() - 3) / math.sqrt(96 / n) < 5.62
    assert stats.kstest(drawn, "norm").pvalue > 2e-8


@pytest.mark.parametrize("variance", [1e3, 2e8, 2e12])
@pytest.mark.parametrize("kind", ["skellam", "discrete_gaussian"])
def test_draws_lie_on_no_coarser_lattice(kind: str, variance: float) -> None:
    """gcd 1, and each of the lowest 8 bits is a fair coin: 48 z-tests at 6, a false-alarm rate of 1e-7.

    float32 would leave multiples of 8 at a rate of 1e8: bits 0 to 2 would always be 0.
    """
    drawn = noise(kind, variance, 200_000)
    assert np.gcd.reduce(drawn) == 1
    for bit in range(8 if variance > 1e6 else 3):
        assert abs(((drawn >> bit) & 1).mean() - 0.5) * 2 * math.sqrt(len(drawn)) < 6


def test_skellam_shares_sum_to_skellam_noise() -> None:
    """Ten shares of variance 2 against the exact mass of variance 20, chi-square at 5e-7."""
    total = sum(noise("skellam", 2.0, 400_000, number=i) for i in range(10))
    assert chi_square(np.asarray(total), *mass("skellam", 20.0)) > 5e-7


def test_discrete_gaussian_shares_do_not_sum_to_discrete_gaussian_noise() -> None:
    """With σ² = 1/4 the sum of two is 0 in 0.641 of all cases by convolution; N_Z(0, 1/2) is 0 in 0.564."""
    total = noise("discrete_gaussian", 0.25, 400_000) + noise("discrete_gaussian", 0.25, 400_000, number=1)
    k, probability = mass("discrete_gaussian", 0.25)
    convolved = np.convolve(probability, probability)
    assert chi_square(total, np.arange(2 * k[0], 2 * k[-1] + 1), convolved) > 5e-7
    assert chi_square(total, *mass("discrete_gaussian", 0.5)) < 1e-12


@pytest.mark.parametrize("kind", ["skellam", "discrete_gaussian"])
def test_the_number_of_threads_changes_nothing(kind: str) -> None:
    size = 3 * CHUNK + 17
    alone = noise(kind, 50.0, size, threads=1)
    assert (noise(kind, 50.0, size, threads=3) == alone).all()
    assert not (noise(kind, 50.0, size, number=1) == alone).all()
    assert not (alone[:CHUNK] == alone[CHUNK : 2 * CHUNK]).all()


@pytest.mark.parametrize("kind", ["skellam", "discrete_gaussian"])
def test_chunks_are_uncorrelated(kind: str) -> None:
    """r·√n for three neighbours among chunks of 65,536: |z| < 6 has a false-alarm rate of 6e-9."""
    parts = noise(kind, 1e6, 4 * CHUNK).reshape(4, CHUNK)
    for one, other in pairwise(parts):
        assert abs(np.corrcoef(one, other)[0, 1]) * math.sqrt(CHUNK) < 6


@pytest.mark.parametrize("variance", [0.0, -1.0, 1e-7, 1.1e13, 1e30, math.inf, math.nan])
@pytest.mark.parametrize("kind", ["skellam", "discrete_gaussian"])
def test_a_variance_that_the_sampler_cannot_do_is_refused(kind: str, variance: float) -> None:
    with pytest.raises(InvalidInput, match=r"between .* and got"):
        noise(kind, variance, 3)


def test_a_key_of_another_length_is_refused() -> None:
    with pytest.raises(InvalidInput, match="must be 32 bytes long, and this one has 5"):
        draw_skellam(b"short", 1.0, (3,), secret_generator)


def test_where_doubles_cannot_decide_exact_numbers_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """With doubles that are trusted to 3 digits only, one draw in some hundred is decided in full precision, and the
    mass stays exact: chi-square at 5e-7.
    """
    asked = []
    whole = gaussian_sampler._refine

    def count_call(*arguments: object) -> object:
        asked.append(1)
        return whole(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(gaussian_sampler, "UNSURE", 2e-3)
    monkeypatch.setattr(gaussian_sampler, "_refine", count_call)
    assert chi_square(noise("discrete_gaussian", 30.0, 100_000), *mass("discrete_gaussian", 30.0)) > 5e-7
    assert len(asked) > 500


@pytest.mark.parametrize(("variance", "size"), [(30.0, 4), (0.3, 1), (1e12, 2_500_000)])
def test_a_comparison_is_decided_by_its_last_bit(variance: float, size: int) -> None:
    """Uniform numbers that share 181 bits with e^−γ: the next word, all zeros or all ones, decides."""
    scale = math.isqrt(math.floor(variance)) + 1
    with mpmath.workdps(300):
        gamma = (size - mpmath.mpf(variance) / scale) ** 2 / (2 * mpmath.mpf(variance))
        bits = int(mpmath.floor(mpmath.exp(-gamma) * mpmath.mpf(2) ** 181))
    for last, below in ((0, True), (2**64 - 1, False)):
        words = iter([(bits >> 64) & (2**64 - 1), bits & (2**64 - 1), *repeat(last, 5)])
        generator = SimpleNamespace(bit_generator=SimpleNamespace(random_raw=lambda words=words: next(words)))
        refined = gaussian_sampler._refine(generator, (bits >> 128) * 2.0**-53)  # type: ignore[arg-type]
        assert gaussian_sampler._is_accepted_exactly(refined, variance, scale, size) is below


def test_a_geometric_number_is_decided_by_its_last_bit() -> None:
    """U that shares 181 bits with e^(−5/3): from above ⌊−3 ln U⌋ is 4, from below it is 5."""
    with mpmath.workdps(300):
        bits = int(mpmath.floor(mpmath.exp(-mpmath.mpf(5) / 3) * mpmath.mpf(2) ** 181))
    for last, value in ((0, 5), (2**64 - 1, 4)):
        words = iter([(bits >> 64) & (2**64 - 1), bits & (2**64 - 1), *repeat(last, 5)])
        generator = SimpleNamespace(bit_generator=SimpleNamespace(random_raw=lambda words=words: next(words)))
        refined = gaussian_sampler._refine(generator, (bits >> 128) * 2.0**-53)  # type: ignore[arg-type]
        assert gaussian_sampler._draw_geometric_exactly(refined, 3) == value


def test_a_refined_number_keeps_what_was_known_of_it() -> None:
    generator = np.random.default_rng(1)
    intervals = gaussian_sampler._refine(generator, 0.625)
    low, high, _ = next(intervals)
    inner_low, inner_high, _ = next(intervals)
    assert Decimal("0.625") <= low <= inner_low < inner_high <= high <= Decimal("0.625") + Decimal(2) ** -53


def test_a_uniform_number_of_zero_is_refined() -> None:
    """The one double that has no logarithm."""
    generator = SimpleNamespace(
        random=lambda size: np.zeros(size), bit_generator=SimpleNamespace(random_raw=lambda: 2**63)
    )
    value = gaussian_sampler._draw_geometric(generator, 10, 2)  # type: ignore[arg-type]
    assert value.tolist() == [math.floor(10 * 54 * math.log(2))] * 2  # U = 2^-54


@pytest.mark.parametrize("kind", ["simulated", "secret"])
@pytest.mark.parametrize("name", ["skellam", "discrete_gaussian"])
class TestStreams:
    """Both kinds of streams draw shares of integer noise like other noise."""

    def rows(self, kind: str, clients: tuple[int, ...]) -> SecretRows:
        if kind == "secret":
            return SecretRows(KEY, 0, bytes(32), (), clients, CPU)
        return RunKey(KEY).rows(0, bytes(32), clients, CPU)  # type: ignore[return-value]

    def test_a_share_has_the_shape_of_the_model_in_int64(self, kind: str, name: str) -> None:
        share = getattr(self.rows(kind, (0, 1)).open(), name)(MODEL, 100.0)
        assert {each: (value.shape, value.dtype) for each, value in share.items()} == {
            each: ((2, *value.shape), torch.int64) for each, value in MODEL.items()
        }

    def test_a_client_draws_the_same_whoever_shares_its_block_and_in_any_order(self, kind: str, name: str) -> None:
        alone = getattr(self.rows(kind, (7,)).open(), name)(MODEL, 100.0)
        together = getattr(self.rows(kind, (3, 7)).open(), name)(dict(reversed(MODEL.items())), 100.0)
        assert all(torch.equal(alone[each][0], together[each][1]) for each in MODEL)
        assert not torch.equal(together["weight"][0], together["weight"][1])

    def test_the_stream_goes_on(self, kind: str, name: str) -> None:
        stream, again = self.rows(kind, (0,)).open(), self.rows(kind, (0,)).open()
        first, second = getattr(stream, name)(MODEL, 100.0), getattr(stream, name)(MODEL, 100.0)
        assert torch.equal(first["weight"], getattr(again, name)(MODEL, 100.0)["weight"])
        assert not torch.equal(first["weight"], second["weight"])

    def test_it_has_the_variance_that_was_asked_for(self, kind: str, name: str) -> None:
        """z-test of the variance of 100,000 draws at 6: a false-alarm rate of 2e-9 each."""
        drawn = getattr(self.rows(kind, (0,)).open(), name)({"w": torch.zeros(100_000)}, 1e6)["w"].double()
        assert abs(float(drawn.square().mean()) / 1e6 - 1) / math.sqrt(2 / 100_000) < 6
