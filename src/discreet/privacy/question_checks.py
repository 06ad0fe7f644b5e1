"""Are the arguments of accountants what they must be? Events, relations and numbers, before anything is computed."""

import numbers
import sys
from collections.abc import Iterable
from typing import Any, get_args

from discreet.errors import InvalidInput
from discreet.privacy import events
from discreet.privacy.events import Event
from discreet.privacy.release import Relation, Release
from discreet.validation_errors import describe_value

MOST = 10**30
EVENT_FIX = "Build one of discreet.privacy.events, such as GaussianNoise(noise_multiplier=1.0)."


def check_question(event: Any, relation: Any, **amounts: Any) -> None:
    """Refuse what is no event, no relation or no number, such as δ, each by its name.

    Raises:
        InvalidInput: The message says which, and what was got.
    """
    check_event(event)
    check_relation(relation)
    for name, amount in amounts.items():
        check_amount(name, amount)


def check_event(event: Any) -> None:
    """Refuse what is no event."""
    if not isinstance(event, EVENTS):
        raise InvalidInput(f"event must be an event, and got {describe_value(event)}.", fix=EVENT_FIX)


def check_relation(relation: Any) -> None:
    """Refuse what is no relation between neighbours."""
    if not isinstance(relation, str) or relation not in get_args(Relation):
        known = ", ".join(get_args(Relation))
        raise InvalidInput(f"relation must be one of {known}, and got {describe_value(relation)}.")


def check_amount(name: str, amount: Any) -> None:
    """Refuse what is no number, or NaN. Infinity is one: the ε of a release without noise."""
    if isinstance(amount, bool) or not isinstance(amount, numbers.Real) or amount != amount:  # NaN is not itself
        raise InvalidInput(f"{name} must be a number, and got {describe_value(amount)}.")
    if isinstance(amount, int) and amount > sys.float_info.max:
        raise InvalidInput(f"{name} must be a floating-point number, and got {describe_value(amount)}.")
    if name == "delta" and not 0 <= float(amount) <= 1:
        raise InvalidInput(f"delta must be at least 0 and at most 1, and got {describe_value(amount)}.")


def check_count(name: str, count: Any) -> None:
    """Refuse what is no whole number of at least 1, or a larger one than anybody can hold."""
    if isinstance(count, bool) or not isinstance(count, numbers.Integral) or not 1 <= int(count) <= MOST:
        raise InvalidInput(f"{name} must be a whole number from 1 to 10^30, and got {describe_value(count)}.")


def check_release(release: Any) -> None:
    """Refuse what is no release."""
    if not isinstance(release, Release):
        raise InvalidInput(
            f"release must be a Release, and got {describe_value(release)}.",
            fix="Write Release(event=..., unit=..., view=..., relation=...).",
        )


def _classes(kind: Any) -> Iterable[type]:
    """Yield the classes that a union of events names."""
    if isinstance(kind, type):
        yield kind
    for inner in get_args(kind):
        yield from _classes(inner)


EVENTS = tuple({kind for kind in _classes(Event) if kind.__module__ == events.__name__})
