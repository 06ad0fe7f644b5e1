"""A trained network with the encoding of its table: from raw columns to probabilities, in torch alone."""

from collections.abc import Iterable
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from discreet.data.tables.column_kinds import DateRange, HashedText, Range, Values
from discreet.data.tables.table_columns import TableColumns

Block: TypeAlias = Literal["numbers", "codes", "texts"]


class TableNetwork(nn.Module):
    """A network that takes the columns of a table in their own units, and returns what `run.predict` returns.

    Its inputs are one matrix for each kind of column that the table has, with one row for each row of the table:

    - numbers: float64, one column for each number, in its own units, or date, in days since 1970-01-01;
    - codes: int64, one column for each column of listed values: the position of the value in its list;
    - texts: float64, as many columns for each free text as it has buckets: what `hash_words` returns.

    The output is one probability for each value of the label, or one number in the label's own units, in float64.
    A row with a number that is not finite, or with a code that is not a position in the list, has NaN as output.

    Attributes:
        columns: The columns of the table.
        module: The network, which takes inputs as the task gave them.
    """

    low: Tensor
    length: Tensor
    code_column: Tensor
    code_value: Tensor
    counts: Tensor
    order: Tensor

    def __init__(self, module: nn.Module, columns: TableColumns) -> None:
        super().__init__()
        self.module, self.columns = module, columns
        numbers = Range | DateRange
        self.numbers = [(name, column) for name, column in columns.inputs.items() if isinstance(column, numbers)]
        self.texts = [(name, column) for name, column in columns.inputs.items() if isinstance(column, HashedText)]
        self.codes = [(name, column) for name, column in columns.inputs.items() if isinstance(column, Values)]
        values = [(index, value) for index, (_, column) in enumerate(self.codes) for value in range(column.width)]
        self.register_buffer("low", _float_tensor(column.min for _, column in self.numbers))
        self.register_buffer("length", _float_tensor(column.max - column.min for _, column in self.numbers))
        self.register_buffer("code_column", _index_tensor(index for index, _ in values))
        self.register_buffer("code_value", _index_tensor(value for _, value in values))
        self.register_buffer("counts", _index_tensor(column.width for _, column in self.codes))
        self.register_buffer("order", _index_tensor(self._input_order()))

    @property
    def blocks(self) -> dict[Block, list[str]]:
        """The names of the columns in each matrix, for the matrices that the network takes, in their order."""
        blocks: dict[Block, list[str]] = {
            "numbers": [name for name, _ in self.numbers],
            "codes": [name for name, _ in self.codes],
            "texts": [name for name, _ in self.texts],
        }
        return {block: names for block, names in blocks.items() if names}

    def forward(self, *blocks: Tensor) -> Tensor:
        return self._read_outputs(self.module(self.encode(*blocks)))

    def encode(self, *blocks: Tensor) -> Tensor:
        """Return the inputs of the network inside, as `TableColumns.encode` gives them."""
        given = dict(zip(self.blocks, blocks, strict=True))
        parts = []
        if "numbers" in given:
            parts.append(self._scale(given["numbers"]))
        if "codes" in given:
            parts.append(self._mark_values(given["codes"]))
        if "texts" in given:
            parts.append(given["texts"])
        return torch.cat(parts, dim=1).index_select(1, self.order).to(next(self.module.parameters()))

    def example(self, rows: int = 16) -> tuple[Tensor, ...]:
        """Return inputs of different rows, some of them outside the ranges, from public knowledge alone."""
        steps = torch.linspace(-0.1, 1.1, rows, dtype=torch.float64)[:, None]
        buckets = sum(column.width for _, column in self.texts)
        examples = {
            "numbers": self.low + steps * self.length,
            "codes": torch.arange(rows)[:, None] % self.counts,
            "texts": torch.eye(rows, buckets, dtype=torch.float64),
        }
        return tuple(examples[block] for block in self.blocks)

    def _scale(self, numbers: Tensor) -> Tensor:
        high = self.low + self.length
        clipped = torch.minimum(torch.maximum(numbers, self.low), high)
        # 0 · x is NaN for what is not finite, which a clip may hide in another runtime
        return (clipped - self.low) / self.length * 2 - 1 + 0 * numbers

    def _mark_values(self, codes: Tensor) -> Tensor:
        """Return one input per listed value: 1 where the code is its position, and else 0."""
        marks = (codes.index_select(1, self.code_column) == self.code_value).double()
        is_unknown = ((codes < 0) | (codes >= self.counts)).index_select(1, self.code_column)
        return torch.where(is_unknown, torch.full_like(marks, torch.nan), marks)

    def _input_order(self) -> list[int]:
        """Return where each input of the network is, in the matrices one beside the other."""
        starts, start = {}, 0
        for name, column in (*self.numbers, *self.codes, *self.texts):
            starts[name] = start
            start += column.width
        inputs = self.columns.inputs.items()
        return [place for name, column in inputs for place in range(starts[name], starts[name] + column.width)]

    def _read_outputs(self, outputs: Tensor) -> Tensor:
        """Return what outputs mean, as `TableColumns.name_predictions` does."""
        outputs, target = outputs.double(), self.columns.target
        if isinstance(target, Range):
            return target.min + (outputs.reshape(-1) + 1) / 2 * (target.max - target.min)
        if target.width == 2 and (outputs.dim() == 1 or outputs.shape[1] == 1):  # one number: its sign is the class
            single = outputs.reshape(-1, 1)
            outputs = torch.cat([torch.zeros_like(single), single], dim=1)
        return outputs.softmax(dim=1)


def _float_tensor(values: Iterable[float]) -> Tensor:
    return torch.tensor(list(values), dtype=torch.float64)


def _index_tensor(values: Iterable[int]) -> Tensor:
    return torch.tensor(list(values), dtype=torch.int64)
