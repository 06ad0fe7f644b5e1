"""The locks: which versions and hashes `make lock` wrote, and that they are those of constraints.txt."""

import re
import tomllib
from types import ModuleType

import pytest
from packaging.requirements import Requirement

from tests.tools.tool_loader import ROOT, load_tool

LOCKS = ("locks/all.txt", "locks/flower.txt")


@pytest.fixture(scope="module")
def lock() -> ModuleType:
    return load_tool("lock")


def pins(text: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9.-]+)==([^ ;\n]+)", text, flags=re.MULTILINE))


@pytest.mark.parametrize("path", LOCKS)
def test_every_version_of_a_lock_has_hashes_and_no_file_names_an_index(lock: ModuleType, path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    hashes = lock.read_hashes(text)
    assert len(hashes) == len(re.findall(r"^[a-z0-9.-]+==", text, flags=re.MULTILINE))
    assert [pin for pin, found in hashes.items() if not found] == []
    assert "://" not in text
    assert re.findall(r"^-", text, flags=re.MULTILINE) == []


def test_the_lock_with_hashes_has_every_version_of_the_constraints() -> None:
    constraints = pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    hashed = pins((ROOT / "locks/all.txt").read_text(encoding="utf-8"))
    assert {name: hashed.get(name) for name in constraints} == constraints


def test_what_a_node_needs_has_the_same_versions_and_hashes_as_in_the_lock_of_everything(lock: ModuleType) -> None:
    everything, node = (lock.read_hashes((ROOT / path).read_text(encoding="utf-8")) for path in LOCKS)
    assert {pin: everything.get(pin) for pin in node} == node


def test_what_a_node_needs_covers_the_requirements_of_its_extra(lock: ModuleType) -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [Requirement(each) for each in lock.extra_requirements(pyproject, "flower")]
    assert {"numpy", "torch", "cryptography", "flwr"} <= {each.name for each in wanted}
    locked = pins((ROOT / "locks/flower.txt").read_text(encoding="utf-8"))
    assert [str(each) for each in wanted if not each.specifier.contains(locked[each.name])] == []
