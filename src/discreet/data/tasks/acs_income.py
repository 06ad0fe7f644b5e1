"""ACSIncome 2018 (folktables): predict whether a person earns over 50,000 dollars a year. Each state is a client."""

from __future__ import annotations

import warnings
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.data.datasets.dataset_catalog import find_data_set
from discreet.data.datasets.dataset_files import read_data_files
from discreet.data.datasets.owner_checksums import FileContent, describe_origin, disclose_checksums
from discreet.data.partition import AnyPartition, ByGroup
from discreet.data.tables.column_kinds import Range
from discreet.data.tasks.examples import Examples
from discreet.data.tasks.task import Task, split_held_out
from discreet.errors import InvalidInput
from discreet.lazy_torch import Tensor, torch
from discreet.part import Count, Probability, Share, part
from discreet.paths import Paths
from discreet.privacy.card_lines import Line
from discreet.words import fill


class Codes(NamedTuple):
    """Public groups of a column's codes: the first code of each group, and the last code of all."""

    starts: tuple[int, ...]
    last: int


def _single_codes(first: int, last: int) -> Codes:
    """Return one group for each code."""
    return Codes(tuple(range(first, last + 1)), last)


STARTS = (
    "10 500 800 1005 1305 1600 2001 2100 2205 2600 3000 3601 3700 4000 4200 4330 4700 5000 6005 6200 6800 7000 7700 "
    "9005 9800"
)
# The 25 groups that the PUMS dictionary of 2018 marks by a prefix: MGR (managers), BUS, FIN, …, TRN, MIL (military).
OCCUPATIONS = Codes(tuple(map(int, STARTS.split())), 9830)
# US states; territories; Europe; Asia; Canada; Mexico and Central America; Caribbean; South America; Africa; Oceania.
BIRTHPLACES = Codes((1, 60, 100, 200, 300, 303, 320, 360, 400, 500), 554)

FEATURES: dict[str, Range | Codes] = {
    "AGEP": Range(min=17, max=99),
    "COW": _single_codes(1, 8),
    "SCHL": Range(min=1, max=24),
    "MAR": Codes((1, 2), 5),  # 1 is married; the files write 2 for not married, and raw PUMS codes 2 to 5 mean the same
    "OCCP": OCCUPATIONS,
    "POBP": BIRTHPLACES,
    "RELP": _single_codes(0, 17),
    "WKHP": Range(min=1, max=99),
    "SEX": _single_codes(1, 2),
    "RAC1P": _single_codes(1, 9),
}
LABEL = "PINCP"
HEADER = ",".join([*FEATURES, LABEL])
WIDTH = sum(len(feature.starts) if isinstance(feature, Codes) else 1 for feature in FEATURES.values())


@part
class AcsIncome:
    """Two classes and 77 inputs. The natural clients are the 50 states and Puerto Rico.

    Attributes:
        clients: Number of clients. If not set, every group is a client.
        partition: How examples are assigned to clients.
        states: Use only these states. All if not set.
        test_fraction: The share of each state's examples that is held out for evaluation.
        validation_fraction: The share of each client's training examples that is held out for choosing settings.
    """

    kind: Literal["acs_income"] = "acs_income"
    clients: Count | None = None
    partition: AnyPartition = ByGroup()
    states: tuple[str, ...] | None = None
    test_fraction: Probability = 0.2
    validation_fraction: Share = 0.0

    def __post_init__(self) -> None:
        if self.states is None:
            return
        if not self.states or len(set(self.states)) != len(self.states) or set(self.states) - set(_all_states()):
            raise InvalidInput(
                f"states must list some of {', '.join(_all_states())}, each once, and got {list(self.states)!r:.60}."
            )

    def load(self, generator: torch.Generator, paths: Paths) -> Task:
        """Read the states, hold out examples of each, and assign the others to clients."""
        states = self.states or _all_states()
        contents = read_data_files(paths, "acs_income", [f"{state}.csv" for state in states])
        tables = [read_state(content) for content in contents]
        sizes = tuple(map(len, tables))
        train, test = split_held_out(sizes, self.test_fraction, generator)
        rows = np.concatenate(tables)
        inputs, targets = _encode_rows(rows[train.numpy()])
        test_inputs, test_targets = _encode_rows(rows[test.numpy()])
        examples = Examples(
            name="acs_income",
            inputs=inputs,
            targets=targets,
            test_inputs=test_inputs,
            test_targets=test_targets,
            kind="classification",
            classes=2,
            groups=torch.repeat_interleave(torch.tensor(sizes))[train],
            group_names=states,
            label=LABEL,
            facts=(
                *describe_origin(contents, fill("data.acs_income.public")),
                fill("data.acs_income.inputs"),
                Line(fill("data.public_states"), "owner"),
                fill("data.held_out_by_state", share=f"{self.test_fraction:.0%}"),
            ),
            not_covered=disclose_checksums(contents),
        )
        return examples.build_task(self.clients, self.partition, generator, self.validation_fraction)


def _all_states() -> tuple[str, ...]:
    return tuple(name.removesuffix(".csv") for name in find_data_set("acs_income").files)


def read_state(content: FileContent) -> NDArray[np.int32]:
    """Read the file of one state: a row of numbers for each person, coded as in the PUMS dictionary."""
    file = content.name
    header, _, body = content.data.replace(b"\r", b"").partition(b"\n")
    if header.decode("utf-8", "replace") != HEADER:
        raise InvalidInput(f"{file} must have the columns {HEADER}, and has {header.decode('utf-8', 'replace')!r:.90}.")
    body = body.rstrip(b"\n")
    numbers = _parse_numbers(body.replace(b"\n", b","))
    rows, columns = body.count(b"\n") + 1 if body else 0, len(FEATURES) + 1
    if not rows or len(numbers) != rows * columns or body.count(b",") != rows * (columns - 1):
        raise InvalidInput(f"{file} must have {columns} whole numbers in each of its {rows:,} rows, and doesn't.")
    table = numbers.reshape(rows, columns)
    for values, (name, feature) in zip(table.T, FEATURES.items(), strict=False):
        if isinstance(feature, Codes):
            _check_bounds(values, feature.starts[0], feature.last, f"{file}: {name}")
    _check_bounds(table[:, -1], 0, 1, f"{file}: {LABEL}")
    return table


def _parse_numbers(text: bytes) -> NDArray[np.int32]:
    """Parse whole numbers separated by commas. Return an empty array if anything else is among them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # older numpy reports it so
        try:
            return np.fromstring(text, dtype=np.int32, sep=",")
        except (ValueError, DeprecationWarning):
            return np.empty(0, dtype=np.int32)


def _check_bounds(values: NDArray[np.int32], first: int, last: int, what: str) -> None:
    low, high = int(values.min()), int(values.max())
    if low < first or high > last:
        raise InvalidInput(f"{what} must be between {first} and {last}, and got {low if low < first else high}.")


def _encode_rows(rows: NDArray[Any]) -> tuple[Tensor, Tensor]:
    """Scale numbers to [-1, 1], and turn codes into one input per group; return inputs and labels."""
    inputs, column, every_row = np.zeros((len(rows), WIDTH), dtype=np.float32), 0, np.arange(len(rows))
    for values, feature in zip(rows.T, FEATURES.values(), strict=False):
        if isinstance(feature, Range):
            inputs[:, column] = feature.scale(values.astype(np.float64))
            column += 1
        else:
            inputs[every_row, column + np.searchsorted(feature.starts, values, side="right") - 1] = 1
            column += len(feature.starts)
    return torch.from_numpy(inputs), torch.from_numpy(rows[:, -1].astype(np.int64))
