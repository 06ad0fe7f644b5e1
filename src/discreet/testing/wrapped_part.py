"""A part as the checks take it: ours as it is, and a user's own object with the defaults of its contract."""

from typing import Any, TypeVar, cast

from discreet.contract import CONTRACTS, is_shipped
from discreet.user_part import UserPart

T = TypeVar("T")


def wrap_part(protocol: Any, part: T) -> T:
    """Return a part of this package as it is; wrap any other object, as an algorithm does.

    Raises:
        InvalidInput: The object lacks a member that the contract needs.
    """
    if isinstance(part, UserPart) or is_shipped(type(part)):
        return part
    return cast(T, UserPart.wrap(CONTRACTS[protocol], part))
