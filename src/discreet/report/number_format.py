"""Numbers as pages and commands print them: sizes in bytes, counts with their noun, percentages and plain numbers."""

import math

from discreet.privacy.wording import compact


def format_bytes(size: float) -> str:
    """Write a size with three digits and a decimal unit, such as 2.6 kB."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.0f} PB"


def format_count(number: int, nouns: str) -> str:
    """Write a count with its noun, given in the plural: 1 round, 2,000 rounds."""
    return f"{number:,} {nouns.removesuffix('s') if number == 1 else nouns}"


def format_percent(value: float) -> str:
    """Write a fraction in percent, with one decimal."""
    return f"{100 * value:.1f}\u202f%" if math.isfinite(value) else format_number(value)


def format_number(value: float) -> str:
    """Write a number with four digits; NaN and infinity in words or signs."""
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else compact(value, 4)
