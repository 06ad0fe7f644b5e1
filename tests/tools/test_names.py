"""The check of names that `make lint` runs."""

from pathlib import Path
from types import ModuleType

import pytest

from tests.tools.tool_loader import load_tool


@pytest.fixture(scope="module")
def names() -> ModuleType:
    return load_tool("names")


@pytest.mark.parametrize("name", ["made", "_said", "of", "at_most", "checked", "watching", "not_covered", "Opened"])
def test_a_name_of_participles_and_particles_is_refused(names: ModuleType, name: str) -> None:
    assert names.is_refused(name)


@pytest.mark.parametrize(
    "name", ["calibrate_noise", "is_private", "training", "read", "sampled_event", "__of__", "seed"]
)
def test_verbs_and_nouns_are_allowed(names: ModuleType, name: str) -> None:
    assert not names.is_refused(name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ledger.py").write_text("def read(): ...\n")
    (tmp_path / "given.py").write_text('"""As in paper 003."""\n\n\nclass Kept:\n    def told(self): ...\n')
    return tmp_path


def test_each_problem_is_named_with_its_place(names: ModuleType, folder: Path) -> None:
    assert [line.split(" ")[0] for line in names.check_words(folder)] == ["given.py:", "given.py:4:", "given.py:5:"]
    assert [line.split(" ")[0] for line in names.check_repeats(folder)] == ["two/ledger.py:"]
    assert [line.split(" ")[0] for line in names.check_citations(folder)] == ["given.py:1:"]


def test_helpers_inside_a_test_are_checked_and_the_test_itself_is_a_sentence(names: ModuleType, tmp_path: Path) -> None:
    source = "def test_made_of_given():\n    def told(): ...\n\n\ndef ConfirmMessageReceived(): ...\n"
    (tmp_path / "test_ledger.py").write_text(source)
    assert [line.split(": ")[1].split()[0] for line in names.check_words(tmp_path)] == ["told"]
