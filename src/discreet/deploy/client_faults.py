"""What goes wrong with a client's data in hand: its owner hears it whole, and the server only that it went wrong."""

from collections.abc import Iterator
from contextlib import contextmanager


class ClientFault(Exception):
    """Raised after the data was touched, so that whatever `fault` says may be about it."""

    def __init__(self, fault: Exception) -> None:
        super().__init__(str(fault))
        self.fault = fault


@contextmanager
def wrap_client_faults() -> Iterator[None]:
    try:
        yield
    except Exception as fault:
        raise ClientFault(fault) from fault
