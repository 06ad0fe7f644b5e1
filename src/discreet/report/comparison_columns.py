"""The columns of a comparison's table as text: for the terminal, the page, Markdown and LaTeX."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.experiment.metrics import is_share
from discreet.privacy.wording import compact, round_up
from discreet.report.comparison_promises import NO_PROMISE, describe_promises
from discreet.report.comparison_rows import DASH, DECLARED, Row

PROMISE_COLUMNS = ("δ", "protects", "from")  # they say what an ε is about


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
    def least_width(self) -> int:
        """The letters that the column needs: its cells are kept on one line, and its heading breaks at spaces."""
        return max(map(len, (*self.heading.split(), *self.cells)))

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
        Column(_metric_heading(rows, metrics), tuple(results)),
        *_chosen_columns(rows),
        Column(_validation_heading(rows), tuple(row.format_validation() for row in rows)),
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


def narrow_columns(rows: Sequence[Row]) -> tuple[list[Column], list[str]]:
    """Return the columns in which rows differ, and sentences about the others, for a table that must be narrow.

    Where rows differ in more of the promise than ε, one column names each promise by a letter, and a sentence says what
    the letter stands for.
    """
    every = columns(rows)
    shown = [column for column in every if column.shared_value is None]
    sentences = [describe_shared(every)]
    if any(column.heading in PROMISE_COLUMNS for column in shown):
        letters: dict[str, str] = {}
        promises = [describe_promises([row], "privacy.epsilon") for row in rows]
        for promise in promises:
            if promise != NO_PROMISE:
                letters.setdefault(promise, "abcdefghijklmnopqrstuvwxyz"[len(letters) % 26])
        first = next(index for index, column in enumerate(shown) if column.heading in PROMISE_COLUMNS)
        shown.insert(first, Column("promise", tuple(letters.get(promise, DASH) for promise in promises)))
        shown = [column for column in shown if column.heading not in PROMISE_COLUMNS]
        sentences += [f"Promise {letter}: ε at {promise}." for promise, letter in letters.items()]
    return shown, [sentence for sentence in sentences if sentence]


def _chosen_columns(rows: Sequence[Row]) -> list[Column]:
    """Return a column for each field that was chosen on validation data."""
    paths = dict.fromkeys(path for row in rows for path in row.chosen)
    return [
        Column(f"chosen {short}", tuple(_count_values(row.chosen.get(path, ())) for row in rows))
        for path, short in short_names(paths).items()
    ]


def _count_values(values: Sequence[str]) -> str:
    """List the values that seeds chose, the most frequent first: `0.5`, or `0.5 ×2, 1 ×1`."""
    counts = Counter(values).most_common()
    if len(counts) <= 1:
        return counts[0][0] if counts else DASH
    return ", ".join(f"{value} ×{count}" for value, count in counts)


def _metric_heading(rows: Sequence[Row], metrics: set[str]) -> str:
    """Return the heading of the test metric, which says that it is one where validation data is beside it."""
    if len(metrics) != 1:
        return "test metric"
    (metric,) = metrics
    return f"test {heading(metric)}" if any(row.validation_metric for row in rows) else heading(metric)


def _validation_heading(rows: Sequence[Row]) -> str:
    metrics = {row.validation_metric for row in rows if row.validation_metric}
    return f"validation {heading(metrics.pop())}" if len(metrics) == 1 else "validation"


def heading(metric: str) -> str:
    """Return the heading of a metric, with its unit."""
    return f"{metric}, %" if is_share(metric) else metric


def short_names(paths: Iterable[str]) -> dict[str, str]:
    """Shorten the path of each swept field to its last name, where that is unambiguous."""
    full = list(paths)
    lasts = [path.rpartition(".")[2] for path in full]
    return {path: last if lasts.count(last) == 1 else path for path, last in zip(full, lasts, strict=True)}


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
