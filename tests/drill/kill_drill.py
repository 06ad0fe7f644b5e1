"""Kills: real processes of a deployment die at named points and at random moments, several in each run."""

import time
from dataclasses import dataclass, field

from tests.drill.grounds import Grounds
from tests.drill.kills import Kill, take_next
from tests.drill.operator import Operator
from tests.drill.results import Results
from tests.drill.run_check import ROUNDS, SCHEMES, check_run

KILLS_IN_RUN, MISSES = 6, 3


@dataclass
class KillDrill:
    """Carries out kills in one deployment after the other.

    Attributes:
        until: The time after which no kill is begun.
    """

    results: Results
    until: float
    _missed: list[Kill] = field(default_factory=list)

    def carry_out(self, waiting: list[Kill]) -> None:
        """Carry out these kills. A deployment in which one did not end is kept as it is, and another begun."""
        while waiting and time.time() < self.until:
            grounds = Grounds(SCHEMES[self.results.scheme])
            try:
                while waiting and time.time() < self.until and self._carry_out_run(grounds, waiting):
                    pass
            finally:
                grounds.close()

    def _carry_out_run(self, grounds: Grounds, waiting: list[Kill]) -> bool:
        """Kill processes during one run, and check it when it is finished. Returns whether all is well."""
        results, struck = self.results, 0
        operator = Operator(grounds, f"run-{results.count('run') + 1}", ROUNDS)
        while struck < KILLS_IN_RUN and not operator.is_finished() and time.time() < self.until:
            if (kill := take_next(waiting, new_run=struck == 0)) is None:
                break
            struck += 1
            before = len(operator.rounds())
            if not operator.strike(kill):
                self._put_back(kill, waiting)
                continue
            seconds = operator.recover(with_all_clients=kill.is_at_client)
            lost = sum("lost" in line for line in operator.rounds()[before:])
            row = {"kind": "kill", "victim": kill.victim, "point": kill.point, "run": operator.name}
            if not results.append(
                {**row, "seconds": seconds, "lost": lost, "well": seconds is not None}, grounds.folder
            ):
                return False
        return finish_run(operator, results)

    def _put_back(self, kill: Kill, waiting: list[Kill]) -> None:
        self._missed.append(kill)
        if self._missed.count(kill) < MISSES:
            waiting.append(kill)
        else:
            self.results.append({"kind": "missed", "victim": kill.victim, "point": kill.point, "well": True})


def finish_run(operator: Operator, results: Results) -> bool:
    """Let the run go on to its end, and check it. Returns whether all is well."""
    if not operator.finish():
        return results.append({"kind": "run", "run": operator.name, "well": False}, operator.grounds.folder)
    checked = check_run(operator.grounds.deployment, operator.name, results.scheme)
    return results.append(checked, operator.grounds.folder)
