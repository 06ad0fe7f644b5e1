"""The results at each point, and the rate and clip that runs without noise choose."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from discreet.experiment.comparison.comparison_results import FILE_NAME
from discreet.experiment.run_directory import json_lines
from experiments.common.means import mean
from experiments.iterations.points import GRIDS, HERE, Grid, Point, tuning

Result = dict[str, Any]
CLOSE = 0.01  # of the loss: how much a smaller clip may cost


def results(out: Path | None = None) -> list[Result]:
    """Those beside this file, and in `out`."""
    folders = [HERE] if out is None else [HERE, out]
    return [result for folder in folders for result in json_lines.read_lines(folder / FILE_NAME, dict, "Restore it.")]


@dataclass(frozen=True)
class PointResults:
    """The results by what was swept, of one file."""

    kind: str
    found: dict[tuple[str, ...], list[Result]]

    @classmethod
    def from_results(cls, kind: str, found: Sequence[Result]) -> "PointResults":
        by: dict[tuple[str, ...], list[Result]] = {}
        for each in found:
            if each["name"] == kind:
                by.setdefault(tuple(each["swept"].values()), []).append(each)
        return cls(kind, by)

    @property
    def grid(self) -> Grid:
        return GRIDS[self.kind]

    def by_seed(self, point: Point) -> dict[int, float]:
        """Return the final metric by seed, accuracies in percent. Empty if the point was not run.

        Of a point that chooses a setting it is that on validation data.
        """
        table = "validation" if point.validated else "metrics"
        return {each["seed"]: self._scale_metric(each[table]) for each in self._point_results(point)}

    def tuning_points(self) -> list[Point]:
        """Return the points that choose the rate and the clip.

        Results that were made before there was a validation split chose on test data.
        """
        points = tuning(self.kind)
        return points if self.is_validated() else [replace(point, validated=False) for point in points]

    def is_validated(self) -> bool:
        """Return whether validation data chooses the rate and the clip."""
        return all(self.by_seed(point) for point in tuning(self.kind))

    def on_the_way(self, point: Point, total: int) -> dict[int, float]:
        """Return the metric by seed after `total` of a run's iterations, where the run was evaluated then."""
        return {
            each["seed"]: self._scale_metric(line)
            for each in self._point_results(point)
            for line in each["history"]
            if line["round"] * point.local == total
        }

    def by_total(self, epsilon: float | None, rate: float, clip: float) -> dict[int, dict[int, float]]:
        """Return the metric by seed for each T. Without noise the longest run has the values of all shorter ones."""
        longest = Point(self.kind, epsilon, self.grid.totals[-1], self.grid.fixed_local, rate, clip)
        if epsilon is None:
            found = {total: self.on_the_way(longest, total) for total in self.grid.totals}
        else:
            found = {total: self.by_seed(replace(longest, total=total)) for total in self.grid.totals}
        return {total: values for total, values in found.items() if values}

    def by_local(self, epsilon: float | None, rate: float, clip: float) -> dict[int, dict[int, float]]:
        points = {
            local: Point(self.kind, epsilon, self.grid.fixed_total, local, rate, clip) for local in self.grid.locals
        }
        return {local: values for local, point in points.items() if (values := self.by_seed(point))}

    def certified_epsilon(self, point: Point) -> float | None:
        """Return the ε on the run's own card."""
        return max(
            (float(each["epsilon"]) for each in self._point_results(point) if each["epsilon"] is not None), default=None
        )

    def _point_results(self, point: Point) -> list[Result]:
        return self.found.get(tuple(point.swept.values()), [])

    def _scale_metric(self, metrics: dict[str, Any]) -> float:
        value = float(metrics[self.grid.metric])  # JSON says infinity in words
        return value if self.grid.least else 100 * value


def best(by: dict[int, dict[int, float]], grid: Grid) -> int:
    """Return the place with the best mean, the first of several."""
    sign = 1 if grid.least else -1
    return min(by, key=lambda at: sign * mean(list(by[at].values())).value)


def choose_rate_and_clip(found: Sequence[Result], kind: str) -> tuple[float, float]:
    """The rate that is best without noise at the paper's clip; then the smallest clip that costs next to nothing."""
    measured, grid = PointResults.from_results(kind, found), GRIDS[kind]
    values = {point: mean(list(measured.by_seed(point).values())).value for point in measured.tuning_points()}
    sign = 1 if grid.least else -1
    top = min((point for point in values if point.clip == grid.clips[-1]), key=lambda point: sign * values[point])
    allowed = sign * values[top] + CLOSE * abs(values[top])
    clips = [point.clip for point in values if point.rate == top.rate and sign * values[point] <= allowed]
    return top.rate, min(clips)
