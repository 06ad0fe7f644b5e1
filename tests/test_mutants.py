"""The mutants themselves: each still fits the code, names a test that exists, and is in the table of the docs.

Whether each is caught takes minutes: `make mutants`.
"""

import ast
import json
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.mutants.mutant import FOLDER, PACKAGE, ROOT, DoesNotApply, Mutant, load_mutants
from tests.mutants.page import AREAS, PAGE, page
from tests.mutants.play import play, verdict
from tests.mutants.run import main

MUTANTS = load_mutants()
LATER = ("deployment", "lattice", "ledger", "secure_sums")
SHAMIR = Mutant(
    area="secure_sums",
    id="shamir",
    fault="A secret of any length is shared.",
    file="secure_sums/secagg/shamir.py",
    find="    if len(secret) != SECRET_BYTES:",
    replace="    if False:",
    test="tests/secure_sums/secagg/test_shamir.py::test_a_secret_of_another_length_is_refused",
)

LENGTHS = """
import pytest
from discreet.errors import InvalidInput
from discreet.secure_sums.secagg import shamir

def test_lengths():
    with pytest.raises(InvalidInput):
        shamir.split(bytes(31), 2, (1, 2))
"""


def test_every_mutant_still_fits_the_code() -> None:
    """A change of the code must update the mutant; the message says where."""
    misfits = []
    for mutant in MUTANTS:
        try:
            assert mutant.patch() != (PACKAGE / mutant.file).read_text()
        except DoesNotApply as error:
            misfits.append(str(error))
    assert not misfits


def test_every_mutant_names_a_test_that_exists() -> None:
    for mutant in MUTANTS:
        file, *classes, name = mutant.test.split("::")
        found = _parse(file)
        for wanted in classes:
            (found,) = (each.body for each in found if isinstance(each, ast.ClassDef) and each.name == wanted)
        functions = {each.name for each in found if isinstance(each, ast.FunctionDef)}
        assert name.partition("[")[0] in functions, mutant.id


@cache
def _parse(file: str) -> list[ast.stmt]:
    return ast.parse((ROOT / file).read_text()).body


def test_there_are_at_least_50_of_the_parts_and_15_of_what_surrounds_them() -> None:
    areas = Counter(mutant.area for mutant in MUTANTS)
    assert set(areas) == set(AREAS)
    assert sum(areas[area] for area in LATER) >= 15
    assert areas.total() >= 65


def test_the_page_lists_them_as_they_are() -> None:
    assert PAGE.read_text() == page(MUTANTS), "write it anew: python -m tests.mutants.run --page"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"find": "not in the file"}, "is there 0 times"),
        ({"find": "secret"}, r"is there \d+ times"),
        ({"replace": "    if if"}, "is no Python once it is patched"),
    ],
)
def test_a_mutant_that_does_not_fit_is_said_to(change: dict[str, str], why: str) -> None:
    with pytest.raises(DoesNotApply, match=why):
        replace(SHAMIR, **change).patch()
    assert play(replace(SHAMIR, **change)).outcome == "does not apply"


@pytest.mark.parametrize(
    ("replacement", "outcome"),
    [
        ("    if False:", "caught"),
        ("    if SECRET_BYTES != len(secret):", "not caught"),
        ("    if nothing_of_that_name:", "broken"),
    ],
    ids=["a fault", "no fault", "a crash"],
)
def test_a_mutant_is_caught_where_its_test_fails_by_what_it_asserts(
    replacement: str, outcome: str, tmp_path: Path
) -> None:
    before = (PACKAGE / SHAMIR.file).read_bytes()
    (tmp_path / "test_lengths.py").write_text(LENGTHS)
    mutant = replace(SHAMIR, replace=replacement, test=f"{tmp_path}/test_lengths.py::test_lengths")
    assert play(mutant).outcome == outcome
    assert (PACKAGE / SHAMIR.file).read_bytes() == before


@pytest.mark.parametrize(
    ("code", "failure", "outcome"),
    [
        (0, None, "not caught"),
        (1, ("call", ["AssertionError"]), "caught"),
        (1, ("call", ["Failed", "Exception"]), "caught"),  # pytest.raises, and nothing was raised
        (1, ("call", ["BudgetRefused", "DiscreetError"]), "caught"),
        (1, ("call", ["NameError", "Exception"]), "broken"),
        (1, ("setup", ["AssertionError"]), "broken"),
        (2, ("call", ["AssertionError"]), "broken"),  # interrupted
        (4, None, "broken"),  # no test of that name
        (5, None, "broken"),  # none was selected
        (None, None, "broken"),  # timed out
    ],
)
def test_a_failure_counts_by_its_kind(
    code: int | None, failure: tuple[str, list[str]] | None, outcome: str, tmp_path: Path
) -> None:
    noted = tmp_path / "failure.json"
    if failure is not None:
        noted.write_text(json.dumps({"phase": failure[0], "kinds": failure[1]}))
    assert verdict(code, "", noted)[0] == outcome


def test_the_command_lists_mutants_and_refuses_one_that_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--only", "gaussian-halved"]) == 0
    assert capsys.readouterr().out.split()[0] == "gaussian-halved"
    assert main(["--only", "nobody"]) == 2
    assert "No mutants are called nobody" in capsys.readouterr().out


def test_every_area_has_a_file() -> None:
    assert {path.stem for path in FOLDER.glob("*.toml")} == set(AREAS)
