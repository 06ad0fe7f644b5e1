"""Kills: real processes of a deployment die at named points and at random moments, several in each run."""

import time
from dataclasses import dataclass, field
from functools import partial

from tests.drill.grounds import Grounds
from tests.drill.kills import AT_RANDOM, Kill, take_next, take_random
from tests.drill.operator import Operator
from tests.drill.results import KILL_RUN, Results
from tests.drill.run_check import ROUNDS, check_run, with_rounds

KILLS_IN_RUN, KILLS_TOGETHER, MISSES = 8, 4, 3


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
            grounds = Grounds(with_rounds(self.results.scheme))
            try:
                while waiting and time.time() < self.until and self._carry_out_run(grounds, waiting):
                    pass
            finally:
                grounds.close()

    def _carry_out_run(self, grounds: Grounds, waiting: list[Kill]) -> bool:
        """Kill processes during one run, and check it when it is finished. Returns whether all is well."""
        operator, struck = Operator(grounds, f"{KILL_RUN}-{self.results.count('run') + 1}", ROUNDS), 0
        while struck < KILLS_IN_RUN and not operator.is_finished() and time.time() < self.until:
            before = len(operator.rounds())
            kills = self._strike(operator, waiting, new_run=struck == 0)
            struck += max(1, len(kills))
            if not waiting and not kills:
                break
            if kills and not self._recover(operator, kills, before):
                return False
        return finish_run(operator, self.results)

    def _strike(self, operator: Operator, waiting: list[Kill], *, new_run: bool) -> list[Kill]:
        """Kill at named points and, while the run recovers from each of them, at random moments."""
        struck, kill = list[Kill](), take_next(waiting, new_run=new_run)
        while kill is not None:
            if operator.strike(kill):
                struck.append(kill)
            else:
                self._put_back(kill, waiting)
            was_named = kill.point != AT_RANDOM and struck[-1:] == [kill]
            take = take_random if was_named else partial(take_next, new_run=False)
            kill = take(waiting) if 0 < len(struck) < KILLS_TOGETHER else None
        return struck

    def _recover(self, operator: Operator, kills: list[Kill], before: int) -> bool:
        seconds = operator.recover(with_all_clients=any(kill.is_at_client for kill in kills))
        lost = sum("lost" in line for line in operator.rounds()[before:])
        for number, kill in enumerate(kills):
            what = {"kind": "kill", "victim": kill.victim, "point": kill.point, "in_recovery": number > 0}
            came = {"seconds": seconds, "lost": 0 if number else lost, "well": seconds is not None}
            self.results.append({**what, "run": operator.name, **came}, operator.grounds.folder)
        return seconds is not None

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
