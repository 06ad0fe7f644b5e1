"""Build a task from a user's CSV or Parquet table: one column names the client, public ranges scale the others."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.algorithms.population import Population
from discreet.data.data_facts import DataFacts
from discreet.data.federation import Federation
from discreet.data.tables.column_kinds import DateRange, HashedText, Range, Values
from discreet.data.tables.file_reader import open_csv, open_parquet, open_table
from discreet.data.tables.person_sides import TRAINING, check_other_persons, split_persons
from discreet.data.tables.ranges import Ranges, find_file, load_ranges
from discreet.data.tables.table import Table
from discreet.data.tables.table_columns import TableColumns
from discreet.data.tables.table_encoding import EncodedTable, Encoding, encode_table
from discreet.data.tasks.task import Task, split_held_out, training_size
from discreet.errors import InvalidInput
from discreet.lazy_torch import Tensor, torch
from discreet.part import Count, Flag, Share, part
from discreet.paths import Paths, to_path
from discreet.privacy.card_lines import Line
from discreet.privacy.release import Person
from discreet.validation_errors import describe_value
from discreet.words import fill

READERS: dict[str, Callable[[Path], Table]] = {"csv": open_csv, "parquet": open_parquet}


@part
class TableTask:
    """A table with one row per example. Numbers are scaled to [-1, 1] by their public ranges.

    Attributes:
        path: The table, relative to the experiment's folder or to the current directory.
        client: The column that names the client of each row.
        label: The column to predict: a class if its range lists `values`, a number if it has `min` and `max`.
        ranges: The public ranges of the columns: a TOML file, or a table of columns.
        test_fraction: The share of each client's rows that is held out for evaluation. 0 holds out none. In a promise
            for one person it is a share of the persons, who are held out with all their rows.
        validation_fraction: The share of each client's other rows, or of the other persons, that is held out for
            choosing settings.
        validation_path: A table with the same columns whose rows are for choosing settings, and are not in the table
            itself. Instead of `validation_fraction`.
        max_multiplicity: The largest number of clients that hold the same example. Only the data's owner can know it.
        standardise: Whether numbers are also standardised, by means and spreads from one noisy sum before the first
            round, which the promise pays for. Ranges are often much wider than the data, and training is then slow.
    """

    kind: Literal["csv", "parquet"]
    path: str
    client: str
    label: str
    ranges: str | dict[str, Any]
    test_fraction: Share = 0.2
    validation_fraction: Share = 0.0
    validation_path: str | None = None
    max_multiplicity: Count = 1
    standardise: Flag = True

    def __post_init__(self) -> None:
        if self.validation_fraction and self.validation_path is not None:
            raise InvalidInput(
                "Validation rows are either a share of each client's rows or those of a file, and both are set.",
                fix="Leave out validation_fraction or validation_path.",
            )

    def load(self, generator: torch.Generator, paths: Paths, person: Person | None = None) -> Task:
        """Read and encode the table. With a `person`, rows are bounded before any are held out for evaluation."""
        rows, encoding, data = self._read(paths, person)
        inputs_by_name = {name: replace(column) for name, column in encoding.named_features}  # without what they cached
        columns = TableColumns(inputs=inputs_by_name, label=self.label, target=replace(encoding.label))
        inputs, targets = rows.tensors()
        validation = None if self.validation_path is None else self._read_validation(columns, paths, rows, person)
        sides = self._sides(rows)
        if sides is None:
            train, test = split_held_out(rows.sizes, self.test_fraction, generator)
            sizes = tuple(training_size(size, self.test_fraction) for size in rows.sizes)
        else:
            train, test, chosen = (torch.from_numpy(np.flatnonzero(sides == side)) for side in range(3))
            sizes = self._training_sizes(rows)
            if self.validation_fraction:
                validation = inputs[chosen], targets[chosen]
                if not len(chosen):
                    raise InvalidInput(
                        f"A validation_fraction of {self.validation_fraction} holds out no person.",
                        fix="Raise it, or leave it out.",
                    )
        task = Task(
            name=Path(self.path).stem,
            train=Federation(inputs[train], targets[train], sizes, self.max_multiplicity),
            test_inputs=inputs[test],
            test_targets=targets[test],
            kind=data.kind,
            classes=encoding.label.width,
            client_names=rows.names,
            validation=validation,
            facts=data.facts,
            not_covered=data.not_covered,
            ranges_from_data=data.ranges_from_data,
            person=person,
            rows_left_out=data.rows_left_out,
            standardisation=data.standardisation,
            columns=columns,
        )
        if sides is not None:  # validation rows of persons are on a side of their own already
            return task
        return replace(task.hold_out_validation(self.validation_fraction, generator), facts=data.facts)

    def describe(self, paths: Paths, person: Person | None = None) -> tuple[Population, DataFacts]:
        """Return the client sizes, and what cards say about the data: what a plan needs, without torch."""
        rows, _, data = self._read(paths, person)
        return Population(examples=self._training_sizes(rows), max_multiplicity=self.max_multiplicity), data

    def _sides(self, rows: EncodedTable) -> NDArray[np.int64] | None:
        """Return the side of each row, with all rows of a person on one: to train on, test or validation.

        None if the rows name no persons.
        """
        if rows.persons is None:
            return None
        return split_persons(rows.persons, rows.clients, (self.test_fraction, self.validation_fraction))

    def _training_sizes(self, rows: EncodedTable) -> tuple[int, ...]:
        sides = self._sides(rows)
        if sides is not None:
            return tuple(np.bincount(rows.clients[sides == TRAINING], minlength=len(rows.sizes)).tolist())
        return tuple(training_size(size, self.test_fraction, self.validation_fraction) for size in rows.sizes)

    def _read_validation(
        self, columns: TableColumns, paths: Paths, rows: EncodedTable, person: Person | None
    ) -> tuple[Tensor, Tensor]:
        """Read the table of validation rows, which needs the inputs, the label and, in a promise for one, the person.

        Raises:
            InvalidInput: A person has rows in both tables.
        """
        assert self.validation_path is not None
        table = open_table(find_file(self.validation_path, paths.folder))
        if person is not None:
            check_other_persons(table, person, rows.persons or (), Path(self.path).name)
        inputs, targets = columns.encode_labelled(table)
        return torch.from_numpy(inputs), torch.from_numpy(targets)

    def _read(self, paths: Paths, person: Person | None) -> tuple[EncodedTable, Encoding, DataFacts]:
        ranges = load_ranges(self.ranges, paths.folder)
        table = READERS[self.kind](find_file(self.path, paths.folder))
        column = None if person is None else person.column
        encoding = Encoding.from_ranges(table, ranges, client=self.client, label=self.label, person=column)
        rows = encode_table(table, encoding, person)
        data = DataFacts(
            kind="classification" if isinstance(encoding.label, Values) else "regression",
            facts=_describe_data(self, encoding, ranges, person),
            not_covered=(fill("not_covered.ranges"),) if ranges.taken_from_data else (),
            ranges_from_data=ranges.taken_from_data,
            distinct_examples=sum(self._training_sizes(rows)) if self.max_multiplicity == 1 else None,
            person=person,
            rows_left_out=rows.left_out,
            standardisation=encoding.standardisation if self.standardise else None,
            has_validation=bool(self.validation_fraction) or self.validation_path is not None,
        )
        return rows, encoding, data


def clients_from_csv(
    path: str | Path,
    *,
    client: str,
    label: str,
    ranges: str | Path | Mapping[str, Any] | None = None,
    test_fraction: float = 0.2,
    validation_fraction: float = 0.0,
    validation_path: str | Path | None = None,
    max_multiplicity: int = 1,
    person: Person | None = None,
    standardise: bool = True,
    generator: torch.Generator | None = None,
) -> Task:
    """Build a task from a CSV file with one row per example and a header.

    Numbers are scaled to [-1, 1] by their public ranges, and each listed value becomes one input. `discreet data check
    FILE` reports whether a table fits, and writes a starter file for the ranges.

    Args:
        path: The CSV file, in UTF-8.
        client: The column that names the client of each row.
        label: The column to predict: a class if its range lists `values`, a number if it has `min` and `max`.
        ranges: The public ranges of the columns: a TOML file, or a mapping from column to `{"min": …, "max": …}`,
            `{"values": […]}`, `{"first": DATE, "last": DATE}`, `{"text_buckets": 64}` or `"ignore"`. They can't be
            left out, since ranges that are taken from the data reveal it.
        test_fraction: The share of each client's rows that is held out for evaluation; with a `person`, of the persons,
            with all their rows. 0 holds out none.
        validation_fraction: The share of each client's other rows that is held out for choosing settings.
        validation_path: A table with the same columns whose rows are for choosing settings, and are not in the table
            itself. Instead of `validation_fraction`.
        max_multiplicity: The largest number of clients that hold the same example. Only the data's owner can know it,
            and the card says so.
        person: The column that names persons and the number of rows to use of each, if the promise is for a person.
            Of each person, the first rows of each client are used; those in the client of the first row, unless
            `clients_at_most` says that a person may be in several.
        standardise: Whether numbers are also standardised by one noisy sum before training, which the promise pays
            for.
        generator: The source of randomness for the held-out rows. None uses a fixed seed.

    Returns:
        A task for `discreet.train`.

    Raises:
        InvalidInput: The file or a column is missing, a cell can't be read, or a column has no range.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> path = Path(tempfile.mkdtemp()) / "visits.csv"
        >>> _ = path.write_text("hospital,age,readmitted\\nnorth,50,no\\nsouth,60,yes\\nnorth,80,yes\\n")
        >>> ranges = {"age": {"min": 0, "max": 100}, "readmitted": {"values": ["no", "yes"]}}
        >>> task = clients_from_csv(path, client="hospital", label="readmitted", ranges=ranges, test_fraction=0)
        >>> task.client_names, task.train.sizes
        (('north', 'south'), (2, 1))
    """
    table = TableTask(
        kind="csv",
        path=str(to_path(path)),
        client=client,
        label=label,
        ranges=_plain_ranges(ranges, path, client, label),
        test_fraction=test_fraction,
        validation_fraction=validation_fraction,
        validation_path=None if validation_path is None else str(to_path(validation_path)),
        max_multiplicity=max_multiplicity,
        standardise=standardise,
    )
    return _load(table, generator, person)


def clients_from_parquet(
    path: str | Path,
    *,
    client: str,
    label: str,
    ranges: str | Path | Mapping[str, Any] | None = None,
    test_fraction: float = 0.2,
    validation_fraction: float = 0.0,
    validation_path: str | Path | None = None,
    max_multiplicity: int = 1,
    person: Person | None = None,
    standardise: bool = True,
    generator: torch.Generator | None = None,
) -> Task:
    """Build a task from a Parquet file with one row per example. It needs `pip install discreet[tables]`.

    Args:
        path: The Parquet file.
        client: The column that names the client of each row.
        label: The column to predict: a class if its range lists `values`, a number if it has `min` and `max`.
        ranges: The public ranges of the columns, as for `clients_from_csv`.
        test_fraction: The share of each client's rows that is held out for evaluation; with a `person`, of the persons,
            with all their rows. 0 holds out none.
        validation_fraction: The share of each client's other rows that is held out for choosing settings.
        validation_path: A table with the same columns whose rows are for choosing settings, and are not in the table
            itself. Instead of `validation_fraction`.
        max_multiplicity: The largest number of clients that hold the same example. Only the data's owner can know it,
            and the card says so.
        person: The column that names persons and the number of rows to use of each, if the promise is for a person.
        standardise: Whether numbers are also standardised by one noisy sum before training, which the promise pays
            for.
        generator: The source of randomness for the held-out rows. None uses a fixed seed.

    Returns:
        A task for `discreet.train`.

    Raises:
        InvalidInput: The file, pyarrow or a column is missing, a cell can't be read, or a column has no range.

    Example:
        ```python
        ranges = {"age": {"min": 0, "max": 100}, "readmitted": {"values": ["no", "yes"]}}
        task = clients_from_parquet("visits.parquet", client="hospital", label="readmitted", ranges=ranges)
        ```
    """
    table = TableTask(
        kind="parquet",
        path=str(to_path(path)),
        client=client,
        label=label,
        ranges=_plain_ranges(ranges, path, client, label),
        test_fraction=test_fraction,
        validation_fraction=validation_fraction,
        validation_path=None if validation_path is None else str(to_path(validation_path)),
        max_multiplicity=max_multiplicity,
        standardise=standardise,
    )
    return _load(table, generator, person)


def _load(table: TableTask, generator: Any, person: Any) -> Task:
    """Load the table for a caller in Python."""
    if person is not None and not isinstance(person, Person):
        raise InvalidInput(
            f"person must be a discreet.Person, and got {describe_value(person)}.",
            fix="Write discreet.Person(column=..., at_most=...).",
        )
    if generator is not None and not isinstance(generator, torch.Generator):
        raise InvalidInput(
            f"generator must be a torch.Generator, and got {describe_value(generator)}.",
            fix="Write torch.Generator().manual_seed(1), or leave it out.",
        )
    return table.load(generator or torch.Generator().manual_seed(0), Paths.default(), person)


def _plain_ranges(
    ranges: str | Path | Mapping[str, Any] | None, path: str | Path, client: str, label: str
) -> str | dict[str, Any]:
    """Return ranges as a record takes them, or say what they are and how to write them."""
    if ranges is None:
        table = shlex.join([str(path), "--client", str(client), "--label", str(label)])
        raise InvalidInput(
            "A table needs ranges, which say what is publicly known of each column: the bounds of numbers or dates, "
            "or the values that may occur.",
            fix=f"Write a starter file by discreet data check {table} --write-ranges ranges.toml, put public bounds "
            'into it, and pass ranges="ranges.toml".',
        )
    return dict(ranges) if isinstance(ranges, Mapping) else str(to_path(ranges))


def _describe_data(source: TableTask, encoding: Encoding, ranges: Ranges, person: Person | None) -> tuple[str, ...]:
    """Say on the card how columns are encoded. Bounds that were taken from the data are not printed."""
    public, standardised = not ranges.taken_from_data, source.standardise and encoding.standardisation
    fitted = [fill("data.table.nothing_fitted")] if public and not standardised else []
    facts = [
        *([Line(fill("data.table.public_ranges"), "owner")] if public else []),
        Line(fill("data.table.clients", column=repr(source.client)), "owner"),
        " ".join([fill("data.table.scaling"), *fitted]),
    ]
    if isinstance(encoding.label, Range) and ranges.taken_from_data:
        facts.append(fill("data.table.label", label=repr(source.label)))
    elif isinstance(encoding.label, Range):
        bounds = {"low": f"{encoding.label.min:g}", "high": f"{encoding.label.max:g}"}
        facts.append(fill("data.table.label_from", label=repr(source.label), **bounds))
    columns = [column for _, column in encoding.features]
    if any(isinstance(column, DateRange) for column in columns):
        facts.append(fill("data.table.dates"))
    if any(isinstance(column, HashedText) for column in columns):
        facts.append(fill("data.table.text"))
    test, validation = (f"{share:.0%}" for share in (source.test_fraction, source.validation_fraction))
    if source.test_fraction:
        facts.append(fill("data.held_out_by_client" if person is None else "data.held_out_persons", share=test))
    if source.validation_fraction:
        facts.append(fill("data.validation" if person is None else "data.validation_persons", share=validation))
    if source.validation_path is not None:
        name = Path(source.validation_path).name
        if person is None:
            facts.append(fill("data.validation_file", file=name))
        else:
            facts.append(fill("data.validation_file_persons", file=name, column=person.column))
    return tuple(facts)
