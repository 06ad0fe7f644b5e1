"""Events for operators, by the standard library's logging: a constant sentence and fields with fixed names.

A library is silent: nothing is printed until a user configures `logging`, or a command its output (log_output.py). No
private value is ever logged: docs/guides/logging.md says of each field why it is public, and a test reads all calls.
"""

import logging
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypedDict, Unpack

ROOT = "discreet"


class Fields(TypedDict, total=False):
    """The names that an event's fields may have, with their types. None leaves a field out.

    Each of them is public under every promise, or written only where it is; docs/guides/logging.md has the reasons.
    """

    address: str | None
    block_size: int | None
    bytes: int | None
    checksum: str | None
    client: str | None
    client_run: str | None
    clients: int | None
    code: int | None
    command: str | None
    dataset: str | None
    declared: bool | None
    delta: float | None
    device: str | None
    dropouts: int | None
    engine: str | None
    epsilon: float | None
    error: str | None
    expected_cohort: float | None
    experiment: str | None
    kind: str | None
    line: int | None
    node: int | None
    package: str | None
    path: Path | None
    promised_epsilon: float | None
    request: str | None
    round: int | None
    rounds: int | None
    run: str | None
    seconds: float | None
    server: str | None
    sha256: str | None
    stage: str | None
    status: int | None
    url: str | None
    version: str | None
    worker: int | None
    workers: int | None


FIELDS = frozenset(Fields.__annotations__)
_bound_fields: ContextVar[Mapping[str, Any]] = ContextVar("discreet_log_fields", default={})  # noqa: B039 - never changed
_is_silenced: ContextVar[bool] = ContextVar("discreet_log_silenced", default=False)

logging.getLogger(ROOT).addHandler(logging.NullHandler())  # otherwise Python prints warnings on stderr


class Log:
    """The events of one module. Each method writes one event: a constant sentence, and fields by name."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    @property
    def is_silent(self) -> bool:
        """Whether nobody wants milestones, so that what they need should not be computed."""
        return _is_silenced.get() or not self._logger.isEnabledFor(logging.INFO)

    def debug(self, event: str, **fields: Unpack[Fields]) -> None:
        """Write a detail, which only somebody who looks for a fault wants to see."""
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: Unpack[Fields]) -> None:
        """Write a milestone of normal work."""
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, **fields: Unpack[Fields]) -> None:
        """Write what an operator should look at, while the work goes on."""
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, **fields: Unpack[Fields]) -> None:
        """Write what ended the work. Name the class of the exception: its text may contain values of the data."""
        self._write(logging.ERROR, event, fields)

    def _write(self, level: int, event: str, fields: Fields) -> None:
        if _is_silenced.get() or not self._logger.isEnabledFor(level):
            return
        named: dict[str, Any] = {**_bound_fields.get(), **fields}
        plain = {name: _plain_value(value) for name, value in named.items() if value is not None}
        self._logger.log(level, event, extra=plain, stacklevel=3)


def get_log(name: str) -> Log:
    """Return the log of a module. Call it once for a module, with `__name__`."""
    return Log(name)


@contextmanager
def bind_fields(**fields: Unpack[Fields]) -> Iterator[None]:
    """Add these fields to every event that is written inside the block, in whichever module."""
    token = _bound_fields.set({**_bound_fields.get(), **fields})
    try:
        yield
    finally:
        _bound_fields.reset(token)


@contextmanager
def silence_events() -> Iterator[None]:
    """Write no event inside the block, because how many there are is a secret."""
    token = _is_silenced.set(True)
    try:
        yield
    finally:
        _is_silenced.reset(token)


def _plain_value(value: Any) -> str | int | float | bool:
    """Return a value as plain data. Of an object that is none, such as a tensor, only the type is written."""
    match value:
        case Path():
            return str(value)
        case float() if type(value) is float:
            return value if math.isfinite(value) else str(value)
        case _:
            return value if type(value) in (str, int, bool) else f"<{type(value).__name__}>"
