"""What experiments that tune by a grid share: a setting as a file has it, and the best of several."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def format_toml(value: Any) -> str:
    """Return a value as a TOML file writes it."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {format_toml(each)}" for name, each in value.items()) + "}"
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def best(points: Sequence[T], reached: Callable[[T], float | None]) -> T | None:
    """Return the point with the largest value, or None before all of them were tried."""
    found = [(each, reached(each)) for each in points]
    if any(value is None for _, value in found):
        return None
    return max(found, key=lambda pair: pair[1] or 0.0)[0]
