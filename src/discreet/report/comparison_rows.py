"""What a comparison's results say, cell by cell, and how a table says it: in a terminal, on the page, in Markdown."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from discreet.privacy.wording import compact, round_up
from discreet.report import run_files
from discreet.report.run_data import METRICS

SEEDED = "These runs are seeded, so they protect nobody: each ε is what the same run certifies without a seed."
TUNING = "Choosing among rows by their results is tuning, which no ε here covers."
DATA_RANGES = "Ranges were taken from the data: what they reveal of it comes on top of every ε, and none covers it."
NOTHING = "–"
PROMISE = ("δ", "protects", "from")  # the columns that say what an ε is about


@dataclass(frozen=True)
class Row:
    """One cell: an experiment, its swept fields, and the results of those of its `wanted` seeds that were run."""

    name: str
    swept: Mapping[str, str]
    results: Sequence[Mapping[str, Any]]
    wanted: int

    @property
    def metric(self) -> str | None:
        """The test metric that counts: accuracy, else the squared error, else the task's own, else the loss."""
        names = list(self.results[0]["metrics"]) if self.results else []
        return next((name for name in (*METRICS[:-1], *names) if name in names), None)

    @cached_property
    def values(self) -> list[float]:
        """The metric after the last round, by seed; a run that diverged counts as what it is."""
        found = [run_files.json_number(each["metrics"].get(self.metric)) for each in self.results if self.metric]
        return [math.nan if value is None else value for value in found]

    @property
    def diverged(self) -> int:
        """How many runs ended with some number that is none."""
        return sum(
            any(not math.isfinite(run_files.json_number(value) or 0.0) for value in each["metrics"].values())
            for each in self.results
        )

    @property
    def mean(self) -> float | None:
        """None without runs, and where a run that diverged left no number to count."""
        return statistics.fmean(self.values) if self.values and all(map(math.isfinite, self.values)) else None

    @property
    def lost(self) -> bool:
        """Whether no run, or no mean, is left to be shown as a number."""
        return self.mean is None or self.diverged == len(self.results)

    @property
    def standard_error(self) -> float | None:
        if self.mean is None or len(self.values) < 2:
            return None
        return statistics.stdev(self.values) / math.sqrt(len(self.values))

    @property
    def epsilon(self) -> float | None:
        """The largest of the runs': clients that are dealt out by seed may differ in what they cost."""
        return max(
            (found for each in self.results if (found := run_files.json_number(each["epsilon"])) is not None),
            default=None,
        )

    @property
    def noise_multiplier(self) -> float | None:
        return self._mean("noise_multiplier")

    @property
    def seconds(self) -> float | None:
        """Of one run, on average."""
        return self._mean("seconds")

    def first(self, name: str) -> Any:
        """What all runs of a cell share."""
        return self.results[0][name] if self.results else None

    def data(self) -> dict[str, Any]:
        """The row as plain data."""
        return {
            "name": self.name,
            "swept": dict(self.swept),
            "metric": self.metric,
            "mean": self.mean,
            "standard_error": self.standard_error,
            "values": [value if math.isfinite(value) else None for value in self.values],
            "diverged": self.diverged,
            "runs": len(self.results),
            "epsilon": self.epsilon,
            "noise_multiplier": self.noise_multiplier,
            **{name: self.first(name) for name in ("delta", "unit", "against", "rounds", "clients", "device")},
            "seconds": self.seconds,
        }

    def measured(self) -> str:
        """The mean and its standard error, shares in percent."""
        if not self.values:
            return NOTHING
        if self.mean is None or self.lost:
            return "diverged"
        error = self.standard_error
        if self.metric == "accuracy":
            return f"{100 * self.mean:.2f}" + ("" if error is None else f" ± {100 * error:.2f}")
        return compact(self.mean, 4) + ("" if error is None else f" ± {compact(error, 2)}")

    def _mean(self, name: str) -> float | None:
        found = [each[name] for each in self.results if each[name] is not None]
        return statistics.fmean(found) if found else None


@dataclass(frozen=True)
class Column:
    """`once` is how its value is said for all rows together, where they share it; empty if it always has its column."""

    heading: str
    cells: tuple[str, ...]
    once: str = ""
    text: bool = False

    @property
    def shared(self) -> str | None:
        """The one value that all rows have which have any."""
        found = {cell for cell in self.cells if cell != NOTHING}
        return found.pop() if self.once and len(found) == 1 else None

    @property
    def empty(self) -> bool:
        return all(cell == NOTHING for cell in self.cells)


def columns(rows: Sequence[Row]) -> list[Column]:
    """All that is known of the cells; what no cell has is left out."""
    metrics = {row.metric for row in rows if row.metric}
    one = len(metrics) == 1
    measured = (row.measured() if one else " ".join(filter(None, [row.metric, row.measured()])) for row in rows)
    swept = dict.fromkeys(path for row in rows for path in row.swept)
    partial = any(len(row.results) < row.wanted for row in rows)
    some = any(0 < row.diverged < len(row.results) for row in rows)
    found = [
        Column("experiment", tuple(row.name for row in rows), text=True),
        *(Column(short, tuple(row.swept[path] for row in rows)) for path, short in short_names(swept).items()),
        Column(heading(metrics.pop()) if one else "test metric", tuple(measured)),
        Column("diverged", tuple(f"{row.diverged} of {len(row.results)}" if some else NOTHING for row in rows)),
        Column("runs", tuple(f"{len(row.results)} of {row.wanted}" if partial else NOTHING for row in rows)),
        Column("ε", tuple(_format_epsilon(row) for row in rows)),
        Column("δ", _format_cells(rows, "delta", compact), "at δ = {}"),
        Column("protects", _format_cells(rows, "unit", str), "for one {}", text=True),
        Column("from", _format_cells(rows, "against", str), "against the {}", text=True),
        Column("noise", tuple(_format_or_dash(row.noise_multiplier, 4) for row in rows), "noise multiplier {}"),
        Column("rounds", _format_cells(rows, "rounds", str), "{} rounds"),
        Column("clients", _format_cells(rows, "clients", str), "{} clients"),
        Column("seconds", tuple(_format_or_dash(row.seconds, 3) for row in rows)),
    ]
    told = {(column.heading, column.cells) for column in found[1 : 1 + len(swept)]}  # such as rounds, where swept
    return [
        column
        for place, column in enumerate(found)
        if not column.empty and (place <= len(swept) or (column.heading, column.cells) not in told)
    ]


def heading(metric: str) -> str:
    return "accuracy, %" if metric == "accuracy" else metric


def short_names(paths: Iterable[str]) -> dict[str, str]:
    """Each swept field by its last name, where that leaves no doubt."""
    listed = list(paths)
    lasts = [path.rpartition(".")[2] for path in listed]
    return {path: last if lasts.count(last) == 1 else path for path, last in zip(listed, lasts, strict=True)}


def notes(rows: Sequence[Row]) -> list[str]:
    """What the reader of a table must know beside it, in any form of it."""
    counts = {len(row.results) for row in rows}
    seeds = f"{max(counts)} seeds" if len(counts) == 1 else "seeds"
    said = [f"Mean ± standard error over {seeds}."] if max(counts) > 1 else []
    if any(row.results and row.epsilon is None for row in rows):
        said.append("ε = ∞: nothing is promised.")
    if any(each.get("data_ranges") for row in rows for each in row.results):
        said.append(DATA_RANGES)
    return [*said, f"{SEEDED} {TUNING}"]


def describe_shared(found: Sequence[Column]) -> str:
    """What all rows have in common, in one sentence; empty where that is nothing."""
    said = {
        column.heading: column.once.format(value).removesuffix("s" if value == "1" else "")
        for column in found
        if (value := column.shared) is not None
    }
    promise = [said.pop(name) for name in PROMISE if name in said]
    told = ", ".join([*said.values(), *([" ".join(["ε", *promise])] if promise else [])])
    return f"In all rows: {told}." if told else ""


def _format_epsilon(row: Row) -> str:
    if not row.results:
        return NOTHING
    return "∞" if row.epsilon is None or math.isinf(row.epsilon) else round_up(row.epsilon)


def _format_cells(rows: Sequence[Row], name: str, say: Any) -> tuple[str, ...]:
    return tuple(NOTHING if row.first(name) is None else say(row.first(name)) for row in rows)


def _format_or_dash(value: float | None, digits: int) -> str:
    return NOTHING if value is None else compact(value, digits)
