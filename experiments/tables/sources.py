"""The tables of this page as files that a user would have: a CSV, and its public ranges.

Rows with a missing value are left out, since a user must do so too.
"""

import csv
import gzip
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.data.tasks.acs_income import BIRTHPLACES, OCCUPATIONS, Codes
from discreet.data.tasks.lending_club import CATEGORIES, YEARS
from experiments.tables.public_ranges import (
    CANCER_RANGES,
    CREDIT_RANGES,
    FOUR_RANGES,
    HOUSING_RANGES,
    INCOME_RANGES,
    LOANS_RANGES,
    UNEQUAL_RANGES,
    WINE_RANGES,
    PublicRanges,
    pixel_ranges,
)

Row = list[str]


@dataclass(frozen=True)
class Source:
    """A table, and whether the rules of the starter were chosen on it or are only reported on it.

    Attributes:
        about: What the table is, for the page.
        ranges: The public range or values of each column but the client's; the label is the last one.
        rows: Returns the rows, each with the client first, then the columns in the order of `ranges`.
    """

    name: str
    about: str
    ranges: PublicRanges
    rows: Callable[[Path], Iterator[Row]]
    chooses: bool = False

    @property
    def label(self) -> str:
        """The column to predict."""
        return list(self.ranges)[-1]

    @property
    def is_regression(self) -> bool:
        return "min" in self.ranges[self.label]

    @property
    def columns(self) -> int:
        """Number of columns that are inputs."""
        return len(self.ranges) - 1

    def count(self, data_dir: Path) -> dict[str, int]:
        """Return the number of rows and of clients, and the rows of the smallest and the largest client."""
        sizes = Counter(row[0] for row in self.rows(data_dir)).values()
        return {"rows": sum(sizes), "clients": len(sizes), "smallest": min(sizes), "largest": max(sizes)}

    def write(self, folder: Path, data_dir: Path, clients: int | None = None) -> int:
        """Write table.csv and ranges.toml into the folder, and return the number of rows.

        Args:
            clients: Cut the rows, in the order of their clients, into this number of clients of equal size.
        """
        rows = list(self.rows(data_dir))
        if clients is not None:
            rows.sort(key=lambda row: row[0])
            rows = [[f"g{place * clients // len(rows):03}", *row[1:]] for place, row in enumerate(rows)]
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "table.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["client", *self.ranges], *rows])
        (folder / "ranges.toml").write_text(_format_ranges(self.ranges))
        return len(rows)


def _format_ranges(ranges: PublicRanges) -> str:
    lines = ["[columns]"]
    for name, known in ranges.items():
        inside = ", ".join(f"{key} = {_format_toml(value)}" for key, value in known.items())
        lines.append(f'"{name}" = {{ {inside} }}')
    return "\n".join(lines) + "\n"


def _format_toml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(f'"{each}"' for each in value) + "]"
    return str(value)


ACS_SAMPLES = {"income": (0, 40_000), "unequal": (1, 30_000), "four": (2, 29_501)}  # which third of the rows, how many


def _acs(data_dir: Path, sample: str) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Yield state and row of a sample; the samples share no row."""
    third, wanted = ACS_SAMPLES[sample]
    states, rows = [], []
    for file in sorted((data_dir / "acs-income").glob("*.csv.gz")):
        with gzip.open(file, "rt") as lines:
            found = np.loadtxt(lines, delimiter=",", skiprows=1, dtype=np.int64)[third::3]
        states += [file.name[:2]] * len(found)
        rows.append(found)
    table = np.concatenate(rows)
    for place in np.sort(np.random.default_rng(third).permutation(len(table))[:wanted]):
        yield states[place], table[place]


def _group_of(codes: Codes, code: int) -> str:
    return str(int(np.searchsorted(codes.starts, code, side="right")) - 1)


def _income_rows(data_dir: Path) -> Iterator[Row]:
    for state, row in _acs(data_dir, "income"):
        yield [state, *_income_cells(row)]


def _income_cells(row: NDArray[np.int64]) -> Row:
    cells = [str(value) for value in row.tolist()]
    cells[4], cells[5] = _group_of(OCCUPATIONS, row[4]), _group_of(BIRTHPLACES, row[5])
    return cells


def _unequal_rows(data_dir: Path) -> Iterator[Row]:
    for _, row in _acs(data_dir, "unequal"):
        cells = _income_cells(row)
        yield [f"place{row[5]:03}", *cells[:5], *cells[6:]]


def _four_rows(data_dir: Path) -> Iterator[Row]:
    for state, row in _acs(data_dir, "four"):
        age, schooling, hours, income, sex = (str(row[place]) for place in (0, 2, 7, 10, 8))
        yield [state, age, schooling, hours, income, sex]


CREDIT_GROUPS = 40


def _read_csv(file: Path) -> Iterator[dict[str, str]]:
    with gzip.open(file, "rt", newline="") as lines:
        yield from csv.DictReader(lines)


def _loans_rows(data_dir: Path) -> Iterator[Row]:
    for row in _read_csv(data_dir / "lending-club" / "loans_2007_2011.csv.gz"):
        row["emp_length"] = YEARS[row["emp_length"]]
        cells = [row[name] for name in LOANS_RANGES]
        if all(cells) and row["home_ownership"] in CATEGORIES["home_ownership"]:
            yield [row["addr_state"], *cells]


def _credit_rows(data_dir: Path) -> Iterator[Row]:
    groups = np.random.default_rng(0)
    for row in _read_csv(data_dir / "lending-club" / "loans_2012_2014_sample.csv.gz"):
        cells = [row[name] for name in CREDIT_RANGES]
        group = groups.integers(CREDIT_GROUPS)
        if all(cells):
            yield [f"branch{group:02}", *cells]


def _housing_rows(data_dir: Path) -> Iterator[Row]:
    """Blocks of California's 1990 census; the clients are cells of one degree."""
    from sklearn.datasets import fetch_california_housing

    found = fetch_california_housing(data_home=str(data_dir / "scikit_learn"))
    for row, value in zip(found.data, found.target, strict=True):
        yield [f"{math.floor(row[6])}N{math.floor(-row[7])}W", *(f"{each:.6g}" for each in (*row, value))]


def _rows_in_groups(inputs: NDArray[np.float64], targets: NDArray[Any], groups: int) -> Iterator[Row]:
    drawn = np.random.default_rng(0).permutation(len(inputs)) % groups
    for group, row, target in zip(drawn, inputs, targets, strict=True):
        yield [f"group{group:02}", *(f"{each:.6g}" for each in row), str(target)]


def _cancer_rows(data_dir: Path) -> Iterator[Row]:
    from sklearn.datasets import load_breast_cancer

    found = load_breast_cancer()
    yield from _rows_in_groups(found.data, found.target, 5)


def _wine_rows(data_dir: Path) -> Iterator[Row]:
    from sklearn.datasets import load_wine

    found = load_wine()
    yield from _rows_in_groups(found.data, found.target, 3)


def _idx(file: Path) -> NDArray[np.uint8]:
    """Read the array of a file in the format of MNIST."""
    content = gzip.decompress(file.read_bytes())
    shape = np.frombuffer(content, ">u4", content[3], 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * content[3]).reshape(shape)


def _block_means(pictures: NDArray[Any], side: int) -> NDArray[np.float64]:
    cells = 28 // side
    blocks: NDArray[np.float64] = pictures.reshape(-1, cells, side, cells, side).mean(axis=(2, 4))
    return blocks.reshape(len(pictures), -1)


PICTURES = 20_000


def _pictures(data_dir: Path, folder: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    where = data_dir / folder
    return _idx(where / "train-images-idx3-ubyte.gz")[:PICTURES], _idx(where / "train-labels-idx1-ubyte.gz")[:PICTURES]


def _digits_rows(data_dir: Path) -> Iterator[Row]:
    pictures, labels = _pictures(data_dir, "mnist")
    yield from _rows_in_groups(_block_means(pictures, 4), labels, 40)


def _wide_rows(data_dir: Path) -> Iterator[Row]:
    pictures, labels = _pictures(data_dir, "fashion-mnist")
    small, quarters = _block_means(pictures, 2), _block_means(pictures, 14)
    yield from _rows_in_groups(np.hstack([small, quarters]), labels, 40)


SOURCES: Sequence[Source] = (
    Source("income", "ACS Income, ten columns, by state", INCOME_RANGES, _income_rows, chooses=True),
    Source("credit", "Lending Club 2012–2014, interest rate, 40 groups", CREDIT_RANGES, _credit_rows, chooses=True),
    Source("digits", "MNIST as 49 block means, 40 groups", pixel_ranges(49), _digits_rows, chooses=True),
    Source("cancer", "breast cancer (scikit-learn), 5 groups", CANCER_RANGES, _cancer_rows, chooses=True),
    Source("four", "ACS, sex from four numeric columns, by state", FOUR_RANGES, _four_rows),
    Source("loans", "Lending Club 2007–2011, interest rate, by state", LOANS_RANGES, _loans_rows),
    Source("housing", "California housing, by degree of latitude and longitude", HOUSING_RANGES, _housing_rows),
    Source("unequal", "ACS Income by place of birth: very unequal clients", UNEQUAL_RANGES, _unequal_rows),
    Source("wide", "Fashion-MNIST as 200 block means, 40 groups", pixel_ranges(200), _wide_rows),
    Source("wine", "wine (scikit-learn), 3 groups", WINE_RANGES, _wine_rows),
)
