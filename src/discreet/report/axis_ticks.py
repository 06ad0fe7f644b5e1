"""Which values an axis labels, and how: round numbers, so few that no two labels touch."""

import math
from collections.abc import Callable, Sequence

from discreet.report.number_format import format_number

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def linear_ticks(low: float, high: float, most: int) -> list[float]:
    """Return at most `most` values from `low` to `high`: multiples of 1, 2 or 5 times a power of ten."""
    power = math.floor(math.log10((high - low) / most))
    for digits, exponent in ((digit, power + more) for more in (0, 1) for digit in (1, 2, 5)):
        step = float(f"{digits}e{exponent}")
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            break
    return [float(f"{place * digits}e{exponent}") for place in range(first, last + 1)]


def logarithmic_ticks(low: float, high: float, most: int) -> list[float]:
    """Return at most `most` values: 1, 2 and 5 times powers of ten on a short axis, powers of ten on a long one."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        ticks = [float(f"{digit}e{exponent}") for exponent in exponents for digit in digits]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) <= most:
            break
    return ticks[:: math.ceil(len(ticks) / most)] if len(ticks) > 1 else linear_ticks(low, high, most)


def tick_writer(ticks: Sequence[float], *, percent: bool = False) -> Callable[[float], str]:
    """Return how to write the ticks of one axis: in percent, with powers of ten if one is long, or as numbers."""
    if percent:
        return lambda tick: f"{100 * tick:.5g}\u202f%"
    has_long = any(tick and not 1e-3 <= abs(tick) < 1e5 for tick in ticks)
    return _write_power if has_long else format_number


def _write_power(value: float) -> str:
    if value == 0 or 0.01 <= abs(value) <= 100:
        return format_number(value)
    digits, _, exponent = f"{value:.3e}".partition("e")
    number = digits.rstrip("0").rstrip(".")
    power = f"10{str(int(exponent)).translate(SUPERSCRIPTS)}"
    return power if number == "1" else f"{number}·{power}"
