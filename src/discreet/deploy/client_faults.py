"""Errors that may reveal a client's data: the owner sees them in full, the server only their kind."""

from collections.abc import Iterator
from contextlib import contextmanager


class ClientFault(Exception):
    """An error after the data was read, so that its message may contain data. `fault` is the original error."""

    def __init__(self, fault: Exception) -> None:
        super().__init__(str(fault))
        self.fault = fault


@contextmanager
def wrap_client_faults() -> Iterator[None]:
    """Raise every error inside the block as a `ClientFault`."""
    try:
        yield
    except Exception as fault:
        raise ClientFault(fault) from fault
