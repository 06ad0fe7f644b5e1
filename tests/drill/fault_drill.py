"""Faults other than kills: each in a run of its own, which then ends by itself or by the documented commands."""

import time
from dataclasses import dataclass
from typing import Any

from tests.deploy.real_deployment import CLIENTS
from tests.drill.faults import Fault
from tests.drill.grounds import Grounds
from tests.drill.kill_drill import finish_run
from tests.drill.operator import Operator
from tests.drill.results import FAULT_RUN, Results
from tests.drill.run_check import ROUNDS, with_rounds

FIRST_ROUNDS = 1  # recorded before a fault begins
TRACE = "Traceback (most recent call last)"


@dataclass
class FaultDrill:
    """Causes faults in one deployment after the other.

    Attributes:
        until: The time after which no fault is begun.
    """

    results: Results
    until: float

    def carry_out(self, waiting: list[Fault]) -> None:
        """Cause these faults. A deployment in which a run did not end is kept as it is, and another begun."""
        while waiting and time.time() < self.until:
            grounds = Grounds(with_rounds(self.results.scheme), with_faults=True)
            try:
                while waiting and time.time() < self.until and self._carry_out_run(grounds, waiting.pop(0)):
                    pass
            finally:
                grounds.close(keep=not self.results.well)

    def _carry_out_run(self, grounds: Grounds, fault: Fault) -> bool:
        """Cause the fault during a run of its own, and check the run when it is finished."""
        if not fault.is_possible(grounds):
            return self.results.append({"kind": "skipped", "fault": fault.name, "well": True})
        operator = Operator(grounds, f"{FAULT_RUN}-{self.results.count('run') + 1}", ROUNDS)
        operator.reach_rounds(FIRST_ROUNDS)
        well = self.results.append(cause(fault, operator), grounds.folder)
        return well and finish_run(operator, self.results)


def cause(fault: Fault, operator: Operator) -> dict[str, Any]:
    """Cause a fault, do what the documents say, and say what became of the run."""
    before, said = len(operator.rounds()), LogEnds(operator)
    with fault.apply(operator.grounds):
        until = time.monotonic() + fault.seconds
        while time.monotonic() < until:
            operator.restart_what_ended()
            time.sleep(0.1)
    during = len(operator.rounds()) - before
    seconds = operator.recover(with_all_clients=True)
    lost = sum("lost" in line for line in operator.rounds()[before:])
    words = said.read_new()
    row = {"kind": "fault", "fault": fault.name, "run": operator.name, "rounds_during": during, "lost": lost}
    errors = sorted({line for text in words.values() for line in text.splitlines() if line.startswith("Error: ")})
    traced = sorted(name for name, text in words.items() if TRACE in text)
    return {**row, "seconds": seconds, "errors": errors, "traces": traced, "well": seconds is not None}


class LogEnds:
    """What the processes of a deployment print from now on, by the name of the process."""

    def __init__(self, operator: Operator) -> None:
        folder = operator.grounds.folder
        self._logs = {name: folder / f"{name}.log" for name in ("server", *CLIENTS, f"submit-{operator.name}")}
        self._before = {name: path.stat().st_size if path.exists() else 0 for name, path in self._logs.items()}

    def read_new(self) -> dict[str, str]:
        return {
            name: path.read_bytes()[self._before[name] :].decode(errors="replace")
            for name, path in self._logs.items()
            if path.exists()
        }
