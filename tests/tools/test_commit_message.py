"""The check of commit messages that the pre-commit configuration runs."""

from types import ModuleType

import pytest

from tests.tools.tool_loader import load_tool


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return load_tool("commit_message")


def test_a_short_subject_with_a_body_is_accepted(tool: ModuleType) -> None:
    assert tool.check("Ignore malformed client updates\n\nOne such update ended the run.\n# a comment\n") is None


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ("x" * 73 + "\n\nWhy.", "1 to 72 characters, and has 73"),
        ("", "and has 0"),
        ("Add a thing.\n\nWhy.", "without a full stop"),
        ("Add a thing", "the body must say why"),
        ("Add a thing\nand go on", "After a blank line"),
    ],
)
def test_each_fault_is_named(tool: ModuleType, message: str, problem: str) -> None:
    assert problem in tool.check(message)
