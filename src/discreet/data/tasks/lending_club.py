"""Lending Club's loans of 2007 to 2011: predict the interest rate from the application and its date."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.data.datasets.dataset_files import read_data_file
from discreet.data.datasets.owner_checksums import FileContent, describe_origin, disclose_checksums
from discreet.data.partition import AnyPartition, Shards
from discreet.data.tables.column_kinds import Range, parse_number
from discreet.data.tasks.examples import Examples
from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput, nearest_names
from discreet.lazy_torch import Tensor, torch
from discreet.part import Count, Probability, Share, part
from discreet.paths import Paths
from discreet.privacy.card_lines import Line
from discreet.words import fill

FILE = "loans_2007_2011.csv"
TARGET, STATE = "int_rate", "addr_state"
CENTRE = 15.0  # the middle of 5 to 25 percent, the range of the published rates
PROJECTION_SEED = 0

T = TypeVar("T")
Columns: TypeAlias = dict[str, list[str]]


class Number(NamedTuple):
    """A number between public bounds.

    Attributes:
        missing: The value that replaces a missing number.
        logarithmic: Whether it is scaled logarithmically, as it spans several orders of magnitude.
    """

    low: float
    high: float
    missing: float
    logarithmic: bool = False

    def scale(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scale to [-1, 1]. NaN marks a missing value."""
        values = np.where(np.isnan(values), self.missing, values)
        if not self.logarithmic:
            return Range(min=self.low, max=self.high).scale(values)
        return Range(min=np.log1p(self.low), max=np.log1p(self.high)).scale(np.log1p(values.clip(min=0)))


NEVER = 120  # months: a credit file goes back no further
NUMBERS = {
    "loan_amnt": Number(500, 35_000, 10_000),
    "term": Number(36, 60, 36),
    "annual_inc": Number(1_000, 10_000_000, 50_000, logarithmic=True),
    "dti": Number(0, 30, 15),
    "delinq_2yrs": Number(0, 10, 0),
    "inq_last_6mths": Number(0, 10, 0),
    "mths_since_last_delinq": Number(0, NEVER, NEVER),
    "mths_since_last_record": Number(0, NEVER, NEVER),
    "open_acc": Number(0, 50, 10),
    "pub_rec": Number(0, 5, 0),
    "revol_bal": Number(0, 1_000_000, 0, logarithmic=True),
    "revol_util": Number(0, 100, 50),
    "total_acc": Number(0, 100, 25),
    "pub_rec_bankruptcies": Number(0, 2, 0),
    "emp_length": Number(0, 10, 0),  # years
    "issue_d": Number(0, 54, 0),  # months since June 2007
    "earliest_cr_line": Number(0, 600, 180),  # months from then to the issue
}
YEARS = {"n/a": "", "< 1 year": "0", "1 year": "1", **{f"{n} years": str(n) for n in range(2, 10)}, "10+ years": "10"}
CATEGORIES = {
    "home_ownership": ("RENT", "MORTGAGE", "OWN", "OTHER", "NONE"),
    "verification_status": ("Not Verified", "Source Verified", "Verified"),
    "purpose": (
        *("car", "credit_card", "debt_consolidation", "educational", "home_improvement", "house", "major_purchase"),
        *("medical", "moving", "other", "renewable_energy", "small_business", "vacation", "wedding"),
    ),
}


@part
class LendingClub:
    """A regression with 39 inputs. By default, the clients are loans sorted by the interest rate.

    Attributes:
        clients: Number of clients. Only a partition by group can do without it.
        partition: How examples are assigned to clients.
        reduction: How the 39 inputs are reduced: "pca" is fitted on the training data, which no guarantee covers;
            "projection" is a fixed random matrix, which is independent of the data; "none" keeps all inputs.
        components: Number of inputs after the reduction.
        test_fraction: The share of all loans that is held out for evaluation.
        validation_fraction: The share of each client's training examples that is held out for choosing settings.
    """

    kind: Literal["lending_club"] = "lending_club"
    clients: Count | None = 10
    partition: AnyPartition = Shards()
    reduction: Literal["pca", "projection", "none"] = "pca"
    components: Count = 10
    test_fraction: Probability = 0.2
    validation_fraction: Share = 0.0

    def load(self, generator: torch.Generator, paths: Paths) -> Task:
        """Read the loans, hold out some at random, reduce the inputs, and assign the other loans to clients."""
        content = read_data_file(paths, "lending_club", FILE)
        columns = _read_columns(content)
        inputs, rates = _encode_inputs(columns), torch.from_numpy(_parse_numbers(columns, TARGET) - CENTRE).float()
        states = sorted(set(columns[STATE]))
        groups = torch.tensor([states.index(state) for state in columns[STATE]])
        order = torch.randperm(len(rates), generator=generator)
        test, train = order.tensor_split([int(len(rates) * self.test_fraction)])
        mean, matrix = self._reduction(inputs[train])
        reduced = (inputs - mean) @ matrix
        examples = Examples(
            name="lending_club",
            inputs=reduced[train],
            targets=rates[train],
            test_inputs=reduced[test],
            test_targets=rates[test],
            kind="regression",
            classes=1,
            groups=groups[train],
            group_names=tuple(states),
            label=fill("data.label.interest_rate"),
            facts=(
                *describe_origin([content], fill("data.lending_club.public")),
                fill("data.lending_club.inputs"),
                fill("data.lending_club.scaling"),
                fill("data.lending_club.target", centre=f"{CENTRE:g}"),
                Line(fill("data.public_states"), "owner"),
                fill("data.lending_club.held_out", share=f"{self.test_fraction:.0%}"),
                *self._describe_reduction(),
            ),
            not_covered=(*self._disclose_reduction(), *disclose_checksums([content])),
        )
        return examples.build_task(self.clients, self.partition, generator, self.validation_fraction)

    def _reduction(self, train: Tensor) -> tuple[Tensor, Tensor]:
        """Return the vector that is subtracted from the inputs, and the matrix that they are then multiplied by."""
        examples, width = train.shape
        if self.reduction == "none":
            return torch.zeros(width), torch.eye(width)
        if self.components > min(examples, width):
            raise InvalidInput(
                f"components must be at most {min(examples, width)}, because there are {width} inputs and {examples:,} "
                f"training loans, and got {self.components}."
            )
        if self.reduction == "projection":
            fixed = torch.Generator().manual_seed(PROJECTION_SEED)
            return torch.zeros(width), torch.randn(width, self.components, generator=fixed) / self.components**0.5
        return _principal_components(train.double(), self.components)

    def _describe_reduction(self) -> tuple[str, ...]:
        match self.reduction:
            case "pca":
                return ()
            case "projection":
                return (fill("data.lending_club.projection", components=self.components),)
            case "none":
                return (fill("data.lending_club.nothing_fitted"),)

    def _disclose_reduction(self) -> tuple[str, ...]:
        if self.reduction != "pca":
            return ()
        return (fill("not_covered.principal_components", components=self.components),)


def _principal_components(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the mean and the directions of largest variance, each as a column whose largest number is positive."""
    mean = values.mean(dim=0)
    _, directions = torch.linalg.eigh((values - mean).T @ (values - mean))  # in ascending order of variance
    largest = directions.flip(1)[:, :count]
    signs = largest.gather(0, largest.abs().argmax(dim=0, keepdim=True)).sign()
    return mean.float(), (largest * signs).float()


def read_loans(content: FileContent) -> Tensor:
    """Return all inputs of the file and, in the last column, the rates. Refuse a file that can't be read."""
    columns = _read_columns(content)
    return torch.cat([_encode_inputs(columns), torch.from_numpy(_parse_numbers(columns, TARGET))[:, None]], dim=1)


def _read_columns(content: FileContent) -> Columns:
    """Read the cells of each column; dates become numbers of months, employment becomes years."""
    header, *rows = list(csv.reader(content.data.decode("utf-8", "replace").splitlines())) or [[]]
    needed = {TARGET, STATE, *NUMBERS, *CATEGORIES}
    if lacking := sorted(needed - set(header)):
        raise InvalidInput(f"{FILE} must have a column {lacking[0]!r}, and has {', '.join(header):.200}.")
    if not rows or any(len(row) != len(header) for row in rows):
        raise InvalidInput(
            f"{FILE} must have rows, all of {len(header)} cells as its header.", fix="Look for broken lines."
        )
    columns: Columns = {name: list(cells) for name, cells in zip(header, zip(*rows, strict=True), strict=True)}
    first, issued = _parse_month("2007-06"), _map_distinct(_parse_month, columns["issue_d"])
    opened = _map_distinct(_parse_month, columns["earliest_cr_line"])
    columns["emp_length"] = [YEARS.get(cell, cell) for cell in columns["emp_length"]]
    columns["issue_d"] = [str(month - first) for month in issued]
    columns["earliest_cr_line"] = [str(now - then) if then else "" for now, then in zip(issued, opened, strict=True)]
    return columns


def _map_distinct(parse: Callable[[str], T], cells: list[str]) -> list[T]:
    """Parse each cell; equal cells are parsed once."""
    parsed = {cell: parse(cell) for cell in set(cells)}
    return [parsed[cell] for cell in cells]


def _parse_month(cell: str) -> int:
    """Return the months since the year 0 for a date such as 2007-06, and 0 for an empty cell."""
    if not cell:
        return 0
    year, dash, month = cell.partition("-")
    if not (dash and year.isdecimal() and month.isdecimal()):
        raise InvalidInput(f"{FILE}: a date must be a year and a month such as 2007-06, and got {cell!r:.40}.")
    return 12 * int(year) + int(month)


def _encode_inputs(columns: Columns) -> Tensor:
    """Return the scaled numbers, followed by one input for each value of a category."""
    numbers = [number.scale(_parse_numbers(columns, name)) for name, number in NUMBERS.items()]
    categories = [np.eye(len(values))[_category_indices(columns, name)] for name, values in CATEGORIES.items()]
    return torch.from_numpy(np.hstack([np.stack(numbers, axis=1), *categories]).astype(np.float32))


def _parse_numbers(columns: Columns, name: str) -> NDArray[np.float64]:
    numbers = _map_distinct(lambda cell: parse_number(cell) if cell else math.nan, columns[name])
    if None in numbers:
        raise InvalidInput(f"{FILE}: {name} must be numbers, and got {columns[name][numbers.index(None)]!r:.40}.")
    return np.array(numbers, dtype=np.float64)


def _category_indices(columns: Columns, name: str) -> list[int]:
    index = {value: number for number, value in enumerate(CATEGORIES[name])}
    if unknown := sorted(set(columns[name]) - set(index)):
        raise InvalidInput(
            f"{FILE}: {name} must be one of {nearest_names(list(index), unknown[0])}, and got {unknown[0]!r:.40}."
        )
    return [index[cell] for cell in columns[name]]
