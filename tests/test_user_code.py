"""A user's own code is found by name, next to the experiment or installed, and its errors are reported."""

import py_compile
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from discreet.errors import InvalidInput
from discreet.trust import Trust
from discreet.user_code import build_module, find_code, load_object

CODE = """
from torch import nn

def layer(width, task=None, folder="nowhere"):
    made = nn.Linear(2, width)
    made.said = (task, folder)
    return made
"""


TRUSTED = Trust.all_code()


def build(reference: str, arguments: dict[str, Any], folder: Path, offered: dict[str, Any] | None = None) -> nn.Module:
    return build_module(find_code(reference, folder), arguments, TRUSTED, offered or {})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(CODE)
    return tmp_path


def test_a_file_is_looked_up_from_the_folder(folder: Path):
    assert load_object("mine.py:layer", folder, TRUSTED)(3).out_features == 3
    assert load_object(f"{folder}/mine.py:layer", Path(), TRUSTED)(4).out_features == 4
    with pytest.raises(InvalidInput, match="There is no file"):
        load_object("mine.py:layer", folder / "elsewhere", TRUSTED)


def test_what_lies_compiled_beside_a_file_is_not_run(folder: Path):
    """Python would use it without reading the source: its header turns the comparison off."""
    other = folder / "other.py"
    other.write_text("def layer(width):\n    return 'other code'\n")
    beside = Path(cache_from_source(str(folder / "mine.py")))
    py_compile.compile(str(other), str(beside), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    assert load_object("mine.py:layer", folder, TRUSTED)(3).out_features == 3


def test_what_is_offered_is_given_to_who_asks(folder: Path):
    made = build("mine.py:layer", {"width": 3}, folder, {"task": "digits", "unheard": 1})
    assert made.said == ("digits", "nowhere")
    assert isinstance(build("torch.nn:Linear", {"in_features": 2, "out_features": 3}, folder), nn.Linear)


@pytest.mark.parametrize(
    ("reference", "arguments", "sentence"),
    [
        ("mine.py:layer", {}, "can't be called with no arguments: .*width"),
        ("mine.py:layer", {"height": 1}, r"can't be called with \['height'\]"),
        ("builtins:dict", {}, "must return a torch.nn.Module, and returned dict"),
        ("mine.py:other", {}, "has no 'other'"),
        ("mine.py", {}, "must be file.py:Name"),
    ],
)
def test_what_makes_no_module_is_told(reference: str, arguments: dict[str, int], sentence: str, folder: Path):
    with pytest.raises(InvalidInput, match=sentence):
        build(reference, arguments, folder)
