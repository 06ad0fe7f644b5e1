"""Fu et al. on FEMNIST: the learning rate of every ε, T and E is chosen under the noise that it then has."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from experiments.iterations.points import Point
from experiments.tuned.families import Family

RATES = (0.01, 0.03, 0.1, 0.3)  # the last was best without noise
CLIP = 3.0  # the paper's
EPSILONS = (10.0, 20.0, 30.0)
TOTALS, LOCAL = (50, 100, 150, 200, 250, 300, 350, 400, 450, 500), 5  # Figure 4
COMPARED_TOTALS = (50, 300)
TOTAL, LOCALS = 240, (1, 2, 3, 4, 6, 8, 12, 24)  # Figure 6


def points() -> Iterator[Point]:
    for epsilon in EPSILONS:
        yield from (Point("gaussian", epsilon, TOTAL, local, RATES[0], CLIP) for local in LOCALS)
    for epsilon in EPSILONS:
        yield from (Point("gaussian", epsilon, total, LOCAL, RATES[0], CLIP) for total in TOTALS)


def families(settings: tuple[str, ...] = (), data_dir: Path | None = None) -> Iterator[Family]:
    for point in points():
        cells = tuple(replace(point, rate=rate).cell(settings, data_dir) for rate in RATES)
        yield Family((f"{point.epsilon:g}", str(point.total), str(point.local)), cells)
