"""The columns of a table that a model was trained on: they encode new rows, and name what the model predicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.data.tables.column_kinds import InputColumn, Range, Values
from discreet.data.tables.file_reader import as_csv_text
from discreet.data.tables.table import Cells, Chunk, Table, list_names
from discreet.data.tables.table_encoding import encode_inputs, encode_targets
from discreet.errors import InvalidInput, nearest_names
from discreet.part import part


@part
class TableColumns:
    """The columns that are inputs, in their order, and the label.

    Attributes:
        inputs: The range or the values of each column that becomes inputs.
        label: The name of the column to predict.
        target: The range of a number to predict, or the values of a class.
    """

    inputs: dict[str, InputColumn]
    label: str
    target: Range | Values

    @property
    def width(self) -> int:
        """Number of inputs that the columns become."""
        return sum(column.width for column in self.inputs.values())

    def encode(self, table: Table) -> Iterator[NDArray[np.float32]]:
        """Yield the inputs of a table's rows, chunk by chunk, in their order. Other columns are not looked at.

        Raises:
            InvalidInput: Columns are missing, or a cell is missing or not as its column must be.
        """
        if missing := [name for name in self.inputs if name not in table.columns]:
            raise InvalidInput(
                f"{table.path} lacks {_count_columns(missing)} of the {len(self.inputs)} that the model needs: "
                f"{list_names(missing, 5)}.",
                fix=_explain_columns(missing, table),
            )
        places = [(table.columns.index(name), column) for name, column in self.inputs.items()]
        for chunk in table.chunks():
            try:
                yield np.hstack([encode_inputs(table, chunk, index, column) for index, column in places])
            except InvalidInput as error:  # the ranges are those of the model, and can't be changed any more
                raise InvalidInput(error.problem, fix="Correct the cell, or leave the row out.") from None

    def encode_labelled(self, table: Table) -> tuple[NDArray[np.float32], NDArray[Any]]:
        """Return the inputs and targets of a table's rows, in their order.

        Raises:
            InvalidInput: The table has no rows, columns are missing, or a cell is not as its column must be.
        """
        if self.label not in table.columns:
            raise InvalidInput(
                f"{table.path} lacks the label, column {self.label!r}.",
                fix=f"Its columns: {nearest_names(table.columns, self.label)}.",
            )
        label, inputs = table.columns.index(self.label), list(self.encode(table))
        if not inputs:
            raise InvalidInput(f"{table.path} names its columns and has no rows.")
        targets = [encode_targets(table, chunk, label, self.target) for chunk in table.chunks()]
        return np.concatenate(inputs), np.concatenate(targets)

    def name_predictions(self, outputs: NDArray[np.float64]) -> Predictions:
        """Return what the network's outputs mean: the most probable value, or the number in the label's own units."""
        if isinstance(self.target, Range):
            low, high = self.target.min, self.target.max
            numbers = low + (outputs.reshape(len(outputs)) + 1) / 2 * (high - low)
            return Predictions(self.label, numbers.tolist(), {})
        values = self.target.values
        if outputs.size == len(outputs) and len(values) == 2:  # one number for two classes: its sign is the prediction
            single = outputs.reshape(len(outputs), 1)
            outputs = np.hstack([np.zeros_like(single), single])
        if outputs.shape[1:] != (len(values),):
            raise InvalidInput(
                f"The model returns outputs of the shape {outputs.shape} for {len(outputs)} rows, and probabilities of "
                f"{len(values)} values need one output for each.",
                fix="Call run.model(inputs) and read its outputs as its loss does.",
            )
        shifted = np.exp(outputs - outputs.max(axis=1, keepdims=True, initial=-np.inf))
        shares = shifted / shifted.sum(axis=1, keepdims=True)
        probabilities = {value: shares[:, index].tolist() for index, value in enumerate(values)}
        return Predictions(self.label, [values[index] for index in outputs.argmax(axis=1)], probabilities)


class Predictions(Sequence[Any]):
    """What a model predicts for each row, in the order of the rows.

    Attributes:
        label: The name of the column that is predicted.
        values: The predicted value or number of each row.
        probabilities: The probability of each value, for each row. Empty if a number is predicted.
    """

    def __init__(self, label: str, values: list[Any], probabilities: dict[str, list[float]]) -> None:
        self.label, self.values, self.probabilities = label, values, probabilities

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        return self.values[index]

    def __repr__(self) -> str:
        return f"Predictions(label={self.label!r}, {len(self):,} rows)"

    @property
    def header(self) -> list[str]:
        """The names of the columns of `rows`."""
        return ["prediction", *(f"probability_{value}" for value in self.probabilities)]

    def rows(self) -> Iterator[list[Any]]:
        """Yield the prediction of each row, and then the probability of each value."""
        return map(list, zip(self.values, *self.probabilities.values(), strict=True))


def table_from_columns(frame: Any) -> Table:
    """Return a data frame, or a mapping from names to columns, as a table.

    Raises:
        InvalidInput: It has no named columns, or they differ in length.
    """
    names = list(frame) if isinstance(frame, Mapping) else list(getattr(frame, "columns", ()))
    if not names:
        raise InvalidInput(
            f"Rows to predict must be a file, a data frame or a mapping of columns, and got {type(frame).__name__}."
        )
    columns = [np.asarray(frame[name]) for name in names]
    if len({len(column) for column in columns}) > 1:
        raise InvalidInput("The columns to predict from differ in length.")
    texts = [_read_values(column) for column in columns]

    def chunks() -> Iterator[Chunk]:
        yield Chunk(range(1, len(columns[0]) + 1), lambda index: texts[index])

    return Table("The data frame", "parquet", tuple(map(str, names)), chunks)


def _read_values(column: NDArray[Any]) -> Cells:
    """Return the values of a data frame's column as the cells of a file: numbers, or else text."""
    match column.dtype.kind:
        case "i" | "u" | "f":
            return column
        case "M":  # dates, which would become numbers of some unit
            return [str(day) for day in column.astype("datetime64[D]")]
        case _:
            return list(map(as_csv_text, column.tolist()))


def _count_columns(names: Sequence[str]) -> str:
    return "a column" if len(names) == 1 else f"{len(names)} columns"


def _explain_columns(missing: Sequence[str], table: Table) -> str:
    """Say which columns the table has, and whether only upper and lower case differ."""
    other_case = {name.casefold(): name for name in table.columns}
    if (name := missing[0]).casefold() in other_case:
        return f"It has {other_case[name.casefold()]!r}: names must be the same in upper and lower case."
    return f"Its columns: {nearest_names(table.columns, name)}."
