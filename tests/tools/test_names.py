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


def test_each_problem_is_named_with_its_place(names: ModuleType, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "ledger.py").write_text("def read(): ...\n")
    (tmp_path / "given.py").write_text('"""As in paper 003."""\n\n\nclass Kept:\n    def told(self): ...\n')
    assert [problem.split(":")[0] for problem in names.check(tmp_path)] == ["given.py"] * 4 + ["two/ledger.py"]
