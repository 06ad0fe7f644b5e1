"""The benchmark of long runs: what it compares."""

import importlib
from pathlib import Path

import pytest


def test_growth_is_told_from_the_rounds_after_the_first_tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    long_run = importlib.import_module("long_run")
    found = long_run.summary([1, 5, *[6] * 17, 7], [9.0, 9.0, 2.0, 2.0, *[3.0] * 14, 4.0, 4.0])
    assert found == {
        "memory_after_warm_up": 5,
        "memory_at_the_end": 7,
        "memory_at_most": 7,
        "early_round": 2.0,
        "late_round": 4.0,
    }
