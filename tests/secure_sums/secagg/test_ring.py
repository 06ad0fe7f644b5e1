"""Numbers modulo 2^bits: sums are correct, and each number takes `bits` bits in a message."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidInput
from discreet.secure_sums.secagg.ring_vectors import Ring
from discreet.secure_sums.secagg.session_errors import BadMessage

BITS = st.integers(8, 64)


@given(BITS, st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=40))
def test_what_is_packed_is_unpacked(bits: int, numbers: list[int]):
    ring = Ring(bits, len(numbers))
    vector = ring.to_ring(np.array(numbers, np.uint64))
    packed = ring.pack(vector)
    assert len(packed) == -(-len(numbers) * bits // 8)
    assert np.array_equal(ring.unpack(packed), vector)
    # the same bits as one whole number, the first element lowest
    assert int.from_bytes(packed, "little") == sum(int(each) << bits * place for place, each in enumerate(vector))


@given(BITS, st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=9))
def test_sums_wrap_at_the_rings_width(bits: int, numbers: list[int]):
    ring = Ring(bits, 1)
    total = ring.zeros()
    for number in numbers:
        total += ring.to_ring(np.array([number]))
    assert int(ring.reduce(total)[0]) == sum(numbers) % 2**bits


@given(BITS, st.integers(-(2**63), 2**63 - 1))
def test_a_number_that_fits_comes_back_with_its_sign(bits: int, number: int):
    number >>= 64 - bits
    ring = Ring(bits, 1)
    assert int(ring.to_signed(ring.to_ring(np.array([number])))[0]) == number


@pytest.mark.parametrize(("bits", "bytes_"), [(8, 1_000_000), (20, 2_500_000), (32, 4_000_000), (33, 4_125_000)])
def test_a_number_takes_its_bits_and_no_more(bits: int, bytes_: int):
    assert Ring(bits, 1_000_000).packed_bytes == bytes_


@pytest.mark.parametrize(
    "wrong", [np.zeros(3), np.zeros(4, int), np.zeros((3, 1), int), np.zeros(3, bool), [1, 2, 3]], ids=str
)
def test_what_is_no_vector_of_whole_numbers_is_refused(wrong: object):
    with pytest.raises(InvalidInput, match="vector of 3 whole numbers"):
        Ring(32, 3).to_ring(wrong)  # type: ignore[arg-type]


def test_the_vector_that_is_entered_is_not_changed():
    given_, ring = np.arange(3, dtype=np.uint32), Ring(32, 3)
    ring.to_ring(given_)[0] = 9
    assert given_.tolist() == [0, 1, 2]


def test_packed_bytes_have_one_spelling():
    ring = Ring(20, 1)
    assert ring.unpack(b"\xff\xff\x0f").tolist() == [2**20 - 1]
    with pytest.raises(BadMessage, match="beyond its last number"):
        ring.unpack(b"\xff\xff\x1f")
    with pytest.raises(BadMessage, match="3 bytes under these terms, and got 4"):
        ring.unpack(bytes(4))
