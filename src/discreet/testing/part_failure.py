"""The error of a part that doesn't keep its contract, and the ways to raise it."""

from collections.abc import Iterator
from contextlib import contextmanager

from discreet.errors import DiscreetError, InvalidInput


class PartFailed(InvalidInput):
    """A part doesn't do what its contract says. The message says what was tried and what was seen."""


def require(holds: bool, problem: str, fix: str = "") -> None:
    """Raise `PartFailed` with this problem and fix unless `holds`."""
    if not holds:
        raise PartFailed(problem, fix=fix)


@contextmanager
def report_errors(activity: str) -> Iterator[None]:
    """Within this context, an exception of a part's own code becomes `PartFailed`.

    Args:
        activity: What the part was asked to do, as a noun phrase.
    """
    try:
        yield
    except PartFailed:
        raise
    except DiscreetError as error:  # its message says what failed, and where
        raise PartFailed(error.problem, fix=error.fix) from error
    except Exception as error:
        message = str(error).strip().partition("\n")[0]
        raise PartFailed(f"{activity} raised {type(error).__name__}: {message}") from error
