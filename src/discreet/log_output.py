"""Where events are written: text on stderr, or JSON lines in a file, by commands and the processes they start."""

import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Context
from pathlib import Path
from typing import IO, Any

from discreet.durable_files import OWNER
from discreet.errors import InvalidInput
from discreet.logs import FIELDS, ROOT

STDERR = "-"  # instead of a log file: JSON lines on stderr
FILE_VARIABLE, VERBOSE_VARIABLE = "DISCREET_LOG_FILE", "DISCREET_VERBOSE"
UPWARDS = Context(prec=6, rounding=ROUND_CEILING)
PLAIN_WORD = re.compile(r"[\w.:/@+…-]+")


def event_fields(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields of an event, in the order in which they were named."""
    return {name: value for name, value in vars(record).items() if name in FIELDS}


class TextFormatter(logging.Formatter):
    """One line for people: the local time, the level, the event and its fields. Exceptions are not written."""

    def format(self, record: logging.LogRecord) -> str:
        clock = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        fields = "".join(f" {name}={_describe(name, value)}" for name, value in event_fields(record).items())
        return f"{clock} {record.levelname:<7} {record.msg}{' ' if fields else ''}{fields}"


class JsonFormatter(logging.Formatter):
    """One JSON object in a line: time (UTC), level, logger, process, event, and the fields. Without exceptions."""

    def format(self, record: logging.LogRecord) -> str:
        about = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "event": record.msg,
        }
        return json.dumps(about | event_fields(record), ensure_ascii=False, allow_nan=False)


def _describe(name: str, value: Any) -> str:
    """Return a value for people. Text that is more than a word is quoted, so that it can't pose as another field."""
    if name == "epsilon" and isinstance(value, float):
        return str(UPWARDS.create_decimal(value))  # a bound is never shown smaller than it is
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    return text if PLAIN_WORD.fullmatch(text) else json.dumps(text, ensure_ascii=False)


class StderrHandler(logging.Handler):
    """Write to the stderr of the moment: a progress bar replaces it, to print lines above the bar."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()
        except Exception:  # noqa: BLE001 - a log that can't be written must not end the work
            self.handleError(record)


@contextmanager
def write_logs(verbose: int = 0, file: str | None = None) -> Iterator[None]:
    """Write the events inside the block, of this process and, by environment variables, of those that it starts.

    Args:
        verbose: 0 prints nothing, 1 prints milestones on stderr, and 2 details too.
        file: Append JSON lines to this file, milestones or, with `verbose` 2, details too. "-" writes them to stderr.

    Raises:
        InvalidInput: The file can't be written to.
    """
    logger, handlers = logging.getLogger(ROOT), list[logging.Handler]()
    if file is not None:
        handlers.append(StderrHandler() if file == STDERR else _file_handler(Path(file)))
        handlers[-1].setFormatter(JsonFormatter())
    if verbose and file != STDERR:
        handlers.append(StderrHandler())
        handlers[-1].setFormatter(TextFormatter())
    before = logger.level
    with ExitStack() as ending:
        for handler in handlers:
            logger.addHandler(handler)
            ending.callback(_remove_handler, logger, handler)
        if handlers:
            logger.setLevel(logging.DEBUG if verbose > 1 else logging.INFO)
            ending.callback(logger.setLevel, before)
            ending.enter_context(_set_variables(verbose, file))
        yield


def environment_settings() -> tuple[int, str | None]:
    """Return `verbose` and `file` for `write_logs` as the environment variables name them."""
    verbose = os.environ.get(VERBOSE_VARIABLE, "0")
    return int(verbose) if verbose.isdecimal() else 1, os.environ.get(FILE_VARIABLE) or None


@contextmanager
def _set_variables(verbose: int, file: str | None) -> Iterator[None]:
    before = {name: os.environ.pop(name, None) for name in (VERBOSE_VARIABLE, FILE_VARIABLE)}
    if verbose:
        os.environ[VERBOSE_VARIABLE] = str(verbose)
    if file is not None:
        os.environ[FILE_VARIABLE] = file if file == STDERR else str(Path(file).resolve())
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _remove_handler(logger: logging.Logger, handler: logging.Handler) -> None:
    logger.removeHandler(handler)
    handler.close()


def _file_handler(path: Path) -> logging.Handler:
    """Append to a file that only its owner may read, if it is new. Several processes may append to one file."""
    from logging.handlers import WatchedFileHandler  # opens a file anew that was rotated; its module imports much

    class OwnerFileHandler(WatchedFileHandler):
        def _open(self) -> IO[str]:  # type: ignore[override]
            return open(
                os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT, OWNER), "a", encoding="utf-8"
            )

    try:
        return OwnerFileHandler(path)
    except OSError as error:
        raise InvalidInput(
            f"The log file {path} can't be written to ({error.strerror}).", fix="Name a file in a folder of your own."
        ) from None


class EventHandler(logging.Handler):
    """Pass the sentence of each event to a function, without its fields."""

    def __init__(self, hear: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._hear = hear

    def emit(self, record: logging.LogRecord) -> None:
        self._hear(str(record.msg))


@contextmanager
def watch_events(hear: Callable[[str], None]) -> Iterator[None]:
    """Within the block, call `hear` with the sentence of every event of this process, milestones and worse."""
    logger, handler = logging.getLogger(ROOT), EventHandler(hear)
    before = logger.level
    logger.addHandler(handler)
    if not logger.isEnabledFor(logging.INFO):
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(before)
        _remove_handler(logger, handler)


@contextmanager
def quiet_libraries(*names: str) -> Iterator[None]:
    """Within the block, other libraries' loggers of these names write errors only."""
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
