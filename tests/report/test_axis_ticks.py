"""The ticks of an axis are round numbers inside it, few, and written shortly."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.report.axis_ticks import linear_ticks, logarithmic_ticks, tick_writer


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 100, [0, 20, 40, 60, 80, 100]),
        (-0.1, 1.05, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.9, 4.1, [1, 2, 3, 4]),
        (20, 21, [20, 20.2, 20.4, 20.6, 20.8, 21]),
    ],
)
def test_a_linear_axis_has_round_numbers(low: float, high: float, ticks: list[float]):
    assert linear_ticks(low, high, 6) == ticks


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.9, 12, [1, 2, 5, 10]),
        (0.9, 1200, [1, 10, 100, 1000]),
        (1e-6, 1e6, [1e-6, 1e-3, 1, 1e3, 1e6]),
        (2.1, 4.4, [2.5, 3, 3.5, 4]),
    ],
)
def test_a_logarithmic_axis_has_powers_of_ten_or_simple_parts_of_them(low: float, high: float, ticks: list[float]):
    assert logarithmic_ticks(low, high, 5) == ticks


@given(st.floats(1e-12, 1e12), st.floats(1.001, 1e9), st.integers(2, 9))
def test_there_are_never_too_many_and_all_are_on_the_axis(low: float, factor: float, most: int):
    high = low * factor
    for ticks in (linear_ticks(low, high, most), logarithmic_ticks(low, high, most)):
        assert len(ticks) <= most
        assert ticks == sorted(set(ticks))
        assert all(low - 1e-6 * (high - low) <= tick <= high + 1e-6 * (high - low) for tick in ticks)
        assert all(map(math.isfinite, ticks))


@pytest.mark.parametrize(
    ("ticks", "names"),
    [
        ([0, 0.5, 1], ["0", "0.5", "1"]),
        ([1, 100, 10_000], ["1", "100", "10,000"]),
        ([1e-5, 0.1, 1000], ["10⁻⁵", "0.1", "10³"]),
        ([0, 2e6, 1.5e7], ["0", "2·10⁶", "1.5·10⁷"]),
    ],
)
def test_long_numbers_are_powers_of_ten(ticks: list[float], names: list[str]):
    assert [tick_writer(ticks)(tick) for tick in ticks] == names


def test_shares_are_in_percent():
    assert [tick_writer([0.5, 0.525], percent=True)(tick) for tick in (0.5, 0.525)] == ["50\u202f%", "52.5\u202f%"]
