"""What is run: ε and both ways to clip, promises of clients who differ, and clients whose budgets end."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from discreet.experiment.comparison.cells import Cell
from discreet.experiment.configuration import experiment_file

HERE = Path(__file__).parent
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
OWN = (0.5, 1.0, 2.0, 4.0, 8.0)  # each is asked for by two clients
RATES = {  # three learning rates for each ε; each row of the page has its best
    "example": {
        0.25: (0.125, 0.25, 0.5),
        0.5: (0.25, 0.5, 1.0),
        1.0: (0.5, 1.0, 2.0),
        2.0: (0.5, 1.0, 2.0),
        4.0: (1.0, 2.0, 4.0),
        8.0: (1.0, 2.0, 4.0),
    },
    "minibatch": {
        0.25: (0.00003, 0.0001, 0.0003),
        0.5: (0.0001, 0.0003, 0.001),
        1.0: (0.0003, 0.001, 0.003),
        2.0: (0.001, 0.003, 0.01),
        4.0: (0.003, 0.01, 0.03),
        8.0: (0.01, 0.03, 0.1),
    },
}
PROMISES = {  # to the clients of own.toml; None: each its own
    "own": None,
    "smallest": min(OWN),
    "mean": sum(OWN) / len(OWN),
    "largest": max(OWN),
}
RATES_BY_PROMISE = {
    "own": (0.5, 1.0, 2.0),
    "smallest": (0.25, 0.5, 1.0),
    "mean": (1.0, 2.0, 4.0),
    "largest": (1.0, 2.0, 4.0),
}


@dataclass(frozen=True)
class Point:
    """One row of the page, at one learning rate: a file, and what is set in it."""

    file: str
    what: str  # that tells it from the file's other rows
    rate: float
    settings: tuple[str, ...] = ()

    @property
    def swept(self) -> dict[str, str]:
        return {"what": self.what, "rate": f"{self.rate:g}"}

    def cell(self, settings: tuple[str, ...] = (), data_dir: Path | None = None) -> Cell:
        overrides = (*self.settings, f"algorithm.learning_rate={self.rate}", *settings)
        return Cell(
            self.file, self.swept, experiment_file.load_experiment(HERE / f"{self.file}.toml", overrides, data_dir)
        )


def points() -> list[Point]:
    return [*alike(), *baseline_points(), *own_promise_points(), *departure_points()]


def alike() -> Iterator[Point]:
    for clipping in ("example", "minibatch"):
        for epsilon in EPSILONS:
            settings = (f"privacy.epsilon={epsilon}", f'algorithm.clipping="{clipping}"')
            for rate in RATES[clipping][epsilon]:
                yield Point("alike", f"{clipping} {epsilon:g}", rate, settings)


def baseline_points() -> Iterator[Point]:
    for rate in (0.8, 1.6, 3.2):
        yield Point("without", "without", rate)


def own_promise_points() -> Iterator[Point]:
    for promise, epsilon in PROMISES.items():
        for rate in RATES_BY_PROMISE[promise]:
            yield Point("own", promise, rate, () if epsilon is None else (f"privacy.epsilon={epsilon}",))


def departure_points() -> Iterator[Point]:
    for rate in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0):
        yield Point("leaving", "leaving", rate)


def first_rates() -> list[Point]:
    """Each private row once: what is planned and certified doesn't depend on the learning rate."""
    rows: dict[tuple[str, str], Point] = {}
    for point in [*alike(), *own_promise_points(), *departure_points()]:
        rows.setdefault((point.file, point.what), point)
    return list(rows.values())
