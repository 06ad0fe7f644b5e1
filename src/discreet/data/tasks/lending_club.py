"""Lending Club's loans of 2007 to 2011: the interest rate from what was applied for, by whom, and when."""

import csv
import math
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from discreet.data.datasets.dataset_files import read_data_file
from discreet.data.datasets.owner_checksums import FileContent, describe_origin, disclose_checksums
from discreet.data.partition import AnyPartition, Shards
from discreet.data.tables.ranges import Range, parse_number
from discreet.data.tasks.examples import Examples
from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput
from discreet.part import Count, Probability, part
from discreet.paths import Paths

FILE = "loans_2007_2011.csv"
TARGET, STATE = "int_rate", "addr_state"
CENTRE = 15.0  # the middle of 5 to 25 percent, where the published rates lie
PROJECTION_SEED = 0

T = TypeVar("T")
Columns: TypeAlias = dict[str, list[str]]


class Number(NamedTuple):
    """A number between public bounds, on a logarithmic scale where it spans magnitudes, and what stands for none."""

    low: float
    high: float
    missing: float
    logarithmic: bool = False

    def scale(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """On [-1, 1]; NaN stands for what is missing."""
        values = np.where(np.isnan(values), self.missing, values)
        if not self.logarithmic:
            return Range(min=self.low, max=self.high).scale(values)
        return Range(min=np.log1p(self.low), max=np.log1p(self.high)).scale(np.log1p(values.clip(min=0)))


NEVER = 120  # months: as long ago as a credit file remembers
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

PUBLIC = "Lending Club's loans of 2007 to 2011 are public data, treated as if they were private."
FACTS = (
    "What the application says is used, and issue_d, the month in which the loan was issued, which may be some weeks "
    "after it was listed; grade, sub_grade and installment are not, as they follow from the rate, nor loan_status and "
    "funded_amnt, which come later.",
    "Numbers are scaled to [-1, 1] by public bounds, incomes and balances on a logarithmic scale; listed values become "
    "one input each, dates a number of months; what is missing is replaced by public constants.",
    f"The target is the interest rate in percentage points less {CENTRE:g}, a public constant: squared errors are in "
    "squared percentage points.",
    "States and their numbers of examples are public.",
)


@part
class LendingClub:
    """One number to predict; sorted by it into clients, or by state, or as any partition says.

    `reduction` makes `components` inputs of the 39: "pca" is fitted on the training data, which no guarantee covers;
    "projection" is a fixed random matrix, which knows no data; "none" leaves all inputs.
    """

    kind: Literal["lending_club"] = "lending_club"
    clients: Count | None = 10
    partition: AnyPartition = Shards()
    reduction: Literal["pca", "projection", "none"] = "pca"
    components: Count = 10
    test_fraction: Probability = 0.2

    def load(self, generator: torch.Generator, paths: Paths) -> Task:
        read = read_data_file(paths, "lending_club", FILE)
        columns = _read_columns(read)
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
            label="interest rate",
            facts=(*describe_origin([read], PUBLIC), *FACTS, *self._describe_reduction()),
            not_covered=(*self._disclose_reduction(), *disclose_checksums([read])),
        )
        return examples.build_task(self.clients, self.partition, generator)

    def _reduction(self, train: Tensor) -> tuple[Tensor, Tensor]:
        """What is subtracted from the inputs, and the matrix that they are then multiplied by."""
        examples, width = train.shape
        if self.reduction == "none":
            return torch.zeros(width), torch.eye(width)
        if self.components > min(examples, width):
            raise InvalidInput(
                f"components must be at most {min(examples, width)}, as there are {width} inputs and {examples:,} "
                f"training loans, and got {self.components}."
            )
        if self.reduction == "projection":
            known = torch.Generator().manual_seed(PROJECTION_SEED)
            return torch.zeros(width), torch.randn(width, self.components, generator=known) / self.components**0.5
        from sklearn.decomposition import PCA  # a second to import

        fitted = PCA(self.components, svd_solver="covariance_eigh").fit(train.double().numpy())
        return torch.from_numpy(fitted.mean_).float(), torch.from_numpy(fitted.components_.T).float()

    def _describe_reduction(self) -> tuple[str, ...]:
        held_out = f"{self.test_fraction:.0%} of all loans are held out for evaluation."
        match self.reduction:
            case "pca":
                return (held_out,)
            case "projection":
                how = f"Inputs are projected to {self.components} by a random matrix of a fixed seed"
                return held_out, f"{how}: nothing was fitted on the clients' data."
            case "none":
                return held_out, "Nothing was fitted on the clients' data."

    def _disclose_reduction(self) -> tuple[str, ...]:
        if self.reduction != "pca":
            return ()
        return (
            f"The {self.components} principal components and their mean were fitted on the clients' data, outside the "
            "guarantee.",
        )


def read_loans(read: FileContent) -> Tensor:
    """All inputs of the file and, last, the rates: what can be read of one that its owner vouches for."""
    columns = _read_columns(read)
    return torch.cat([_encode_inputs(columns), torch.from_numpy(_parse_numbers(columns, TARGET))[:, None]], dim=1)


def _read_columns(read: FileContent) -> Columns:
    """The cells of each column that is needed; dates as months, employment as years."""
    header, *rows = list(csv.reader(read.data.decode("utf-8", "replace").splitlines())) or [[]]
    needed = {TARGET, STATE, *NUMBERS, *CATEGORIES}
    if lacking := sorted(needed - set(header)):
        raise InvalidInput(f"{FILE} must have a column {lacking[0]!r}, and has {', '.join(header):.200}.")
    if not rows or any(len(row) != len(header) for row in rows):
        raise InvalidInput(
            f"{FILE} must have rows, all of {len(header)} cells as its header.", fix="Look for torn lines."
        )
    columns: Columns = {name: list(cells) for name, cells in zip(header, zip(*rows, strict=True), strict=True)}
    first, listed = _parse_month("2007-06"), _map_distinct(_parse_month, columns["issue_d"])
    opened = _map_distinct(_parse_month, columns["earliest_cr_line"])
    columns["emp_length"] = [YEARS.get(cell, cell) for cell in columns["emp_length"]]
    columns["issue_d"] = [str(month - first) for month in listed]
    columns["earliest_cr_line"] = [str(now - then) if then else "" for now, then in zip(listed, opened, strict=True)]
    return columns


def _map_distinct(reading: Callable[[str], T], cells: list[str]) -> list[T]:
    """What each cell says; those that are alike are read once."""
    known = {cell: reading(cell) for cell in set(cells)}
    return [known[cell] for cell in cells]


def _parse_month(cell: str) -> int:
    """Since the year 0, of 2007-06, say; 0 when there is none."""
    if not cell:
        return 0
    year, dash, month = cell.partition("-")
    if not (dash and year.isdecimal() and month.isdecimal()):
        raise InvalidInput(f"{FILE}: a date must be a year and a month as 2007-06, and got {cell!r:.40}.")
    return 12 * int(year) + int(month)


def _encode_inputs(columns: Columns) -> Tensor:
    """Numbers, then one input for each listed value."""
    numbers = [known.scale(_parse_numbers(columns, name)) for name, known in NUMBERS.items()]
    listed = [np.eye(len(values))[_category_indices(columns, name)] for name, values in CATEGORIES.items()]
    return torch.from_numpy(np.hstack([np.stack(numbers, axis=1), *listed]).astype(np.float32))


def _parse_numbers(columns: Columns, name: str) -> NDArray[np.float64]:
    found = _map_distinct(lambda cell: parse_number(cell) if cell else math.nan, columns[name])
    if None in found:
        raise InvalidInput(f"{FILE}: {name} must hold numbers, and got {columns[name][found.index(None)]!r:.40}.")
    return np.array(found, dtype=np.float64)


def _category_indices(columns: Columns, name: str) -> list[int]:
    known = {value: number for number, value in enumerate(CATEGORIES[name])}
    if strange := sorted(set(columns[name]) - set(known)):
        raise InvalidInput(f"{FILE}: {name} must be one of {', '.join(known)}, and got {strange[0]!r:.40}.")
    return [known[cell] for cell in columns[name]]
