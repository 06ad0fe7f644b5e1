"""The notebooks of the documentation are stored without outputs, and `make docs` runs them and fails on an error."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

import discreet

DOCS = Path(__file__).parent.parent / "docs"
NOTEBOOKS = sorted(DOCS.glob("notebooks/*.ipynb"))
WIDEST = 88  # columns that the page shows without scrolling


def read_cells(path: Path, kind: str = "code") -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == kind]


def read_source(path: Path) -> str:
    return "\n\n".join("".join(cell["source"]) for cell in read_cells(path))


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request: Any) -> Path:
    path: Path = request.param
    return path


def test_there_are_two_and_the_index_lists_them():
    index = (DOCS / "index.md").read_text()
    assert len(NOTEBOOKS) == 2
    assert all(f"\nnotebooks/{path.stem}\n" in index and f"notebooks/{path.name})" in index for path in NOTEBOOKS)


def test_no_output_is_stored(notebook: Path):
    for cell in read_cells(notebook):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None


def test_its_code_fits_the_page_and_uses_public_names_only(notebook: Path):
    source = read_source(notebook)
    assert [line for line in source.splitlines() if len(line) > WIDEST] == []
    used = {
        node.attr
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "discreet"
    }
    assert used
    assert used <= set(discreet.__all__)


def test_it_checks_what_it_says(notebook: Path):
    checks = [cell for cell in read_cells(notebook) if "remove-cell" in cell["metadata"].get("tags", [])]
    assert checks
    assert all("assert" in "".join(cell["source"]) for cell in checks)


def test_the_build_runs_them_afresh_and_fails_on_an_error():
    settings = {
        target.id: node.value
        for node in ast.parse((DOCS / "conf.py").read_text()).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    assert ast.literal_eval(settings["nb_execution_mode"]) == "force"
    assert ast.literal_eval(settings["nb_execution_raise_on_error"]) is True
    assert "myst_nb" in ast.literal_eval(settings["extensions"])
