"""A first ranges.toml: the shape is right, the numbers come from the data and must be replaced."""

import os
import tomllib
from pathlib import Path

import tomlkit
from tomlkit.items import InlineTable

from discreet.data.tables.ranges import Ranges, load_ranges
from discreet.data.tables.table_survey import MOST_VALUES, ColumnSurvey, Survey
from discreet.errors import InvalidInput

HEAD = (
    "Ranges that scale the columns of a table.",
    "",
    "The values below were copied from the data, so they reveal something of it: a largest value",
    "is somebody's value. Replace each by bounds that everybody could know (an age lies in 0..120),",
    "list categories by the form's definition, then delete the line taken_from_data: while it is there,",
    "training refuses these ranges, unless it is told --accept-data-ranges.",
    'A column that training should not see is set to "ignore".',
)


def starter_toml(found: Survey) -> str:
    document = tomlkit.document()
    for line in HEAD:
        document.add(tomlkit.comment(line))
    document.add(tomlkit.nl())
    document.add("taken_from_data", tomlkit.item(True).comment("delete once every bound below is publicly known"))
    columns = tomlkit.table()
    for column in found.columns:
        columns.add(column.name, _describe_column(column, column.type == "number"))
    columns.add(found.label.name, _describe_column(found.label, _is_numeric_label(found.label)).comment("the label"))
    document.add("columns", columns)
    return tomlkit.dumps(document)


def starter_ranges(found: Survey) -> Ranges:
    """What the starter says, for whoever only looks at the data."""
    return load_ranges(tomllib.loads(starter_toml(found)))


def write_starter(found: Survey, path: Path) -> None:
    """Write it whole or not at all, and never over an existing file."""
    text = starter_toml(found)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InvalidInput(f"{path} exists, and is left as it is.", fix="Name a new file.") from None
    except OSError as error:
        raise InvalidInput(f"{path} can't be written: {os.strerror(error.errno or 0)}.") from None


def _is_numeric_label(label: ColumnSurvey) -> bool:
    """Numbers with a fraction, or too many to be classes, are to be predicted as numbers."""
    few = label.distinct <= MOST_VALUES and all(float(value).is_integer() for value in label.seen if label.numbers)
    return label.type == "number" and not few


def _describe_column(column: ColumnSurvey, numeric: bool) -> "InlineTable | tomlkit.items.String":
    if column.type in ("empty", "text") or (not numeric and column.distinct > MOST_VALUES):
        return tomlkit.string("ignore")
    table = tomlkit.inline_table()
    if numeric:
        table.update({"min": column.low, "max": column.high if column.high > column.low else column.low + 1})
    else:
        whole = column.type == "number"
        values = sorted({int(float(value)) for value in column.seen}) if whole else sorted(column.seen)
        table.update({"values": values})
    return table
