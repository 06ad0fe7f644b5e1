"""What is in JSON that may be damaged? One reader makes one sentence of everything that can be wrong with it."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

from discreet.errors import DiscreetError

Built = TypeVar("Built")
DAMAGE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)  # nested too deep is the last


def parse_json(content: bytes | str, build: Callable[[Any], Built], damaged: DiscreetError) -> Built:
    """Parse JSON, and build from it what the caller needs.

    Args:
        content: The JSON.
        build: Makes the result of the parsed data. It need not check the data's form where a wrong one makes it fail.
        damaged: The error that names the file and says what to do.

    Returns:
        What `build` returned.

    Raises:
        DiscreetError: `damaged`, if the content is not JSON or `build` can't use it.
    """
    try:
        return build(json.loads(content))
    except DAMAGE:
        raise damaged from None
