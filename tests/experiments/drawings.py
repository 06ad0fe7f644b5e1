"""Compare a drawing with the one that is kept in the documentation."""

import re
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NUMBER = re.compile(r"-?\d+\.\d+")


def assert_same_drawing(drawn: Path, kept: Path) -> None:
    """Compare two SVG files: the same text, and coordinates up to what processors round apart.

    Another version of matplotlib than the locked one draws the same picture by other lines; then nothing is compared.
    """
    locked = re.search(r"^matplotlib==(.*)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert locked is not None
    if metadata.version("matplotlib") != locked[1]:
        return
    one, other = drawn.read_text(), kept.read_text()
    assert NUMBER.split(one) == NUMBER.split(other)
    assert coordinates(one) == pytest.approx(coordinates(other), abs=1e-3)


def coordinates(drawing: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(drawing)]
