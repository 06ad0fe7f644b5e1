"""Ranges that were taken from the data: no guarantee covers what they reveal, so the user must accept them."""

from collections.abc import Iterator

from discreet.errors import InvalidInput
from discreet.words import fill

OPTION = "--accept-data-ranges"
FIX = "Replace them by publicly known ranges and delete the line taken_from_data, or accept this with {how}."


def check_accepted(ranges_from_data: bool, *, accepted: bool) -> None:
    """Refuse ranges that were taken from the data, unless the user has accepted them."""
    if ranges_from_data and not accepted:
        problem = fill("not_covered.ranges_warning")
        raise InvalidInput(problem, fix=FIX.format(how=f"{OPTION} (in Python: accept_data_ranges=True)"))


def plan_warnings(ranges_from_data: bool) -> Iterator[str]:
    """Yield the warning for a plan, with the option that training will need."""
    yield from (f"{warning} Training needs {OPTION}." for warning in warnings(ranges_from_data))


def warnings(ranges_from_data: bool) -> Iterator[str]:
    """Yield the warning that belongs next to the promise, before a run and after it."""
    if ranges_from_data:
        yield fill("not_covered.ranges_warning")
