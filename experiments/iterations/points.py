"""What is run: every combination of T, E and ε that a figure of the paper shows, as an experiment with its noise."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from discreet.algorithms.mechanisms import NoPrivacy
from discreet.experiment.comparison.cells import Cell
from discreet.experiment.configuration import experiment_file
from discreet.experiment.configuration.experiment_file import Source
from experiments.common.tuning import VALIDATED, validation_cell
from experiments.iterations.noise import FEDERATIONS, Federation

HERE = Path(__file__).parent
ROUNDING = 1 + 1e-6  # of a promise that the noise was made for
GAMMA = 25  # of the files with a decaying rate


@dataclass(frozen=True)
class Point:
    """`epsilon` is the paper's, None without noise; T = `total` iterations, E = `local` of them between two uploads."""

    kind: str
    epsilon: float | None
    total: int
    local: int
    rate: float
    clip: float
    everyone: bool = False
    validated: bool = False  # whether it chooses a setting, on validation data

    @property
    def federation(self) -> Federation:
        return FEDERATIONS[self.kind]

    @property
    def rounds(self) -> int:
        return -(-self.total // self.local)

    @property
    def cohort(self) -> int:
        return self.federation.ours if self.everyone else self.federation.cohort

    @property
    def turns(self) -> int:
        return self.federation.turns(self.rounds, self.cohort)

    @property
    def noise(self) -> float | None:
        return None if self.epsilon is None else self.federation.matched_noise(self.epsilon, self.turns)

    @property
    def swept(self) -> dict[str, str]:
        """What tells its results from others, as they are kept."""
        return {
            "epsilon": "inf" if self.epsilon is None else f"{self.epsilon:g}",
            "T": str(self.total),
            "E": str(self.local),
            "cohort": str(self.cohort),
            "rate": f"{self.rate:g}",
            "clip": f"{self.clip:g}",
            **(VALIDATED if self.validated else {}),
        }

    def cell(self, settings: tuple[str, ...], data_dir: Path | None) -> Cell:
        cell = Cell(self.kind, self.swept, self._source(settings, data_dir))
        return validation_cell(cell) if self.validated else cell

    def _source(self, settings: tuple[str, ...], data_dir: Path | None) -> Source:
        overridden = {
            "rounds": self.rounds,
            "evaluate_every": self.rounds,
            "algorithm.learning_rate": self.rate,
            "algorithm.gradient_bound": self.clip,
            "algorithm.local_iterations": self.local,
            "algorithm.total_iterations": self.total,
            "algorithm.cohort": self.cohort,
        }
        if self.noise is not None:
            certified = self.federation.certified_epsilon(self.noise, self.turns)
            overridden |= {"algorithm.noise_multiplier": self.noise, "privacy.epsilon": certified * ROUNDING}
        overrides = tuple(f"{name}={value}" for name, value in overridden.items())
        source = experiment_file.load_experiment(HERE / f"{self.kind}.toml", (*overrides, *settings), data_dir)
        return source if self.noise is not None else self._silent(source)

    def _silent(self, source: Source) -> Source:
        """Without noise and promise; then nothing depends on the last T, so the longest is looked at on the way."""
        whole, grid = source.experiment, GRIDS[self.kind]
        algorithm = replace(whole.algorithm, mechanism=NoPrivacy())
        every = max(1, grid.step // self.local) if grid.totals[-1] == self.total else self.rounds
        return replace(source, experiment=replace(whole, algorithm=algorithm, privacy=None, evaluate_every=every))


@dataclass(frozen=True)
class Grid:
    """What the figures of one file vary."""

    name: str
    metric: str
    least: bool  # whether less of it is better
    rates: tuple[float, ...]  # what they are, `rated` says
    clips: tuple[float, ...]  # the last is the paper's
    tuned: int  # T of the runs that both are chosen from
    epsilons: tuple[float | None, ...]
    totals: tuple[int, ...]  # T, at the E that follows
    fixed_local: int
    fixed_total: int  # the T of the sweep over `locals`
    locals: tuple[int, ...]
    step: int  # iterations after which a run without noise is looked at
    rated: str = "learning rate"


LAPLACE = Grid(
    name="Laplace",
    metric="mse",
    least=True,
    rates=(0.01, 0.03, 0.1, 0.3),
    clips=(10.0, 20.0, 40.0, 80.0, 150.0),
    tuned=100,
    epsilons=(1, 3, 5, 10, 30, None),
    totals=(5, *range(10, 101, 10), 150, 200),
    fixed_local=1,
    fixed_total=120,
    locals=(1, 2, 3, 4, 6, 12),
    step=5,
)
GAUSSIAN = Grid(  # less than the paper has: no ε of 20, no T over 300, half of its E
    name="Gaussian",
    metric="accuracy",
    least=False,
    rates=(0.01, 0.03, 0.1, 0.3),
    clips=(3.0,),
    tuned=250,
    epsilons=(10, 30, None),
    totals=(50, 100, 200, 300),
    fixed_local=5,
    fixed_total=240,
    locals=(1, 3, 8, 24),
    step=50,
)
LINEAR = replace(
    GAUSSIAN,
    name="Gaussian, linear",
    rates=(0.1, 0.3, 1.0),
    clips=(1.0,),
    tuned=100,
    totals=(50, 100, 200, 400),
    locals=(),
)
REGRESSION = replace(
    LAPLACE,
    name="Laplace, regression, decaying rate",
    rates=(1.0, 2.5, 5.0),
    rated=f"2/μ at γ = {GAMMA}",
    clips=(20.0,),
    epsilons=(1, 3, None),
    totals=(5, 10, 20, 50, 100, 200, 400),
    locals=(),
)
GRIDS = {
    "laplace": LAPLACE,
    "gaussian": GAUSSIAN,
    "linear": LINEAR,
    "linear_decaying": replace(
        LINEAR, name="Gaussian, linear, decaying rate", rates=(2.5, 7.5, 25.0), rated=f"2/μ at γ = {GAMMA}"
    ),
    "laplace_decaying": REGRESSION,
    "regression_decaying": replace(REGRESSION, name="Gaussian, regression, decaying rate"),
}
RULES: dict[str, Callable[[int], int]] = {  # Figure 7: E as a function of T
    "1": lambda total: 1,
    "T^(1/3)": lambda total: round(total ** (1 / 3)),
    "T^(1/2)": lambda total: round(total ** (1 / 2)),
    "T^(2/3)": lambda total: round(total ** (2 / 3)),
    "T": lambda total: total,
}
TOTALS_BY_RULE, RULED = (1, *range(10, 121, 10)), 3.0  # Figure 7: T, and the paper's ε


def tuning(kind: str) -> list[Point]:
    """Return runs without noise, as long as those of Figures 1 and 2, that choose the rate and the clip."""
    grid = GRIDS[kind]
    point = Point(kind, None, grid.tuned, grid.fixed_local, rate=0.0, clip=0.0, validated=True)
    return [replace(point, rate=rate, clip=clip) for rate in grid.rates for clip in grid.clips]


def sweeps(kind: str, rate: float, clip: float) -> list[Point]:
    """All points of the mechanism's figures; those that two figures share are there once."""
    found = [*by_total(kind, rate, clip), *by_local(kind, rate, clip)]
    if kind == "laplace":
        found += itertools.chain.from_iterable(by_rule(rate, clip).values())
    return list(dict.fromkeys(found))


def by_total(kind: str, rate: float, clip: float) -> Iterator[Point]:
    """Figures 3 and 4; without noise one run passes by every T."""
    grid = GRIDS[kind]
    for epsilon in grid.epsilons:
        for total in grid.totals if epsilon is not None else grid.totals[-1:]:
            yield Point(kind, epsilon, total, grid.fixed_local, rate, clip)


def by_local(kind: str, rate: float, clip: float) -> Iterator[Point]:
    """Figures 5 and 6."""
    grid = GRIDS[kind]
    for epsilon, local in itertools.product(grid.epsilons, grid.locals):
        yield Point(kind, epsilon, grid.fixed_total, local, rate, clip)


def by_rule(rate: float, clip: float) -> dict[str, list[Point]]:
    """Figure 7: everybody joins every round."""
    return {
        name: [Point("laplace", RULED, total, rule(total), rate, clip, everyone=True) for total in TOTALS_BY_RULE]
        for name, rule in RULES.items()
    }
