"""Numbers as pages and commands print them: sizes in bytes, and counts with their noun."""


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
