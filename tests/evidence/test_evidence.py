"""The page of evidence: every test, fault and number on it exists, and it is up to date."""

import ast
from pathlib import Path

import pytest

from tests.evidence.page import PAGE, page
from tests.evidence.promise import ROOT, Promise, load_promises
from tests.mutants.mutant import load_mutants

PROMISES = load_promises()


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.says)
def test_every_test_that_holds_a_promise_exists(promise: Promise):
    assert promise.tests
    for test in promise.tests:
        file, *names = test.split("::")
        assert _has_test(ROOT / file, names), f"{test} doesn't exist"


def test_every_fault_is_a_mutant():
    known = {mutant.id for mutant in load_mutants()}
    assert {mutant for promise in PROMISES for mutant in promise.mutants} <= known


def test_every_number_is_on_the_page_that_a_script_wrote():
    for number in (number for promise in PROMISES for number in promise.numbers):
        assert number.quote in (ROOT / "docs" / number.page).read_text(encoding="utf-8"), number.says


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(PROMISES), "run python -m tests.evidence.page"


def _has_test(path: Path, names: list[str]) -> bool:
    found: list[ast.stmt] = ast.parse(path.read_text(encoding="utf-8")).body
    for name in names[:-1]:
        found = next((each.body for each in found if isinstance(each, ast.ClassDef) and each.name == name), [])
    return any(isinstance(each, ast.FunctionDef) and each.name == names[-1] for each in found)
