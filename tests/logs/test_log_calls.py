"""No log call of the package can write a private value: its event is constant, its fields are listed as public."""

import ast
import logging
import re
import tomllib
from pathlib import Path

import pytest

from discreet.logs import FIELDS
from tests.logs.log_calls import PACKAGE, find_problems, log_calls, package_files, read_public_values

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "logging.md"
PRIVATE_WORDS = re.compile(
    r"loss|metric|accurac|secret|private|password|token|seed|noise|norms|rows|inputs|targets|params|update|sizes"
    r"|contributors|survivors|order|draw",
    re.IGNORECASE,
)
HEAD = "from discreet.logs import bind_fields, get_log\nlog = get_log(__name__)\n"
PUBLIC = {"round": ["round + 1"]}


def test_every_log_call_of_the_package_names_public_values_only():
    public = read_public_values()
    problems = {name: find_problems(source, public.get(name, {}), name) for name, source in package_files().items()}
    assert {name: found for name, found in problems.items() if found} == {}
    assert sum(len(list(log_calls(ast.parse(source)))) for source in package_files().values()) > 40


def test_no_value_is_listed_that_no_call_writes():
    sources = package_files()
    for name, fields in read_public_values().items():
        written = {
            (keyword.arg, ast.unparse(keyword.value))
            for call in log_calls(ast.parse(sources[name]))
            for keyword in call.keywords
        }
        assert {(field, value) for field, values in fields.items() for value in values} <= written, name


def test_no_listed_value_has_the_name_of_a_private_one():
    values = [value for fields in read_public_values().values() for values in fields.values() for value in values]
    assert [value for value in values if PRIVATE_WORDS.search(value)] == []


def test_no_field_has_a_name_that_logging_uses():
    assert not FIELDS & set(vars(logging.makeLogRecord({}))) | {"message", "asctime"} & FIELDS


def test_the_guide_gives_the_reason_for_every_field():
    rows = re.findall(r"^\| `(\w+)` \| .+ \| .{10,} \|$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(FIELDS)


def test_the_guide_lists_every_event_with_its_level():
    listed = set(re.findall(r"^\| (\w+) \| `([^`]+)` \|", GUIDE.read_text(encoding="utf-8"), re.MULTILINE))
    written = {
        (call.func.attr.upper(), call.args[0].value)
        for source in package_files().values()
        for call in log_calls(ast.parse(source))
        if isinstance(call.func, ast.Attribute) and isinstance(call.args[0], ast.Constant)
    }
    assert listed == written


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('log.info(f"loss is {loss}")', "one constant sentence"),
        ('log.info("loss is %s", loss)', "one constant sentence"),
        ('log.info("loss is " + str(loss))', "one constant sentence"),
        ("log.info(line)", "one constant sentence"),
        ('log.info("round finished", loss=loss)', "loss is not a field"),
        ('log.info("round finished", round=line["loss"])', "round is not listed as public"),
        ('log.debug("round finished", clients=len(cohort))', "clients is not listed as public"),
        ('log.info("round finished", **line)', "named one by one"),
        ('log.error("round failed", exc_info=True)', "exc_info is not a field"),
        ("with bind_fields(client=cohort[0]): pass", "client is not listed as public"),
        ("other = log", "log is used in a way"),
        ('getattr(log, "info")("loss", loss=loss)', "log is used in a way"),
        ('log._logger.info("loss is %s", loss)', "log is used in a way"),
        ('get_log("discreet").info("loss")', "get_log is used in a way"),
        ("import logging", "log by discreet.logs"),
        ("from logging import getLogger", "log by discreet.logs"),
        ("from discreet.logs import Log", "past get_log"),
        ("if __name__ == '__main__': main()", "runs as __main__"),
        ("from discreet.logs import get_log as other", "under another name"),
    ],
)
def test_a_call_that_could_write_a_private_value_is_found(line: str, problem: str):
    assert any(problem in found for found in find_problems(HEAD + line, PUBLIC))


def test_a_call_with_public_values_is_not_refused():
    source = (
        HEAD
        + 'log.info("round finished", round=round + 1, error="Interrupted")\nwith bind_fields(round=round + 1): pass'
    )
    assert find_problems(source, PUBLIC) == []


def test_a_field_must_be_listed_for_the_file_that_writes_it():
    file = tomllib.loads('["a.py"]\nround = ["round + 1"]')
    assert find_problems(HEAD + 'log.info("x", round=round + 1)', file.get("b.py", {}))
    assert PACKAGE.is_dir()
