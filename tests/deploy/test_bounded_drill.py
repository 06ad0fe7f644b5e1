"""A bounded part of the drill (`make drill`): a few kills and one of each other fault, on real processes."""

from collections.abc import Iterator

import pytest

pytest.importorskip("flwr")

from tests.drill.fault_drill import cause
from tests.drill.faults import FAULTS, Fault
from tests.drill.grounds import Grounds
from tests.drill.kills import Kill
from tests.drill.operator import Operator
from tests.drill.run_check import check_run, with_rounds

pytestmark = pytest.mark.deploy

ROUNDS = 25
SECONDS = 3.0  # that a fault lasts here
KILLS = (
    Kill("run", "creation: before the draft folder is renamed"),
    Kill("run", "after the checkpoint, before the commit"),
)
CLIENT_KILL = Kill("client", "after a node reserved")
CHOSEN = (
    "the network is cut for 5 s",
    "the disk of a node is full",
    "the folder of a node is read-only",
    "the clock of a node jumps forward by a day and back",
    "no memory in a block of a node",
)


@pytest.fixture(scope="module")
def grounds() -> Iterator[Grounds]:
    made = Grounds(with_rounds("plain", ROUNDS), with_faults=True)
    yield made
    made.close()


def test_a_run_whose_process_is_killed_ends_and_equals_the_unbroken_one(grounds: Grounds) -> None:
    operator = Operator(grounds, "run-1", ROUNDS)
    for kill in KILLS:
        assert operator.strike(kill), f"{kill} found nobody: {operator.rounds()[-1:]}"
        assert operator.recover() is not None
    assert operator.finish()
    checked = check_run(grounds.deployment, "run-1", "plain", ROUNDS)
    assert checked["under_counts"] == []
    assert checked["equal"] in (True, None)
    assert checked["well"]


def test_a_run_ends_and_counts_all_after_a_killed_node_and_one_of_each_other_fault(grounds: Grounds) -> None:
    operator = Operator(grounds, "run-2", ROUNDS)
    assert operator.strike(CLIENT_KILL)
    assert operator.recover(with_all_clients=True) is not None
    for fault in chosen_faults(grounds):
        assert cause(fault._replace(seconds=SECONDS), operator)["well"], fault.name
    assert operator.finish()
    assert check_run(grounds.deployment, "run-2", "plain", ROUNDS)["well"]


def chosen_faults(grounds: Grounds) -> list[Fault]:
    """Return one fault of each kind that this machine can cause."""
    found = [fault for fault in FAULTS if fault.name in CHOSEN]
    assert len(found) == len(CHOSEN)
    return [fault for fault in found if fault.is_possible(grounds)]
