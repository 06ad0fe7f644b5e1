"""What is in JSON that may be damaged? One reader makes one sentence of everything that can be wrong with it."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from discreet.errors import DiscreetError

Built = TypeVar("Built")
DAMAGE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)  # nested too deep is the last


@contextmanager
def refuse_damage(damaged: DiscreetError) -> Iterator[None]:
    """Make one error of everything that parsed data can make fail where its form is another than it must be.

    Raises:
        DiscreetError: `damaged`.
    """
    try:
        yield
    except DAMAGE:
        raise damaged from None


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
    with refuse_damage(damaged):
        return build(json.loads(content))
