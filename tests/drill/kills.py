"""Which kills a drill has: every process at every named point, and at random moments."""

import random
from collections import Counter
from dataclasses import dataclass
from itertools import product
from typing import Any

from tests.deploy.real_deployment import CLIENTS
from tests.drill.named_points import CREATION, POINTS, role_at

VICTIMS = ("run", "superlink", "server", "executor", "client")
AT_RANDOM = "at random"


@dataclass(frozen=True)
class Kill:
    """One kill: which process, and at which named point or "at random"."""

    victim: str
    point: str
    client: str = CLIENTS[0]
    delay: float = 0.0  # seconds before a kill at random

    @property
    def is_at_client(self) -> bool:
        return self.victim == "client"

    @property
    def begins_run(self) -> bool:
        """Whether only a run that doesn't exist yet reaches the point."""
        return self.point in CREATION

    @property
    def role(self) -> str:
        return role_at(self.point, self.client)


def plan_kills(seed: int, count: int) -> list[Kill]:
    """Return `count` kills in an order drawn by the seed.

    Every process is killed at every point that it or the run's process reaches, the run's process and another one also
    before every change of a file by which a run is created; what is left is killed at random moments.
    """
    draw = random.Random(seed)

    def kill(victim: str, point: str) -> Kill:
        return Kill(victim, point, draw.choice(CLIENTS), draw.uniform(0.2, 4.0))

    kills = [
        kill(victim, point)
        for victim, point in product(VICTIMS, (*POINTS, AT_RANDOM))
        if victim != "client" or role_at(point, "client") == "client" or point == AT_RANDOM
    ]
    kills += [kill("run", point) for point in CREATION]
    kills += [kill(draw.choice(("superlink", "server", "executor")), point) for point in CREATION]
    kills += [kill(draw.choice(VICTIMS), AT_RANDOM) for _ in range(count - len(kills))]
    draw.shuffle(kills)
    return kills[:count]


def kills_left(kills: list[Kill], rows: list[dict[str, Any]]) -> list[Kill]:
    """Return the kills of a plan that these results don't have yet."""
    done, left = Counter((row["victim"], row["point"]) for row in rows), []
    for kill in kills:
        if done[kill.victim, kill.point] > 0:
            done[kill.victim, kill.point] -= 1
        else:
            left.append(kill)
    return left


def take_next(waiting: list[Kill], *, new_run: bool) -> Kill | None:
    """Remove and return the next kill of a new run, or of one that exists. None if there is none."""
    chosen = [kill for kill in waiting if kill.begins_run == new_run] or [k for k in waiting if not k.begins_run]
    if not chosen:
        return None
    waiting.remove(chosen[0])
    return chosen[0]


def take_random(waiting: list[Kill]) -> Kill | None:
    """Remove and return the next kill at a random moment. None if there is none."""
    kill = next((kill for kill in waiting if kill.point == AT_RANDOM), None)
    if kill is not None:
        waiting.remove(kill)
    return kill
