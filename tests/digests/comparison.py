"""List where two digests differ, with the place and both values."""

import math
from collections.abc import Iterator
from typing import Any

TOLERANCE = 1e-9  # relative: machines and versions differ by less, and real changes by more


def differences(kept: Any, found: Any, *, exact: bool) -> list[str]:
    """Every difference. Unless `exact`, numbers may differ by the tolerance, and the hash of a model doesn't count."""
    return list(_differences(kept, found, "", exact))


def _differences(kept: Any, found: Any, place: str, exact: bool) -> Iterator[str]:
    if isinstance(kept, dict) and isinstance(found, dict):
        for name in sorted(kept.keys() | found.keys()):
            at = f"{place}.{name}" if place else name
            if name not in found:
                yield f"{at}: {_short(kept[name])} → nothing"
            elif name not in kept:
                yield f"{at}: nothing → {_short(found[name])}"
            elif exact or name != "sha256":
                yield from _differences(kept[name], found[name], at, exact)
    elif isinstance(kept, list) and isinstance(found, list):
        for at, (one, other) in enumerate(zip(kept, found, strict=False)):
            yield from _differences(one, other, f"{place}[{at}]", exact)
        if len(kept) != len(found):
            yield f"{place}: {len(kept)} entries → {len(found)}"
    elif not _are_equal(kept, found, exact):
        yield f"{place}: {_short(kept)} → {_short(found)}"


def _are_equal(kept: Any, found: Any, exact: bool) -> bool:
    if type(kept) is not type(found):
        return False
    if isinstance(kept, float) and not exact:
        return math.isclose(kept, found, rel_tol=TOLERANCE)
    return bool(kept == found)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
