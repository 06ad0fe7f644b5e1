"""Ranges that were taken from the data: no guarantee covers what they reveal, so training on them must be accepted."""

from collections.abc import Iterator

from discreet.errors import InvalidInput
from discreet.privacy.wording import DATA_RANGES

OPTION = "--accept-data-ranges"
FIX = "Replace them by publicly known ranges and delete the line taken_from_data, or accept this with {how}."


def check_accepted(ranges_from_data: bool, *, accepted: bool) -> None:
    """Refuse ranges that were taken from the data, unless whoever trains on them has accepted that."""
    if ranges_from_data and not accepted:
        raise InvalidInput(DATA_RANGES, fix=FIX.format(how=f"{OPTION} (in Python: accept_data_ranges=True)"))


def plan_warnings(ranges_from_data: bool) -> Iterator[str]:
    """The warning in a plan, with what training will ask for."""
    yield from (f"{warning} Training needs {OPTION}." for warning in warnings(ranges_from_data))


def warnings(ranges_from_data: bool) -> Iterator[str]:
    """What stands next to the promise, before a run and after it."""
    if ranges_from_data:
        yield DATA_RANGES
