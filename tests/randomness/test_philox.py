"""Philox against its published test vectors, and streams of its words."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from discreet.randomness import philox
from discreet.randomness.philox import PhiloxStreams, philox_words

NAME = bytes(range(32))
ALL = 2**64 - 1
PUBLISHED = [  # Random123 (Salmon et al. 2011), kat_vectors, "philox4x64 10": counter, key and words
    (
        (0, 0, 0, 0),
        (0, 0),
        (0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B),
    ),
    (
        (ALL, ALL, ALL, ALL),
        (ALL, ALL),
        (0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0),
    ),
    (
        (0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89),
        (0x452821E638D01377, 0xBE5466CF34E90C6C),
        (0xA528F45403E61D95, 0x38C72DBD566E9788, 0xA5A1610E72FD18B5, 0x57BD43B5E52B7FE6),
    ),
]


@pytest.mark.parametrize(("counter", "key", "words"), PUBLISHED, ids=["zeros", "ones", "pi"])
def test_a_block_has_the_published_words(
    counter: tuple[int, ...], key: tuple[int, int], words: tuple[int, ...]
) -> None:
    found = philox_words(np.array([counter], dtype=np.uint64).T, key)
    assert found[:, 0].tolist() == list(words)


def test_blocks_are_those_of_numpy_also_beyond_one_piece() -> None:
    count = philox.PIECE + 5
    counters = np.zeros((4, count), dtype=np.uint64)
    counters[0] = np.arange(1, count + 1)
    counters[2] = ALL
    source = np.random.Philox(key=7 + (9 << 64), counter=ALL << 128)
    assert philox_words(counters, (7, 9)).T.ravel().tolist() == source.random_raw(4 * count).tolist()


@pytest.mark.parametrize("clients", [1, philox.FEW_ROWS - 1, philox.FEW_ROWS, 200])
def test_a_block_of_the_stream_has_its_number_from_1_and_its_client_as_counter(clients: int) -> None:
    """Few rows are computed one by one and many at once: the words are the same."""
    words = PhiloxStreams(NAME, range(-1, clients - 1)).words([8] * clients)
    key_0, key_1, *above = np.frombuffer(NAME, dtype="<u8").tolist()
    for row, client in zip(words, range(-1, clients - 1), strict=True):
        counters = np.array([(1, 2), (client % 2**64,) * 2, *((word, word) for word in above)], dtype=np.uint64)
        assert row.tolist() == philox_words(counters, (key_0, key_1)).T.ravel().tolist()


def test_a_stream_goes_on_within_a_block_in_either_way_of_computing() -> None:
    """Clients draw 1, 2 or 3 words at a time, so they are at different places of their blocks."""
    clients, sizes = 60, [1 + client % 3 for client in range(60)]
    together = PhiloxStreams(NAME, range(clients))
    apart = [PhiloxStreams(NAME, [client]) for client in range(clients)]
    drawn: list[list[int]] = [[] for _ in range(clients)]
    for _ in range(5):
        for client, row in enumerate(together.words(sizes)):
            drawn[client] += row[: sizes[client]].tolist()
    for client, stream in enumerate(apart):
        assert drawn[client] == stream.words([5 * sizes[client]])[0].tolist()


def test_numbers_have_53_bits_and_are_2_past_a_clients_own() -> None:
    for clients in (3, 60):
        sizes = [client % 3 for client in range(clients)]
        words = PhiloxStreams(NAME, range(clients)).words(sizes)
        numbers = PhiloxStreams(NAME, range(clients)).doubles(sizes)
        for client, size in enumerate(sizes):
            own = [int(word) // 2**11 / 2**53 for word in words[client, :size]]
            assert numbers[client].tolist() == own + [2.0] * (2 - size)


def test_nothing_is_drawn_for_clients_without_examples() -> None:
    for clients in (1, 60):
        assert PhiloxStreams(NAME, range(clients)).doubles([0] * clients).shape == (clients, 0)


def test_neighbouring_clients_and_names_that_differ_in_one_bit_share_nothing() -> None:
    """Bits that differ: 128 of each 256 in the mean over 2,000 pairs, |z| < 6: a false-alarm rate of 2e-9 each.

    Words that share one bit in a hundred have z = 14.
    """
    last, first = NAME[:31] + bytes([NAME[31] ^ 1]), bytes([NAME[0] ^ 1]) + NAME[1:]
    rows = PhiloxStreams(NAME, range(2001)).words([4] * 2001)
    others = [PhiloxStreams(name, range(2001)).words([4] * 2001) for name in (first, last)]
    pairs = [np.stack([a ^ b for a, b in pairwise(rows)]), *(rows[:2000] ^ other[:2000] for other in others)]
    for differences in pairs:
        bits = np.unpackbits(np.ascontiguousarray(differences).view(np.uint8))
        assert abs(bits.mean() - 0.5) * 2 * math.sqrt(len(bits)) < 6


def test_the_first_numbers_of_a_hundred_thousand_clients_are_uniform_and_uncorrelated() -> None:
    """Kolmogorov-Smirnov at 1e-7, and correlations of |z| < 6: false-alarm rates of 2e-9 each, four of them."""
    numbers = PhiloxStreams(NAME, range(100_000)).doubles([2] * 100_000)
    assert stats.kstest(numbers.ravel(), "uniform").pvalue > 1e-7
    first, second = numbers.T
    for one, other in ((first, second), (first[1:], first[:-1]), (second[1:], first[:-1]), (second[1:], second[:-1])):
        assert abs(np.corrcoef(one, other)[0, 1]) * math.sqrt(len(one)) < 6
