"""The rows of a comparison: means and standard errors, what was promised, and what a reader must know."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from discreet.code_version import CodeVersion
from discreet.experiment.metrics import METRICS, choosing_metric, is_share
from discreet.experiment.run_directory import run_files
from discreet.privacy.wording import compact, join_words

SEEDED = "These runs are seeded, so they protect nobody: each ε{} is what the same run without a seed would certify."
TUNING = "Choosing a row by its results is tuning, which no ε here covers."
BY_CHOOSING = "Choose settings on the validation data instead, by --choose."
DATA_RANGES = "Ranges were taken from the data: no ε here covers what they reveal about it."
DECLARED = "†"  # marks an epsilon that is not certified
DASH = "–"


@dataclass(frozen=True)
class Row:
    """One cell of a comparison, or the best of several cells on validation data.

    Attributes:
        name: The name of the experiment.
        swept: The value of each swept field, by its path.
        results: The results of the runs that are finished, one for each seed.
        planned_runs: The number of seeds.
        chosen: The values that each seed chose on its validation data, one for each result, by the field's path.
        tried: The number of settings that they were chosen from.
    """

    name: str
    swept: Mapping[str, str]
    results: Sequence[Mapping[str, Any]]
    planned_runs: int
    chosen: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tried: int = 1

    @property
    def metric(self) -> str | None:
        """The main test metric: accuracy, or else the squared error, or else the task's own, or else the loss."""
        names = list(self.results[0]["metrics"]) if self.results else []
        return next((name for name in (*METRICS[:-1], *names) if name in names), None)

    @cached_property
    def values(self) -> list[float]:
        """The main metric of each run after its last round; not finite if the run diverged."""
        return self._numbers("metrics", self.metric)

    @property
    def validation_metric(self) -> str | None:
        """The metric by which settings are chosen. None without validation data."""
        names = self.results[0].get("validation") if self.results else None
        return choosing_metric(names) if names else None

    @cached_property
    def validation_mean(self) -> float | None:
        """The mean of the metric on validation data. None without validation data, or if a run diverged."""
        values = self._numbers("validation", self.validation_metric)
        return statistics.fmean(values) if values and all(map(math.isfinite, values)) else None

    @property
    def diverged_runs(self) -> int:
        """The number of runs that ended with a metric that is not finite."""
        return sum(
            any(not math.isfinite(run_files.json_number(value) or 0.0) for value in result["metrics"].values())
            for result in self.results
        )

    @property
    def mean(self) -> float | None:
        """The mean of the main metric. None without runs, or if the metric of a run is not finite."""
        return statistics.fmean(self.values) if self.values and all(map(math.isfinite, self.values)) else None

    @property
    def is_missing(self) -> bool:
        """Whether there is no number to show: no mean, or every run diverged."""
        return self.mean is None or self.diverged_runs == len(self.results)

    @property
    def standard_error(self) -> float | None:
        """The standard error of the mean. None with fewer than two runs."""
        if self.mean is None or len(self.values) < 2:
            return None
        return statistics.stdev(self.values) / math.sqrt(len(self.values))

    @property
    def foreign_parts(self) -> set[str]:
        """The user's own parts on whose word the epsilon is."""
        return {title for result in self.results for title in result.get("on_word_of", ())}

    @property
    def epsilon(self) -> float | None:
        """The largest epsilon of the runs: it can differ, because a seed also partitions the data.

        It is certified unless there are `foreign_parts`.
        """
        epsilons = (run_files.json_number(result["epsilon"]) for result in self.results)
        return max((epsilon for epsilon in epsilons if epsilon is not None), default=None)

    @property
    def noise_multiplier(self) -> float | None:
        """The mean noise multiplier of the runs."""
        return self._mean("noise_multiplier")

    @property
    def seconds(self) -> float | None:
        """The mean duration of a run."""
        return self._mean("seconds")

    def common_value(self, name: str) -> Any:
        """Return a field that is the same in all runs. None without runs, or if they differ by what was chosen."""
        values = [result[name] for result in self.results]
        return values[0] if values and all(value == values[0] for value in values) else None

    def data(self) -> dict[str, Any]:
        """Return the row as plain data for JSON. A row whose epsilon is not certified has `on_word_of`."""
        return {
            "name": self.name,
            "swept": dict(self.swept),
            "metric": self.metric,
            "mean": self.mean,
            "standard_error": self.standard_error,
            "validation": self.validation_mean,
            **({"chosen": dict(self.chosen), "tried": self.tried} if self.chosen else {}),
            "values": [value if math.isfinite(value) else None for value in self.values],
            "diverged": self.diverged_runs,
            "runs": len(self.results),
            "epsilon": self.epsilon,
            **({"on_word_of": sorted(self.foreign_parts)} if self.foreign_parts else {}),
            "noise_multiplier": self.noise_multiplier,
            **{name: self.common_value(name) for name in ("delta", "unit", "against", "rounds", "clients", "device")},
            "seconds": self.seconds,
        }

    def format_metric(self) -> str:
        """Write the mean and its standard error, a share in percent."""
        if not self.values:
            return DASH
        if self.mean is None or self.is_missing:
            return "diverged"
        error = self.standard_error
        if is_share(self.metric or ""):
            return f"{100 * self.mean:.2f}" + ("" if error is None else f" ± {100 * error:.2f}")
        return compact(self.mean, 4) + ("" if error is None else f" ± {compact(error, 2)}")

    def format_validation(self) -> str:
        """Write the mean of the metric on validation data, a share in percent."""
        if self.validation_mean is None:
            return DASH
        is_percent = is_share(self.validation_metric or "")
        return f"{100 * self.validation_mean:.2f}" if is_percent else compact(self.validation_mean, 4)

    def _numbers(self, table: str, metric: str | None) -> list[float]:
        numbers = [run_files.json_number(result[table].get(metric)) for result in self.results if metric]
        return [math.nan if number is None else number for number in numbers]

    def _mean(self, name: str) -> float | None:
        numbers = [result[name] for result in self.results if result[name] is not None]
        return statistics.fmean(numbers) if numbers else None


def notes(rows: Sequence[Row]) -> list[str]:
    """Return what a reader must know to read the table; the last note is that seeded runs protect nobody."""
    counts = {len(row.results) for row in rows}
    seeds = f"{max(counts)} seeds" if len(counts) == 1 else "seeds"
    sentences = [f"Mean ± standard error over {seeds}."] if max(counts) > 1 else []
    if any(row.results and row.epsilon is None for row in rows):
        sentences.append("ε = ∞: nothing is guaranteed.")
    if declared := sorted({title for row in rows for title in row.foreign_parts}):
        sentences.append(f"ε with {DECLARED} is not certified, on the word of {' and '.join(declared)}.")
    if any(result.get("data_ranges") for row in rows for result in row.results):
        sentences.append(DATA_RANGES)
    if any(row.chosen for row in rows):
        sentences.append(describe_choice(rows))
    return [*sentences, f"{describe_seeds(rows)} {describe_tuning(rows)}"]


def describe_choice(rows: Sequence[Row]) -> str:
    """Say which fields were chosen, from how many settings, and by which data."""
    fields = list(dict.fromkeys(path for row in rows for path in row.chosen))
    metrics = sorted({row.validation_metric for row in rows if row.validation_metric})
    tried = sorted({row.tried for row in rows if row.chosen})
    count = f"{tried[0]}" if len(tried) == 1 else f"{tried[0]} to {tried[-1]}"
    return (
        f"For each seed, {join_words(fields)} {'was' if len(fields) == 1 else 'were'} chosen from {count} settings by "
        f"the {join_words(metrics) if metrics else 'metric'} on its validation data; the test data chose nothing."
    )


def describe_tuning(rows: Sequence[Row]) -> str:
    """Say that choosing by results is tuning, and that validation data is there to choose by, if it is."""
    has_validation = any(row.validation_metric for row in rows) and not any(row.chosen for row in rows)
    return f"{TUNING} {BY_CHOOSING}" if has_validation else TUNING


def describe_code(rows: Sequence[Row]) -> str:
    """Name the code that made the results: results of another commit of the same version are used again."""
    stamps = dict.fromkeys(result.get("code") for row in rows for result in row.results)
    names = [str(CodeVersion.from_stamp(stamp)) if stamp else "an unknown commit" for stamp in stamps]
    return f"Made by {'; '.join(names)}." if names else ""


def describe_seeds(rows: Sequence[Row]) -> str:
    """Say that seeded runs protect nobody, and what each ε is: one that is only declared would not be certified."""
    return SEEDED.format(", except one that is only declared," if any(row.foreign_parts for row in rows) else "")
