"""The two forms of an event: a line for people, and a JSON object in a line."""

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from discreet.log_output import JsonFormatter, TextFormatter
from discreet.logs import bind_fields, get_log


class ListHandler(logging.Handler):
    """Keeps the records, as a handler of a user's own might."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def records() -> Iterator[list[logging.LogRecord]]:
    logger, handler = logging.getLogger("discreet.test"), ListHandler()
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler.records
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


def text(record: logging.LogRecord) -> str:
    return re.sub(r"^\d\d:\d\d:\d\d ", "", TextFormatter().format(record))


def test_a_line_for_people_has_time_level_event_and_fields(records: list[logging.LogRecord]):
    get_log("discreet.test").info("run stopped", run="ab12", epsilon=1.0000001, path=Path("my runs/a"), client=None)
    assert text(records[0]) == 'INFO    run stopped  run=ab12 epsilon=1.00001 path="my runs/a"'


def test_text_from_elsewhere_can_t_pose_as_another_field_or_line(records: list[logging.LogRecord]):
    get_log("discreet.test").warning("client left out", client="a round=9\nERROR b")
    assert text(records[0]) == 'WARNING client left out  client="a round=9\\nERROR b"'


def test_a_json_line_has_the_fields_beside_the_event(records: list[logging.LogRecord]):
    get_log("discreet.test").error("round lost", round=3, error="TooFewClients", epsilon=float("inf"))
    line = json.loads(JsonFormatter().format(records[0]))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", line.pop("time"))
    assert isinstance(line.pop("process"), int)
    assert line == {
        "level": "error",
        "logger": "discreet.test",
        "event": "round lost",
        "round": 3,
        "error": "TooFewClients",
        "epsilon": "inf",
    }


@pytest.mark.parametrize(
    ("value", "written"), [(torch.tensor([31337.125]), "<Tensor>"), ([1, 2], "<list>"), (torch.tensor(3), "<Tensor>")]
)
def test_of_an_object_only_the_type_is_written(records: list[logging.LogRecord], value: Any, written: str):
    get_log("discreet.test").info("round finished", round=value)
    assert json.loads(JsonFormatter().format(records[0]))["round"] == written


def test_an_unknown_field_and_an_exception_are_not_written(records: list[logging.LogRecord]):
    try:
        raise ValueError("canary")
    except ValueError:
        logging.getLogger("discreet.test").exception("round lost", extra={"secret": "canary"})
    assert "canary" not in TextFormatter().format(records[0]) + JsonFormatter().format(records[0])


def test_bound_fields_are_on_every_event_of_the_block(records: list[logging.LogRecord]):
    log = get_log("discreet.test")
    with bind_fields(run="ab12", round=1):
        with bind_fields(round=2):
            log.info("inside")
        log.info("outside")
    log.info("after")
    assert [text(record) for record in records] == [
        "INFO    inside  run=ab12 round=2",
        "INFO    outside  run=ab12 round=1",
        "INFO    after",
    ]


def test_an_event_names_the_function_that_wrote_it(records: list[logging.LogRecord]):
    get_log("discreet.test").info("inside")
    assert records[0].funcName == "test_an_event_names_the_function_that_wrote_it"
