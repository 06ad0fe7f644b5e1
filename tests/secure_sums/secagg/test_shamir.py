"""Shares: any `threshold` of them give the secret, and fewer fit every secret."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import isprime

from discreet.errors import InvalidInput
from discreet.secure_sums.secagg import shamir


def test_the_field_is_the_smallest_above_every_secret():
    assert isprime(shamir.PRIME)
    assert not any(isprime(number) for number in range(2**256, shamir.PRIME))
    assert shamir.PRIME < 2 ** (8 * shamir.SHARE_BYTES)


@given(st.binary(min_size=32, max_size=32), st.data())
def test_any_threshold_of_the_shares_gives_the_secret(secret: bytes, data: st.DataObject):
    holders = data.draw(st.integers(2, 12))
    threshold = data.draw(st.integers(1, holders))
    shares = shamir.split(secret, threshold, range(1, holders + 1))
    chosen = data.draw(st.permutations(range(1, holders + 1)))[:threshold]
    assert all(shamir.is_share(share) for share in shares.values())
    assert shamir.combine({position: shares[position] for position in chosen}) == secret


@pytest.mark.parametrize("secret", [bytes(32), b"\xff" * 32])
def test_the_smallest_and_the_largest_secret_come_back(secret: bytes):
    shares = shamir.split(secret, 2, range(1, 4))
    assert {shamir.combine(dict(pair)) for pair in combinations(shares.items(), 2)} == {secret}


def test_a_share_less_than_the_threshold_fits_every_secret():
    """Two shares of three: for any secret there is a third share with which they give it."""
    shares = shamir.split(b"s" * 32, 3, (1, 2, 3))
    for secret in (bytes(32), b"x" * 32, b"\xff" * 32):
        # the parabola through (0, secret), (1, a), (2, b) has at 3 the value secret − 3a + 3b
        third = (number(secret) - 3 * number(shares[1]) + 3 * number(shares[2])) % shamir.PRIME
        forged = {1: shares[1], 2: shares[2], 3: third.to_bytes(33, "little")}
        assert shamir.combine(forged) == secret


@pytest.mark.parametrize("threshold", [2, 3, 7])
def test_a_share_less_than_the_threshold_does_not_give_the_secret(threshold: int):
    """With a degree too small, one share less would give the secret; by chance this happens once in 2^256."""
    shares = shamir.split(b"s" * 32, threshold, range(1, 10))
    for fewer in combinations(shares.items(), threshold - 1):
        assert shamir.combine(dict(fewer)) != b"s" * 32


def test_shares_that_give_no_secret_are_known():
    # a constant polynomial of 2^256, which is in the field but is not a secret of 32 bytes
    assert shamir.combine({1: (2**256).to_bytes(33, "little")}) is None
    assert not shamir.is_share(shamir.PRIME.to_bytes(33, "little"))
    assert not shamir.is_share(bytes(32))


def test_a_secret_of_another_length_is_refused():
    with pytest.raises(InvalidInput, match="32 bytes, and got 31"):
        shamir.split(bytes(31), 2, (1, 2))


def number(data: bytes) -> int:
    return int.from_bytes(data, "little")
