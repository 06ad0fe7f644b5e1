"""A real server carries many clients, and a large model without a copy for each of them: bounded cases of
`benchmarks/load.py`, which measures 200 clients and 100 MB.
"""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("flwr")
pytestmark = pytest.mark.deploy

WIDTHS = (4150, 4150)  # a model of 70 MB, in eighteen pieces


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    return importlib.import_module("load")


def test_twelve_clients_in_two_processes_are_all_in_a_secure_sum(load: ModuleType) -> None:
    found = load.measure(load.Case(clients=12, hidden=(), secure=True, rounds=2, processes=2))
    assert found["contributors"] == [12, 12]


def test_a_model_in_pieces_takes_the_server_no_more_memory_for_six_clients_than_for_three(load: ModuleType) -> None:
    """Three further copies of what each client gets or sends would be 210 MB; their pieces on the way are 70 to 95."""
    three, six = (
        load.measure(load.Case(clients=clients, hidden=WIDTHS, secure=False, rounds=2, processes=1))
        for clients in (3, 6)
    )
    assert (three["contributors"], six["contributors"]) == ([3, 3], [6, 6])
    assert three["received"] > 2 * 3 * three["model"]
    for role in ("proxy", "run"):  # the SuperLink has caches of 64 MB for each connection to its database
        assert six["memory"][role] < three["memory"][role] + 2 * three["model"] / load.MEGABYTE
