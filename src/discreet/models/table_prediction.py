"""Predict for new rows of a table with a network that was trained on its columns."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from discreet.data.tables.file_reader import open_table
from discreet.data.tables.table import Table
from discreet.data.tables.table_columns import Predictions, TableColumns, table_from_columns


def predict_rows(model: nn.Module, columns: TableColumns, table: Table) -> Predictions:
    """Return what the network predicts for each row of the table, in the order of the rows."""
    like = next(model.parameters())
    with torch.no_grad():
        outputs = [model(torch.from_numpy(rows).to(like)).double().cpu().numpy() for rows in columns.encode(table)]
    return columns.name_predictions(np.concatenate(outputs) if outputs else np.zeros((0, columns.target.width)))


def find_rows(rows: Any) -> Table:
    """Return a CSV or Parquet file, a data frame, or a mapping from names to columns, as a table."""
    return open_table(Path(rows)) if isinstance(rows, str | Path) else table_from_columns(rows)
