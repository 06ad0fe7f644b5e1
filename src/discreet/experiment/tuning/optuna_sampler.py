"""Optuna's samplers, which choose the next trial by the scores of earlier ones. Only this file imports Optuna."""

import warnings
from collections.abc import Iterable
from typing import Any

from discreet.errors import InvalidInput
from discreet.experiment.configuration.tune_table import Choices, Dimension, Tune
from discreet.experiment.tuning.search_space import Point, count_points, list_points
from discreet.extras import import_library

SAMPLERS = {
    "tpe": "TPESampler",
    "random": "RandomSampler",
    "qmc": "QMCSampler",
    "gp": "GPSampler",
    "cmaes": "CmaEsSampler",
}  # a grid needs no sampler: its points come in their order


class NextTrial:
    """Asks a sampler for the next point, and tells it the score of each."""

    def __init__(self, tune: Tune, scored: Iterable[tuple[Point, float]] = ()) -> None:
        """Make a sampler that knows the trials that were scored before.

        Its own randomness is fixed, and it is asked again for each of those trials, so that a search that was
        interrupted goes on with the points that it would have had without.

        Raises:
            MissingExtra: Optuna is not installed, or a library that the sampler needs.
        """
        self._grid = list_points(tune.space) if tune.sampler == "grid" else []
        self._optuna = import_library("optuna", "A search that counts every trial")
        self._optuna.logging.set_verbosity(self._optuna.logging.ERROR)
        self._distributions = {name: self._distribution(dimension) for name, dimension in tune.space.items()}
        self._asked: Any = None
        self._told = 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a sampler is experimental
            sampler = getattr(self._optuna.samplers, SAMPLERS.get(tune.sampler, "RandomSampler"))(seed=0)
            direction = "maximize" if tune.is_maximised else "minimize"
            self._study = self._optuna.create_study(direction=direction, sampler=sampler)
        for point, score in scored:
            self.ask()
            self.tell(point, score)

    def ask(self) -> Point:
        """Return the next point to try."""
        if self._grid:
            return self._grid[self._told % len(self._grid)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._asked = self._study.ask(self._distributions)
        return dict(self._asked.params)

    def tell(self, point: Point, score: float) -> None:
        """Tell the score of a point: the one that was asked for, or another one that an earlier version chose."""
        self._told += 1
        asked, self._asked = self._asked, None
        if asked is not None and asked.params == point:
            self._study.tell(asked, score)
            return
        if asked is not None:
            self._study.tell(asked, state=self._optuna.trial.TrialState.FAIL)
        made = self._optuna.trial.create_trial(params=point, distributions=self._distributions, value=score)
        self._study.add_trial(made)

    def _distribution(self, dimension: Dimension) -> Any:
        kinds = self._optuna.distributions
        if isinstance(dimension, Choices):
            return kinds.CategoricalDistribution(dimension.choices)
        kind = kinds.IntDistribution if dimension.is_whole else kinds.FloatDistribution
        return kind(dimension.low, dimension.high, log=dimension.log)


def count_trials(tune: Tune) -> int:
    """Return the number of trials of a search; a grid has no more than its points.

    Raises:
        InvalidInput: A grid over a space with infinitely many points.
    """
    if tune.sampler != "grid":
        return tune.trials
    if (size := count_points(tune.space)) is None:
        raise InvalidInput(
            "A grid needs a finite space, and one field can have any number.",
            fix="Give choices or two whole ends for every field, or use another sampler.",
        )
    return min(tune.trials, size)
