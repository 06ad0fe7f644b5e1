"""How bytes are said to a person."""


def in_bytes(size: float) -> str:
    """Three digits and a unit: 2.6 kB."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} GB"
