"""The rows and columns of a comparison's table, as text for the terminal, the page and Markdown."""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from discreet.code_version import CodeVersion
from discreet.experiment.metrics import METRICS, is_share
from discreet.experiment.run_directory import run_files
from discreet.privacy.wording import compact, round_up

SEEDED = "These runs are seeded, so they protect nobody: each ε{} is what the same run without a seed would certify."
TUNING = "Choosing a row by its results is tuning, which no ε here covers."
DATA_RANGES = "Ranges were taken from the data: no ε here covers what they reveal about it."
DECLARED = "†"  # marks an epsilon that is not certified
DASH = "–"
PROMISE_COLUMNS = ("δ", "protects", "from")  # they say what an ε is about


@dataclass(frozen=True)
class Row:
    """One cell of a comparison.

    Attributes:
        name: The name of the experiment.
        swept: The value of each swept field, by its path.
        results: The results of the runs that are finished, one for each seed.
        planned_runs: The number of seeds.
    """

    name: str
    swept: Mapping[str, str]
    results: Sequence[Mapping[str, Any]]
    planned_runs: int

    @property
    def metric(self) -> str | None:
        """The main test metric: accuracy, or else the squared error, or else the task's own, or else the loss."""
        names = list(self.results[0]["metrics"]) if self.results else []
        return next((name for name in (*METRICS[:-1], *names) if name in names), None)

    @cached_property
    def values(self) -> list[float]:
        """The main metric of each run after its last round; not finite if the run diverged."""
        numbers = [run_files.json_number(result["metrics"].get(self.metric)) for result in self.results if self.metric]
        return [math.nan if number is None else number for number in numbers]

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
        """Return a field that is the same in all runs of a cell. None without runs."""
        return self.results[0][name] if self.results else None

    def data(self) -> dict[str, Any]:
        """Return the row as plain data for JSON. A row whose epsilon is not certified has `on_word_of`."""
        return {
            "name": self.name,
            "swept": dict(self.swept),
            "metric": self.metric,
            "mean": self.mean,
            "standard_error": self.standard_error,
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

    def _mean(self, name: str) -> float | None:
        numbers = [result[name] for result in self.results if result[name] is not None]
        return statistics.fmean(numbers) if numbers else None


@dataclass(frozen=True)
class Column:
    """One column of the table.

    Attributes:
        heading: Its heading.
        cells: One text for each row.
        shared_text: A text with a place for the value, used once where all rows share it. Empty to always show it.
        is_text: Whether the cells are text, aligned to the left, and not numbers.
    """

    heading: str
    cells: tuple[str, ...]
    shared_text: str = ""
    is_text: bool = False

    @property
    def shared_value(self) -> str | None:
        """The value of all rows that have one. None if they differ, or if the column is always shown."""
        values = {cell for cell in self.cells if cell != DASH}
        return values.pop() if self.shared_text and len(values) == 1 else None


def columns(rows: Sequence[Row]) -> list[Column]:
    """Return all columns that have a value in some row, without those that repeat a swept field."""
    metrics = {row.metric for row in rows if row.metric}
    is_one = len(metrics) == 1
    results = (
        row.format_metric() if is_one else " ".join(filter(None, [row.metric, row.format_metric()])) for row in rows
    )
    swept = dict.fromkeys(path for row in rows for path in row.swept)
    is_partial = any(len(row.results) < row.planned_runs for row in rows)
    some_diverged = any(0 < row.diverged_runs < len(row.results) for row in rows)
    candidates = [
        Column("experiment", tuple(row.name for row in rows), is_text=True),
        *(Column(short, tuple(row.swept[path] for row in rows)) for path, short in short_names(swept).items()),
        Column(heading(metrics.pop()) if is_one else "test metric", tuple(results)),
        Column(
            "diverged", tuple(f"{row.diverged_runs} of {len(row.results)}" if some_diverged else DASH for row in rows)
        ),
        Column("runs", tuple(f"{len(row.results)} of {row.planned_runs}" if is_partial else DASH for row in rows)),
        Column("ε", tuple(_format_epsilon(row) for row in rows)),
        Column("δ", _format_cells(rows, "delta", compact), "at δ = {}"),
        Column("protects", _format_cells(rows, "unit", str), "for one {}", is_text=True),
        Column("from", _format_cells(rows, "against", str), "against the {}", is_text=True),
        Column("noise", tuple(_format_or_dash(row.noise_multiplier, 4) for row in rows), "noise multiplier {}"),
        Column("rounds", _format_cells(rows, "rounds", str), "{} rounds"),
        Column("clients", _format_cells(rows, "clients", str), "{} clients"),
        Column("seconds", tuple(_format_or_dash(row.seconds, 3) for row in rows)),
    ]
    swept_columns = {(column.heading, column.cells) for column in candidates[1 : 1 + len(swept)]}
    return [
        column
        for index, column in enumerate(candidates)
        if set(column.cells) != {DASH} and (index <= len(swept) or (column.heading, column.cells) not in swept_columns)
    ]


def heading(metric: str) -> str:
    """Return the heading of a metric, with its unit."""
    return f"{metric}, %" if is_share(metric) else metric


def short_names(paths: Iterable[str]) -> dict[str, str]:
    """Shorten the path of each swept field to its last name, where that is unambiguous."""
    full = list(paths)
    lasts = [path.rpartition(".")[2] for path in full]
    return {path: last if lasts.count(last) == 1 else path for path, last in zip(full, lasts, strict=True)}


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
    return [*sentences, f"{describe_seeds(rows)} {TUNING}"]


def describe_code(rows: Sequence[Row]) -> str:
    """Name the code that made the results: results of another commit of the same version are used again."""
    stamps = dict.fromkeys(result.get("code") for row in rows for result in row.results)
    names = [str(CodeVersion.from_stamp(stamp)) if stamp else "an unknown commit" for stamp in stamps]
    return f"Made by {'; '.join(names)}." if names else ""


def describe_seeds(rows: Sequence[Row]) -> str:
    """Say that seeded runs protect nobody, and what each ε is: one that is only declared would not be certified."""
    return SEEDED.format(", except one that is only declared," if any(row.foreign_parts for row in rows) else "")


def describe_shared(shown: Sequence[Column]) -> str:
    """Describe in one sentence what all rows share. Empty if they share nothing."""
    texts = {
        column.heading: column.shared_text.format(value).removesuffix("s" if value == "1" else "")
        for column in shown
        if (value := column.shared_value) is not None
    }
    promise = [texts.pop(name) for name in PROMISE_COLUMNS if name in texts]
    sentence = ", ".join([*texts.values(), *([" ".join(["ε", *promise])] if promise else [])])
    return f"In all rows: {sentence}." if sentence else ""


def _format_epsilon(row: Row) -> str:
    if not row.results:
        return DASH
    mark = f" {DECLARED}" if row.foreign_parts else ""
    return "∞" if row.epsilon is None or math.isinf(row.epsilon) else round_up(row.epsilon) + mark


def _format_cells(rows: Sequence[Row], name: str, write: Callable[[Any], str]) -> tuple[str, ...]:
    values = (row.common_value(name) for row in rows)
    return tuple(DASH if value is None else write(value) for value in values)


def _format_or_dash(value: float | None, digits: int) -> str:
    return DASH if value is None else compact(value, digits)
