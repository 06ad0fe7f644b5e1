"""The benchmark: its page says which targets were met, and its small session gives correct sums."""

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from discreet.secure_sums.secagg.session_terms import Terms


@pytest.fixture
def secagg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "benchmarks"))
    monkeypatch.setattr(importlib.import_module("results"), "FOLDER", tmp_path)
    return importlib.import_module("secagg")


def measurements(masking: float) -> dict[str, Any]:
    whats = ("client: mask", "server: add up", "server: unmask", "server: unmask, one client lost")
    row = {"threshold": 7, "set_up": 0.01, "server": 1.0, "beyond_the_vector": 663}
    small, large = (
        {**row, "clients": n, "neighbours": k, "client": ms / 1000} for n, k, ms in ((10, 9, 2), (40, 18, 4))
    )
    return {
        "device": "cpu",
        "machine": "a machine",
        "versions": {"numpy": "2"},
        "turns": 3,
        "seconds": {"discreet": dict.fromkeys(whats, masking), "flower": dict.fromkeys(whats, 0.07)},
        "bytes": {"discreet": 4_000_663, "flower": 8_000_256},
        "cohorts": {"default": [small, large], "all_pairs": [small]},
    }


def test_the_page_says_whether_its_goals_are_met(secagg: ModuleType):
    fast, slow = (secagg.page({"cpu": measurements(seconds)}) for seconds in (0.01, 0.1))
    assert "| client: mask | 10.0 ms | 70.0 ms | met |" in fast
    assert "| client: mask | 100.0 ms | 70.0 ms | **missed** |" in slow
    assert "| one client's masked vector on the wire | 4.0007 MB | 8.00 MB | ≤ 4.1 MB: met |" in fast
    assert (
        "From 10 to 40 clients (4.0×) a client has 2.00× as many neighbours, and a round takes it 2.00× as long" in fast
    )


def test_the_picture_is_drawn_from_what_was_kept(secagg: ModuleType, tmp_path: Path):
    (tmp_path / "secagg.json").write_text(json.dumps({"cpu": measurements(0.01)}))
    secagg.draw()
    assert (tmp_path / "secagg.svg").read_text().startswith("<?xml")


def test_what_is_timed_is_a_right_sum(secagg: ModuleType):
    """`Session.round` checks each sum itself; run it with and without a lost client."""
    session = secagg.Session(Terms.choose(clients=4, length=9, rounds=2))
    vectors = [np.arange(9) * each for each in range(4)]
    for number, without in ((0, None), (1, 2)):
        seconds, sent = session.round(number, vectors, without=without)
        assert {"mask", "add", "unmask"} <= seconds.keys()
        assert sent > 36
