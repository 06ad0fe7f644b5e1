"""How bytes, and the rounds that noise affords, are said to a person."""


def in_bytes(size: float) -> str:
    """Three digits and a unit: 2.6 kB."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.0f} PB"


def afforded(rounds: int) -> str:
    """Where no end was in sight: at least so many."""
    from discreet.planning.other_promises import MOST_ROUNDS  # heavy, and there by the time that rounds are

    return f"{'at least ' if rounds >= MOST_ROUNDS else ''}{rounds:,}"
