"""What is run: synthetic federations, each with both noises, over every E that whole turns allow, and over T."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from discreet.data.federation import Federation
from discreet.planning.pilot import PilotResult, run_pilot, synthetic_clients
from discreet.planning.theory import fu_best_iterations
from discreet.planning.theory.fu_client_noise import ClientNoise, Kind
from discreet.planning.theory.fu_convergence import ConvergenceBound, Setting, convergence_bound

HERE = Path(__file__).parent
SEEDS = 20  # as many as the paper has
PURE, DELTA = 1e-300, 1e-4  # of Laplace noise, in which no δ plays a part; of Gaussian noise, the paper's
PARAMETERS, EXAMPLES, DISTANCE, SPREAD = 5, 100, 4.0, 4.0
MARGIN = 1.5  # of G over the largest gradient of a pilot without noise
TOTALS, LOCAL = (10, 20, 40, 80, 160), 1  # T of the sweep over T, at this E


@dataclass(frozen=True)
class World:
    """A number of clients and how many join a round, the T of the sweep over E, and the ε of each noise."""

    name: str
    clients: int
    cohort: int
    total: int
    epsilons: tuple[tuple[Kind, tuple[float, ...]], ...]

    @property
    def data(self) -> Federation:
        return synthetic_clients(self.clients, PARAMETERS, examples=EXAMPLES, distance=DISTANCE, spread=SPREAD)


TURNS = World("turns", 400, 40, total=120, epsilons=(("laplace", (10, 30, 100)), ("gaussian", (10, 30))))
EVERYONE = World("everyone", 40, 40, total=48, epsilons=(("laplace", (100,)), ("gaussian", (100,))))
WORLDS = {world.name: world for world in (TURNS, EVERYONE)}
LONG: tuple[tuple[Kind, float], ...] = (("laplace", 30), ("gaussian", 30))  # of the sweep over T, in TURNS


@lru_cache
def world_constants(name: str) -> PilotResult:
    """The world's constants; a pilot on made-up data takes nothing from anybody."""
    return run_pilot(WORLDS[name].data)


@dataclass(frozen=True)
class Case:
    """One point: T = `total` local iterations, E = `local` of them between two uploads, ε over all of a client's."""

    world: str
    kind: Kind
    epsilon: float
    total: int
    local: int

    @property
    def delta(self) -> float:
        return PURE if self.kind == "laplace" else DELTA

    @property
    def rounds(self) -> int:
        return self.total // self.local

    @property
    def setting(self) -> Setting:
        world, found = WORLDS[self.world], world_constants(self.world).constants
        largest = MARGIN * found.gradient_bound
        return Setting(
            noise=ClientNoise(kind=self.kind, epsilon=self.epsilon, delta=self.delta),
            clients=world.clients,
            cohort=world.cohort,
            parameters=PARAMETERS,
            clip_norm=largest * math.sqrt(PARAMETERS) if self.kind == "laplace" else largest,  # ‖g‖_1 ≤ √p·‖g‖_2
            constants=replace(found, gradient_bound=largest),
        )

    @property
    def bound(self) -> ConvergenceBound:
        return convergence_bound(self.setting, self.total, self.local)

    def key(self, seed: int) -> str:
        return f"{self.world} {self.kind} {self.epsilon:g} {self.total} {self.local} {seed}"


def by_local(world: str, kind: Kind, epsilon: float) -> list[Case]:
    """The sweep over E at one T: every E that whole turns allow."""
    total = WORLDS[world].total
    first = Case(world, kind, epsilon, total, 1)
    return [replace(first, local=local) for local in fu_best_iterations.allowed_local_iterations(first.setting, total)]


def by_total(kind: Kind, epsilon: float) -> list[Case]:
    """The sweep over T at one E."""
    return [Case(TURNS.name, kind, epsilon, total, LOCAL) for total in TOTALS]


def sweeps() -> Iterator[tuple[str, Kind, float]]:
    """Every world with every noise and its ε."""
    for world in WORLDS.values():
        for kind, epsilons in world.epsilons:
            yield from ((world.name, kind, epsilon) for epsilon in epsilons)


def all_cases() -> list[Case]:
    """All cases; those that two sweeps share are there once."""
    swept = itertools.chain.from_iterable(by_local(*sweep) for sweep in sweeps())
    longer = itertools.chain.from_iterable(by_total(*each) for each in LONG)
    return list(dict.fromkeys([*swept, *longer]))
