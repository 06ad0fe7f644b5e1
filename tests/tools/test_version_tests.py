"""The script that runs the tests at both ends of the supported versions, and writes what came out."""

import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

from tests.tools.tool_loader import ROOT, load_tool

PYPROJECT = {
    "project": {
        "name": "discreet",
        "dependencies": ["numpy>=1.26", "rich>=13"],
        "optional-dependencies": {
            "train": ["torch>=2.10"],
            "flower": ["discreet[train]", "flwr>=1.40,<1.42"],
            "test": ["discreet[train]", "pytest", "scipy>=1.13"],
            **{
                name: []
                for name in (
                    "report",
                    "secure",
                    "tables",
                    "onnx",
                    "ray",
                    "check",
                    "tensorboard",
                    "mlflow",
                    "tune",
                    "verify",
                )
            },
        },
    }
}
LOCK = "# The lock\nnumpy==2.4.6\npluggy==1.7.0\npytest==9.2.0\nscipy==1.17.1\n"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return load_tool("version_tests")


def test_floors_pin_libraries_at_their_lowest_version_and_test_tools_at_the_locked_one(tool: ModuleType) -> None:
    needed = tool.runtime_requirements(PYPROJECT)
    assert [each.name for each in needed] == ["numpy", "rich", "torch", "flwr"]
    pins = list(tool.floor_pins(needed, PYPROJECT, LOCK))
    assert pins == ["numpy==1.26", "rich==13", "torch==2.10", "pytest==9.2.0", "scipy==1.17.1"]


def test_the_lowest_version_of_a_range_is_that_of_its_lower_limit(tool: ModuleType) -> None:
    assert tool.lowest_pin(Requirement("flwr>=1.40,<1.42")) == "flwr==1.40"
    with pytest.raises(ValueError, match="must name the lowest version of pyarrow"):
        tool.lowest_pin(Requirement("pyarrow"))


def test_every_library_of_the_package_has_a_lowest_version(tool: ModuleType) -> None:
    needed = tool.runtime_requirements(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8")))
    assert all(tool.lowest_pin(each) for each in needed)


def test_the_page_keeps_the_sections_of_other_environments(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "PAGE", tmp_path / "versions.md")
    tool.write_section("newest", "3.13", ["first"])
    tool.write_section("floors", "3.11", ["second"])
    tool.write_section("newest", "3.13", ["third"])
    sections = (tmp_path / "versions.md").read_text().split("\n## ")[1:]
    assert [section.split() for section in sections] == [
        ["Lowest", "versions,", "Python", "3.11", "second"],
        ["Newest", "versions,", "Python", "3.13", "third"],
    ]


def test_a_section_says_where_a_newer_version_exists(tool: ModuleType) -> None:
    needed = tool.runtime_requirements(PYPROJECT)
    versions = {"numpy": "2.4.6", "rich": "14.3.4", "torch": "2.15.0", "flwr": "1.41.0"}
    outcomes = {"tests": "6 passed in 9s", "clients": "2 passed in 3s"}
    lines = list(tool.section_lines(needed, versions, {"flwr": "1.42.0"}, outcomes))
    assert "| flwr | <1.42,>=1.40 | 1.41.0 | 1.42.0 |" in lines
    assert "| torch | >=2.10 | 2.15.0 | 2.15.0 |" in lines
    assert [line.split(" (")[0] for line in lines[:2]] == [
        "- All tests: 6 passed in 9s",
        "- Real clients: 2 passed in 3s",
    ]


def test_a_part_that_was_not_run_keeps_its_outcome_and_its_library(tool: ModuleType) -> None:
    before = ["- All tests: 6 passed", "- Real clients: 1 failed", "", "| flwr | 1.40 |", "| torch | 2.14 |"]
    now = ["- All tests: not tried.", "- Real clients: 2 passed", "", "| flwr | 1.41 |", "| torch | 2.15 |"]
    merged = ["- All tests: 6 passed", "- Real clients: 2 passed", "", "| flwr | 1.41 |", "| torch | 2.14 |"]
    assert tool.merge_parts(before, now, {"clients"}) == merged
    assert tool.merge_parts([], now, {"clients"}) == now
