"""Simulated and secret streams: the same tests for both.

All keys are fixed, so a test that passes continues to pass. The false-alarm rates say how likely it was to fail when it
was written, with sound streams; no test's exceeds 1e-6.
"""

import hashlib
import math
import random
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from scipy import stats

from discreet.errors import InvalidInput
from discreet.params import Params
from discreet.randomness.purposes import Purpose
from discreet.randomness.secret_streams import SecretRows
from discreet.randomness.streams import Rows, RunKey, _derive
from tests.federations import CPU

SECRET = b"a secret of exactly 32 bytes ..."
KEY = RunKey(SECRET)
DIGEST = bytes(range(32))
NAMES = [("a", "b"), ("ab",), ("a, b",), ("a', 'b",), ("b", "a"), (1,), ("1",)]
MODEL = {"weight": torch.zeros(30, 4), "bias": torch.zeros(4), "scale": torch.zeros(())}


def block(kind: str, clients: tuple[int, ...] = (0,), round: int = 0, digest: bytes = DIGEST) -> SecretRows:
    """Return rows of either kind; typed as one of them, since both have what the tests use."""
    if kind == "secret":
        return SecretRows(SECRET, round, digest, (), clients, CPU)
    return KEY.rows(round, digest, clients, CPU)  # type: ignore[return-value]


def long(rows: Rows, numbers: int, dtype: torch.dtype = torch.float64) -> np.ndarray:
    return rows.open().normal({"w": torch.zeros(numbers, dtype=dtype)})["w"][0].numpy()


def are_equal(left: Params, right: Params) -> bool:
    return all(torch.equal(left[name], right[name]) for name in left)


@pytest.fixture(params=["simulated", "secret"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_opened_again_a_stream_starts_from_its_beginning(kind: str) -> None:
    first, again = block(kind, (0, 1)).open(), block(kind, (0, 1)).open()
    assert are_equal(first.normal(MODEL), again.normal(MODEL))
    assert torch.equal(first.uniform([5, 3]), again.uniform([5, 3]))


def test_a_stream_goes_on_where_it_was_left(kind: str) -> None:
    whole, pieces = block(kind).open(), block(kind).open()
    assert whole.uniform([10])[0].tolist() == [*pieces.uniform([4])[0].tolist(), *pieces.uniform([6])[0].tolist()]
    assert not are_equal(whole.normal(MODEL), whole.normal(MODEL))


def test_a_client_draws_the_same_whoever_shares_its_block(kind: str) -> None:
    alone, together = block(kind, (7,)).open(), block(kind, (3, 7)).open()
    assert torch.equal(alone.normal(MODEL)["weight"][0], together.normal(MODEL)["weight"][1])
    assert torch.equal(alone.uniform([6])[0], together.uniform([2, 6])[1])


def test_noise_has_the_shape_the_type_and_the_order_of_what_it_is_for(kind: str) -> None:
    for dtype in (torch.float32, torch.float64):
        noise = block(kind, (0, 1)).open().normal({name: value.to(dtype) for name, value in MODEL.items()})
        assert [(name, value.shape, value.dtype) for name, value in noise.items()] == [
            (name, (2, *value.shape), dtype) for name, value in MODEL.items()
        ]


def test_the_order_of_the_names_changes_no_noise(kind: str) -> None:
    turned = dict(reversed(MODEL.items()))
    assert list(turned) != list(MODEL)
    assert are_equal(block(kind).open().normal(MODEL), block(kind).open().normal(turned))


def test_streams_of_different_places_are_uncorrelated(kind: str) -> None:
    """r·√n is standard normal: |z| < 6 in 55 pairs has a false-alarm rate of 1.1e-7.

    A correlation of 0.05 has z = 10.
    """
    here = block(kind)
    places = [
        here,
        block(kind, (1,)),
        block(kind, round=1),
        block(kind, digest=DIGEST[::-1]),
        *(replace(here, name=(*here.name, *name)) for name in NAMES),
    ]
    drawn = [long(rows, 40_000) for rows in places]
    for one, other in combinations(drawn, 2):
        assert abs(np.corrcoef(one, other)[0, 1]) * math.sqrt(40_000) < 6


def test_the_noise_and_the_numbers_of_one_stream_are_unrelated(kind: str) -> None:
    """Rank correlation of the noise's size and the number: |z| < 6 has a false-alarm rate of 2e-9.

    Torch's normals of the same seed have a correlation of 0.32, z = 64.
    """
    stream = block(kind).open()
    sizes = stream.normal({"w": torch.zeros(40_000, dtype=torch.float64)})["w"][0].abs().numpy()
    ranks = stats.spearmanr(sizes, stream.uniform([40_000])[0].numpy()).statistic
    assert abs(ranks) * math.sqrt(40_000) < 6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_noise_is_standard_normal(kind: str, dtype: torch.dtype) -> None:
    """Mean, variance, Kolmogorov-Smirnov and chi-square over 18 cells to ±4, each at 1e-7: 4e-7 in all.

    On two million draws a mean off by 0.01 has z = 14, a variance off by 1 % z = 10. Noise cut off at 4 leaves two
    cells empty that should hold 63 each: chi-square grows from about 17 by 127, and 67 is found.
    """
    n = 2_000_000
    noise = long(block(kind), n, dtype).astype(np.float64)
    assert abs(noise.mean()) * math.sqrt(n) < 5.33
    assert abs(np.square(noise).mean() - 1) / math.sqrt(2 / n) < 5.33
    assert stats.kstest(noise, "norm").pvalue > 1e-7
    edges = np.array([-math.inf, *np.arange(-4, 4.5, 0.5), math.inf])
    assert stats.chisquare(np.histogram(noise, edges)[0], n * np.diff(stats.norm.cdf(edges))).pvalue > 1e-7


def test_numbers_are_uniform_to_53_bits_and_2_past_the_end(kind: str) -> None:
    """Kolmogorov-Smirnov and a z-test of the lowest bit, each at 1e-7.

    A rate off by 1 % moves the distribution by 0.01, where 0.0065 is found; numbers of 32 bits have z = 447.
    """
    numbers = block(kind, (0, 1)).open().uniform([200_000, 3])
    assert (numbers.device, numbers.dtype, numbers.shape) == (CPU, torch.float64, (2, 200_000))
    assert bool((numbers[1, 3:] == 2).all())
    assert bool((numbers[1, :3] < 1).all())
    row = numbers[0].numpy()
    assert row.min() >= 0
    assert row.max() < 1
    assert stats.kstest(row, "uniform").pvalue > 1e-7
    lowest = (row * 2.0**53).astype(np.uint64) % 2
    assert abs(lowest.mean() - 0.5) / math.sqrt(0.25 / len(row)) < 5.33


def test_drawing_touches_no_stream_but_its_own(kind: str) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # type: ignore[index]
    rows = block(kind)
    with rows.seed_network():
        first = torch.rand(3)
    with rows.seed_network():
        assert torch.equal(torch.rand(3), first)
    with rows.for_purpose(Purpose.TRAIN).seed_network():
        assert not torch.equal(torch.rand(3), first)
    stream = rows.open()
    stream.normal(MODEL), stream.uniform([9])
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before[1:]  # type: ignore[index]


def test_two_fresh_keys_share_no_stream() -> None:
    one, other = (RunKey.generate().rows(0, DIGEST, [0], CPU) for _ in range(2))
    assert not are_equal(one.open().normal(MODEL), other.open().normal(MODEL))


def test_the_key_never_shows(kind: str) -> None:
    rows = block(kind)
    stream = rows.for_purpose(Purpose.NOISE).open()
    stream.normal(MODEL)
    for shown in (repr(KEY), repr(rows), repr(stream), str(stream)):
        assert "secret of" not in shown
        assert SECRET.hex() not in shown


def test_laplace_noise_is_laplace(kind: str) -> None:
    """Kolmogorov-Smirnov over 100,000: a false-alarm rate of 1e-6 at 0.0085; a normal like it lies 0.06 off."""
    drawn = block(kind).open().laplace({"w": torch.zeros(100_000, dtype=torch.float64)})["w"][0].numpy()
    assert stats.kstest(drawn, stats.laplace.cdf).statistic < 0.0085
    assert are_equal(block(kind).open().laplace(MODEL), block(kind).open().laplace(dict(reversed(MODEL.items()))))


def test_a_simulated_stream_is_the_mersenne_twister_of_its_own_624_words() -> None:
    """Equal to numpy's twister with the same words, so all words count, and not only 32 bits of a seed."""
    words = hashlib.shake_256(_derive(SECRET, ("sampling", 1))).digest(4 * 624)
    twister = np.random.MT19937()
    key = np.frombuffer(words, dtype="<u4")
    twister.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": 624}}
    raw = twister.random_raw(1000)
    drawn = torch.empty(1000, dtype=torch.float32).uniform_(generator=KEY.generator(Purpose.SAMPLING, 1))
    assert drawn.tolist() == ((raw & (2**24 - 1)) / 2**24).tolist()


def test_no_two_of_a_hundred_thousand_streams_are_one() -> None:
    """By 32 bits of a seed, 1.2 pairs would be expected, and with two numbers of 53 bits none by chance (1e-22)."""
    firsts = torch.cat([KEY.rows(round, DIGEST, range(1000), CPU).open().uniform([2] * 1000) for round in range(100)])
    assert len({tuple(row) for row in firsts.tolist()}) == 100_000


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int64], ids=str)
@pytest.mark.parametrize(
    "rows", [KEY.rows(0, DIGEST, [0, 1], CPU), KEY.secret_rows(0, DIGEST, 0)], ids=["simulated", "secret"]
)
def test_noise_of_few_digits_is_refused_in_one_sentence(rows: Rows, dtype: torch.dtype) -> None:
    like = {"b": torch.zeros(3), "w": torch.zeros(3, dtype=dtype)}
    sentence = f"Noise is drawn for float32 or float64, and 'w' is {str(dtype).removeprefix('torch.')}: "
    for draw in (rows.open().normal, rows.open().laplace):
        with pytest.raises(InvalidInput, match=sentence):
            draw(like)


@pytest.mark.parametrize(
    "rows", [KEY.rows(0, DIGEST, [0, 1], CPU), KEY.secret_rows(0, DIGEST, 0)], ids=["simulated", "secret"]
)
def test_each_tensor_gets_noise_in_its_own_precision(rows: Rows) -> None:
    """Single precision that is only stored in double has the gaps of single precision."""
    like = {"single": torch.zeros(40), "double": torch.zeros(40, dtype=torch.float64), "alike": torch.zeros(8)}
    noise = rows.open().normal(like)
    assert list(noise) == list(like)
    assert {name: value.dtype for name, value in noise.items()} == {name: value.dtype for name, value in like.items()}
    assert bool((noise["double"] != noise["double"].float().double()).any())
    assert len(torch.cat([value.double().flatten() for value in noise.values()]).unique()) == len(rows.clients) * 88
